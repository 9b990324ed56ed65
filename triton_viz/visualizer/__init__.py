"""The page's server: turns launches into what the page draws. `core.trace.launches` is its only source."""
