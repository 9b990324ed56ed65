"""The tracing core: runs a kernel so that clients see every op.

`trace` wraps a kernel, `patch` routes its ops through callbacks, `client` receives them, `data` defines
the records that come out. It names no client (`client_registry` has them) and never imports gt.
"""
