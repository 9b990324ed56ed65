"""Elementwise methods with arguments of their own."""

from typing import TYPE_CHECKING, Any, cast

from gt.errors import ArgumentError, DTypeError
from gt.ops import dtypes
from gt.tensors.api import api
from gt.tensors.base import Number, TensorBase, check_number
from gt.tensors.methods.casts import CastMethods
from gt.tensors.methods.logic import LogicMethods, where

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor

Operand = Any
"""A tensor, a number or an array."""


class ElementwiseMethods(LogicMethods, CastMethods):
    """Arithmetic, rounding and mathematical functions."""

    __slots__ = ()

    # --- operators ---

    def __pos__(self) -> "Tensor":
        return self.positive()

    # --- named forms of operators, with options ---

    @api(in_place=True, number_first=True)
    def add(self, other: Operand, *, alpha: Number = 1) -> "Tensor":
        """`self + alpha * other`."""
        return self._with("add", _scaled(other, self, alpha))

    @api("subtract", in_place=True, number_first=True)
    def sub(self, other: Operand, *, alpha: Number = 1) -> "Tensor":
        """`self - alpha * other`."""
        return self._with("sub", _scaled(other, self, alpha))

    @api("divide", in_place=True, number_first=True)
    def div(self, other: Operand, *, rounding_mode: str | None = None) -> "Tensor":
        """`self / other`; rounded down with rounding_mode="floor", and towards 0 with "trunc"."""
        if rounding_mode is None:
            return self._with("truediv", other)
        if rounding_mode == "floor":
            return self._with("floordiv", other)
        if rounding_mode != "trunc":
            raise ArgumentError(
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' "
                f"but found '{rounding_mode}'"
            )
        whole = self._with("floordiv", other)
        if not dtypes.is_float(whole._value.spec.dtype):
            # Integers stay integers: the floor, plus one where that is towards 0.
            return whole + ((whole < 0) & (whole * other != self))
        return self._with("truediv", other).trunc()

    @api(function=False, in_place=True)
    def pow(self, exponent: Operand) -> "Tensor":
        """`self ** exponent`."""
        return self._with("pow", exponent)

    @api()
    def rsub(self, other: Operand, *, alpha: Number = 1) -> "Tensor":
        """`other - alpha * self`."""
        if self._value.spec.dtype == "bool" or (isinstance(other, TensorBase) and _dtype(other) == "bool"):
            return self.__rsub__(other)  # which raises PyTorch's error
        return _scaled(self, other, alpha).__rsub__(other)

    @api()
    def positive(self) -> "Tensor":
        """`+self`: the tensor itself."""
        if self._value.spec.dtype == "bool":
            raise DTypeError("The `+` operator, on a bool tensor is not supported.")
        return self  # type: ignore[return-value] - every TensorBase is a Tensor

    @api(in_place=True)
    def lerp(self, end: "Tensor", weight: Operand) -> "Tensor":
        """A weighted step from here to `end`: `self + weight * (end - self)`."""
        mine, theirs = self._value.spec.dtype, end._value.spec.dtype
        if mine != theirs:
            raise DTypeError(f"expected dtype {mine} for `end` but got dtype {theirs}")
        if not dtypes.is_float(mine):
            raise DTypeError(f'"lerp" not implemented for {dtypes.TITLE[mine]!r}')
        return self + weight * (end - self)

    @api(in_place=True)
    def addcmul(self, tensor1: "Tensor", tensor2: "Tensor", *, value: Number = 1) -> "Tensor":
        """`self + value * tensor1 * tensor2`."""
        x, first, second = _in_one_dtype(self, tensor1, tensor2)
        product = first * second
        return x + (product if value == 1 else product * _fitting(value, x))

    @api(in_place=True)
    def addcdiv(self, tensor1: "Tensor", tensor2: "Tensor", *, value: Number = 1) -> "Tensor":
        """`self + value * tensor1 / tensor2`."""
        if not any(dtypes.is_float(_dtype(one)) for one in (tensor1, tensor2)):
            raise DTypeError(
                "Integer division with addcdiv is not supported. Convert a tensor first: x.to('float32')"
            )
        x, first, second = _in_one_dtype(self, tensor1, tensor2)
        quotient = first / second
        return x + (quotient if value == 1 else quotient * value)

    # --- one tensor ---

    @api(in_place=True)
    def round(self, *, decimals: int = 0) -> "Tensor":
        """Each element, rounded to this number of decimals; halves are rounded to the even neighbor."""
        if not decimals or not dtypes.is_float(self._value.spec.dtype):
            return self._unary_op("round")
        scale = 10.0 ** abs(decimals)
        if decimals > 0:
            return (self * scale)._unary_op("round") / scale
        return (self / scale)._unary_op("round") * scale

    @api(in_place=True)
    def frac(self) -> "Tensor":
        """The fractional part of each element: x - trunc(x)."""
        return self - self._unary_op("trunc")

    @api("clip", in_place=True)
    def clamp(self, min: Operand = None, max: Operand = None) -> "Tensor":
        """Each element, or the bound that it exceeds. Bounds are numbers or tensors; either may be left
        out."""
        if isinstance(min, TensorBase) or isinstance(max, TensorBase):
            x: Any = self
            # Not `maximum`: an element that equals its bound gets the whole gradient.
            x = x if min is None else where(x < min, min, x)
            return x if max is None else where(x > max, max, x)
        low, high = (None if bound is None else check_number(bound) for bound in (min, max))
        return self._apply("clamp", min=low, max=high)

    @api(in_place=True)
    def clamp_min(self, min: Operand) -> "Tensor":
        """Each element, or the lower bound that it is below."""
        return self.clamp(min=min)

    @api(in_place=True)
    def clamp_max(self, max: Operand) -> "Tensor":
        """Each element, or the upper bound that it is above."""
        return self.clamp(max=max)

    @api(in_place=True)
    def nan_to_num(
        self, nan: Number = 0.0, posinf: Number | None = None, neginf: Number | None = None
    ) -> "Tensor":
        """NaN and infinities replaced by numbers; infinities by the largest and smallest of the dtype."""
        name = self._value.spec.dtype
        if not dtypes.is_float(name):
            return self.positive()
        largest = dtypes.LARGEST[name]
        high = largest if posinf is None else posinf
        low = -largest if neginf is None else neginf
        x = self.masked_fill(self.isnan(), nan)
        x = x.masked_fill(self == float("inf"), high)
        return x.masked_fill(self == float("-inf"), low)


def _dtype(x: TensorBase) -> str:
    return x._value.spec.dtype


def _in_one_dtype(*tensors: TensorBase) -> "list[Any]":
    """The tensors in the dtype that an operation over all of them computes in."""
    dtype, rank = _dtype(tensors[0]), len(tensors[0]._value.spec.shape)
    for x in tensors[1:]:
        shape = x._value.spec.shape
        dtype, rank = dtypes.promote(dtype, _dtype(x), rank, len(shape)), max(rank, len(shape))
    return [cast("Tensor", x).to(dtype) for x in tensors]


def _fitting(value: Number, x: TensorBase) -> Number:
    """A factor in the category of a tensor's dtype."""
    return value if dtypes.is_float(_dtype(x)) else int(value)


def _scaled(x: Operand, beside: Operand, alpha: Number) -> Any:
    """`x * alpha`, if PyTorch allows that alpha in an operation over x and `beside`.

    It is computed in the dtype of that operation: in the dtype of x alone, it could overflow.
    """
    if alpha == 1 and not isinstance(alpha, bool):
        return x
    tensors = _in_one_dtype(*[one for one in (beside, x) if isinstance(one, TensorBase)])
    number = next((one for one in (beside, x) if isinstance(one, Number)), False)
    dtype = dtypes.promote_scalar(_dtype(tensors[0]), number)
    kind = dtypes.category(dtype)
    if isinstance(alpha, bool) and kind != "bool":
        raise DTypeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind != "float":
        raise DTypeError("For integral input tensors, argument alpha must not be a floating point number.")
    return (cast("Tensor", x).to(dtype) if isinstance(x, TensorBase) else x) * alpha
