"""Functions about dtypes, and mathematical constants."""

from math import e, inf, nan, pi
from typing import Any

from gt.ops import dtypes
from gt.tensors.base import Number, check_dtype
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.tensor import Tensor

__all__ = ["can_cast", "e", "finfo", "iinfo", "inf", "nan", "pi", "promote_types", "result_type"]

_SMALLEST_EXPONENT = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}


class finfo:
    """The limits of a floating point dtype, such as `gt.finfo(x.dtype).min`."""

    def __init__(self, dtype: Any = "float32") -> None:
        name = check_dtype(dtype)
        if not dtypes.is_float(name):
            raise TypeError(f"finfo() takes a floating point dtype, but got {name}; use gt.iinfo()")
        self.dtype = name
        self.bits = 8 * dtypes.ITEMSIZE[name]
        self.max = dtypes.LARGEST[name]
        self.min = -self.max
        self.eps = 2.0 ** (1 - dtypes.PRECISION[name])
        self.tiny = self.smallest_normal = 2.0 ** _SMALLEST_EXPONENT[name]


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, dtype: Any) -> None:
        name = check_dtype(dtype)
        if dtypes.category(name) != "int":
            raise TypeError(f"iinfo() takes an integer dtype, but got {name}")
        self.dtype = name
        self.bits = 8 * dtypes.ITEMSIZE[name]
        signed = not name.startswith("u")
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - signed) - 1


def promote_types(type1: Any, type2: Any) -> dtypes.DType:
    """The dtype of an operation over tensors of these two."""
    return dtypes.NAMED[dtypes.promote(check_dtype(type1), check_dtype(type2))]


@with_numpy_names
def result_type(tensor: Any, other: Any) -> dtypes.DType:
    """The dtype of an operation over these two tensors; either may be a number."""
    if not isinstance(tensor, Tensor):
        tensor, other = other, tensor
    for one in (tensor, other):
        if not isinstance(one, Tensor | Number):
            raise TypeError(f"result_type() takes tensors and numbers, not {type(one).__name__}")
    if not isinstance(tensor, Tensor):
        return dtypes.NAMED[dtypes.promote(dtypes.of_scalar(tensor), dtypes.of_scalar(other))]
    if isinstance(other, Tensor):
        return dtypes.NAMED[dtypes.promote(tensor.dtype, other.dtype, tensor.ndim, other.ndim)]
    return dtypes.NAMED[dtypes.promote_scalar(tensor.dtype, other)]


def can_cast(from_: Any, to: Any) -> bool:
    """Whether an in-place op may write the one into the other."""
    return dtypes.fits(check_dtype(from_), check_dtype(to))
