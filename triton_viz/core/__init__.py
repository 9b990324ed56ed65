"""The tracing core: how a kernel is run so that clients see every op.

`trace` wraps a kernel, `patch` routes its ops through callbacks, `client` is what receives them, `data`
is what comes out. Knows no client by name: they are in `registry`; never imports gt.
"""
