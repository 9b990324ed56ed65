"""Functions that NumPy and JAX share, one module for each group of the op table.

Each takes the library (`numpy` or `jax.numpy`) as its first argument, then the op's inputs and attributes.
Results may have any dtype: the engine casts them to the dtype of the op table.
"""
