"""Engines: the libraries that compute. One module each, loaded when a worker first needs it.

An engine's module holds an `Engine` subclass and the few functions that its library spells
differently; everything else the op table names directly (`"torch.relu"`, `"numpy.exp"`). NumPy and JAX
have one spelling: what they share is in `array`.
"""
