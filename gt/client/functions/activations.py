"""Activations that PyTorch has beside its tensors; the others are in `gt.nn.functional`."""

from gt.client.functions.base import function
from gt.client.tensor import Tensor

__all__ = [
    "log_softmax",
    "relu",
    "selu",
    "sigmoid",
    "softmax",
]

log_softmax = function(Tensor.log_softmax)
relu = function(Tensor.relu)
selu = function(Tensor.selu)
sigmoid = function(Tensor.sigmoid)
softmax = function(Tensor.softmax)
