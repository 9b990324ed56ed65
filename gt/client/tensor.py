"""`gt.tensors.tensor`, under the path that the specification names."""

from gt.tensors.tensor import Tensor

__all__ = ["Tensor"]
