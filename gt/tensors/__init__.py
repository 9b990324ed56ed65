"""Tensors: their methods and functions, views, and index keys.

The package is not called `gt.tensor` because that is the function `gt.tensor([1, 2, 3])`. Imports `gt.ops`,
`gt.autograd`, `gt.stream` and `gt.client`; no engine is ever imported here.
"""
