"""The page's server: computes the payloads of the page from `core.trace.launches`."""
