"""Engines: the libraries that compute. Each has a module, which is imported when a worker first needs it.

`gt.ops.engines` lists them. An engine's module has an `Engine` subclass. The op table names most functions
directly (`"torch.relu"`, `"numpy.exp"`); those that a library lacks are in `torch`, and in `array` for the
libraries that spell functions as NumPy does.
"""
