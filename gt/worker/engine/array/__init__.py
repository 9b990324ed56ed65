"""Functions that NumPy and JAX share, one module for each group of the op table.

Each takes the library (`numpy` or `jax.numpy`) as its first argument, then the op's inputs and attributes.
Dtypes are not their business: the engine holds the result to what the op table says.
"""
