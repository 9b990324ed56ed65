"""Elementwise functions that are no method of their first argument."""

from typing import Any

from gt.tensors.methods.logic import where
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.tensor import Tensor

__all__ = ["is_tensor", "pow", "where"]


@with_numpy_names
def pow(input: Any, exponent: Any) -> Tensor:
    """`input ** exponent`; either may be a number."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError("pow(): at least one argument must be Tensor")
    return input**exponent


def is_tensor(obj: object) -> bool:
    """Whether an object is a GT tensor."""
    return isinstance(obj, Tensor)
