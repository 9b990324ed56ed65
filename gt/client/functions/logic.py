"""Comparisons, truths, bits, and choosing by them."""

from gt.client.functions.base import function
from gt.client.methods.logic import where
from gt.client.tensor import Tensor

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "is_floating_point",
    "is_tensor",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "masked_fill",
    "ne",
    "not_equal",
    "where",
]

allclose = function(Tensor.allclose)
bitwise_and = function(Tensor.bitwise_and)
bitwise_left_shift = function(Tensor.bitwise_left_shift)
bitwise_not = function(Tensor.bitwise_not)
bitwise_or = function(Tensor.bitwise_or)
bitwise_right_shift = function(Tensor.bitwise_right_shift)
bitwise_xor = function(Tensor.bitwise_xor)
eq = function(Tensor.eq)
equal = function(Tensor.equal)
ge = function(Tensor.ge)
greater = function(Tensor.greater)
greater_equal = function(Tensor.greater_equal)
gt = function(Tensor.gt)
isclose = function(Tensor.isclose)
isfinite = function(Tensor.isfinite)
isinf = function(Tensor.isinf)
isnan = function(Tensor.isnan)
le = function(Tensor.le)
less = function(Tensor.less)
less_equal = function(Tensor.less_equal)
logical_and = function(Tensor.logical_and)
logical_not = function(Tensor.logical_not)
logical_or = function(Tensor.logical_or)
logical_xor = function(Tensor.logical_xor)
lt = function(Tensor.lt)
masked_fill = function(Tensor.masked_fill)
ne = function(Tensor.ne)
not_equal = function(Tensor.not_equal)


def is_floating_point(input: Tensor) -> bool:
    """Whether a tensor holds fractions."""
    return input.is_floating_point()


def is_tensor(obj: object) -> bool:
    """Whether this is a GT tensor."""
    return isinstance(obj, Tensor)
