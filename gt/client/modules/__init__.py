"""Neural networks: modules, layers, losses, initial values, saved files. `gt.nn` is the front.

Everything here is written in tensors' own methods and functions; a layer knows nothing of streams.
Imports `gt.client` only.
"""
