"""Tensors: their methods and functions, views, and index keys.

The package is not called `gt.tensor` because that is the function `gt.tensor([1, 2, 3])`. No engine is ever
imported here.
"""
