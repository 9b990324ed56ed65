"""Elementwise functions: a tensor's methods, called as `gt.exp(x)`."""

from gt.client.tensor import Tensor

__all__ = ["exp", "log", "relu", "sigmoid", "sqrt", "tanh"]

exp = Tensor.exp
log = Tensor.log
relu = Tensor.relu
sigmoid = Tensor.sigmoid
sqrt = Tensor.sqrt
tanh = Tensor.tanh
