"""The server of the page: computes payloads from `triton_viz.launches`."""
