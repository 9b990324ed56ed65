"""The tracing core: runs a kernel and reports every op to clients.

`trace` wraps a kernel, `patch` routes its ops through callbacks, `client` defines the callbacks, `data`
defines the records. The core imports no particular client (`client_registry` maps names to clients) and never
gt.
"""
