"""Arithmetic and mathematical functions, one element at a time."""

from typing import TYPE_CHECKING, Any

from gt.client.base import Number, TensorBase, check_number
from gt.client.methods.casts import CastMethods
from gt.client.methods.logic import LogicMethods, where
from gt.errors import ArgumentError, DTypeError
from gt.ops import dtypes

if TYPE_CHECKING:
    from gt.client.tensor import Tensor

Operand = Any
"""A tensor, a number or an array."""


class ElementwiseMethods(LogicMethods, CastMethods):
    """Arithmetic, rounding and mathematical functions."""

    __slots__ = ()

    # --- operators ---

    def __add__(self, other: Operand) -> "Tensor":
        return self._binary_op("add", other)

    def __radd__(self, other: Operand) -> "Tensor":
        return self._binary_op("add", other, reflected=True)

    def __sub__(self, other: Operand) -> "Tensor":
        return self._binary_op("sub", other)

    def __rsub__(self, other: Operand) -> "Tensor":
        return self._binary_op("sub", other, reflected=True)

    def __mul__(self, other: Operand) -> "Tensor":
        return self._binary_op("mul", other)

    def __rmul__(self, other: Operand) -> "Tensor":
        return self._binary_op("mul", other, reflected=True)

    def __truediv__(self, other: Operand) -> "Tensor":
        return self._binary_op("truediv", other)

    def __rtruediv__(self, other: Operand) -> "Tensor":
        return self._binary_op("truediv", other, reflected=True)

    def __floordiv__(self, other: Operand) -> "Tensor":
        return self._binary_op("floordiv", other)

    def __rfloordiv__(self, other: Operand) -> "Tensor":
        return self._binary_op("floordiv", other, reflected=True)

    def __mod__(self, other: Operand) -> "Tensor":
        return self._binary_op("mod", other)

    def __rmod__(self, other: Operand) -> "Tensor":
        return self._binary_op("mod", other, reflected=True)

    def __pow__(self, other: Operand) -> "Tensor":
        return self._binary_op("pow", other)

    def __rpow__(self, other: Operand) -> "Tensor":
        return self._binary_op("pow", other, reflected=True)

    def __neg__(self) -> "Tensor":
        return self._unary_op("neg")

    def __pos__(self) -> "Tensor":
        return self.positive()

    def __abs__(self) -> "Tensor":
        return self._unary_op("abs")

    # --- the same with names, and options ---

    def add(self, other: Operand, *, alpha: Number = 1) -> "Tensor":
        """`self + alpha * other`."""
        return self._with("add", self._scaled(other, alpha))

    def sub(self, other: Operand, *, alpha: Number = 1) -> "Tensor":
        """`self - alpha * other`."""
        return self._with("sub", self._scaled(other, alpha))

    subtract = sub

    def mul(self, other: Operand) -> "Tensor":
        """`self * other`."""
        return self._with("mul", other)

    multiply = mul

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
            # Integers stay integers: one more than the floor where that went away from 0.
            return whole + ((whole < 0) & (whole * other != self))
        return self._with("truediv", other).trunc()

    divide = div

    def true_divide(self, other: Operand) -> "Tensor":
        """`self / other`."""
        return self._with("truediv", other)

    def floor_divide(self, other: Operand) -> "Tensor":
        """`self // other`: the quotient, rounded down."""
        return self._with("floordiv", other)

    def remainder(self, other: Operand) -> "Tensor":
        """`self % other`: what is left of a floor division; it has the sign of `other`."""
        return self._with("mod", other)

    def fmod(self, other: Operand) -> "Tensor":
        """What is left of a division rounded towards 0; it has the sign of `self`."""
        return self._with("fmod", other)

    def pow(self, exponent: Operand) -> "Tensor":
        """`self ** exponent`."""
        return self._with("pow", exponent)

    def rsub(self, other: Operand) -> "Tensor":
        """`other - self`."""
        return self.__rsub__(other)

    def neg(self) -> "Tensor":
        """`-self`."""
        return self._unary_op("neg")

    negative = neg

    def positive(self) -> "Tensor":
        """`+self`: the tensor itself."""
        if self._value.spec.dtype == "bool":
            raise DTypeError("The `+` operator, on a bool tensor is not supported.")
        return self  # type: ignore[return-value] - every TensorBase is a Tensor

    def maximum(self, other: "Tensor") -> "Tensor":
        """The larger of two tensors' elements."""
        return self._with_tensor("maximum", other)

    def minimum(self, other: "Tensor") -> "Tensor":
        """The smaller of two tensors' elements."""
        return self._with_tensor("minimum", other)

    def atan2(self, other: "Tensor") -> "Tensor":
        """The angle of the point (other, self), in radians."""
        return self._with_tensor("atan2", other)

    arctan2 = atan2

    def lerp(self, end: "Tensor", weight: Operand) -> "Tensor":
        """A weighted step from here to `end`: `self + weight * (end - self)`."""
        mine, theirs = self._value.spec.dtype, end._value.spec.dtype
        if mine != theirs:
            raise DTypeError(f"expected dtype {mine} for `end` but got dtype {theirs}")
        if not dtypes.is_float(mine):
            raise DTypeError(f'"lerp" not implemented for {dtypes.TITLE[mine]!r}')
        return self + weight * (end - self)

    def addcmul(self, tensor1: "Tensor", tensor2: "Tensor", *, value: Number = 1) -> "Tensor":
        """`self + value * tensor1 * tensor2`."""
        product = tensor1 * tensor2
        return self + (product if value == 1 else product * value)

    def addcdiv(self, tensor1: "Tensor", tensor2: "Tensor", *, value: Number = 1) -> "Tensor":
        """`self + value * tensor1 / tensor2`."""
        quotient = tensor1 / tensor2
        return self + (quotient if value == 1 else quotient * value)

    # --- one tensor ---

    def abs(self) -> "Tensor":
        """Each element without its sign."""
        return self._unary_op("abs")

    absolute = abs

    def sign(self) -> "Tensor":
        """-1, 0 or 1: the sign of each element."""
        return self._unary_op("sign")

    def square(self) -> "Tensor":
        """Each element times itself."""
        return self._unary_op("square")

    def floor(self) -> "Tensor":
        """Each element, rounded down."""
        return self._unary_op("floor")

    def ceil(self) -> "Tensor":
        """Each element, rounded up."""
        return self._unary_op("ceil")

    def round(self, *, decimals: int = 0) -> "Tensor":
        """Each element, rounded to the nearest number of so many decimals; halves go to the even one."""
        if not decimals or not dtypes.is_float(self._value.spec.dtype):
            return self._unary_op("round")
        scale = 10.0 ** abs(decimals)
        if decimals > 0:
            return (self * scale)._unary_op("round") / scale
        return (self / scale)._unary_op("round") * scale

    def trunc(self) -> "Tensor":
        """Each element, rounded towards 0."""
        return self._unary_op("trunc")

    fix = trunc

    def frac(self) -> "Tensor":
        """What rounding towards 0 takes away."""
        return self - self._unary_op("trunc")

    def reciprocal(self) -> "Tensor":
        """1 divided by each element."""
        return self._unary_op("reciprocal")

    def sqrt(self) -> "Tensor":
        """The square root of each element."""
        return self._unary_op("sqrt")

    def rsqrt(self) -> "Tensor":
        """1 divided by the square root of each element."""
        return self._unary_op("rsqrt")

    def exp(self) -> "Tensor":
        """e to the power of each element."""
        return self._unary_op("exp")

    def exp2(self) -> "Tensor":
        """2 to the power of each element."""
        return self._unary_op("exp2")

    def expm1(self) -> "Tensor":
        """exp(x) - 1 of each element, exact near 0."""
        return self._unary_op("expm1")

    def log(self) -> "Tensor":
        """The natural logarithm of each element."""
        return self._unary_op("log")

    def log1p(self) -> "Tensor":
        """log(1 + x) of each element, exact near 0."""
        return self._unary_op("log1p")

    def log2(self) -> "Tensor":
        """The logarithm to base 2 of each element."""
        return self._unary_op("log2")

    def log10(self) -> "Tensor":
        """The logarithm to base 10 of each element."""
        return self._unary_op("log10")

    def sin(self) -> "Tensor":
        """The sine of each element."""
        return self._unary_op("sin")

    def cos(self) -> "Tensor":
        """The cosine of each element."""
        return self._unary_op("cos")

    def tan(self) -> "Tensor":
        """The tangent of each element."""
        return self._unary_op("tan")

    def asin(self) -> "Tensor":
        """The angle that has this sine."""
        return self._unary_op("asin")

    arcsin = asin

    def acos(self) -> "Tensor":
        """The angle that has this cosine."""
        return self._unary_op("acos")

    arccos = acos

    def atan(self) -> "Tensor":
        """The angle that has this tangent."""
        return self._unary_op("atan")

    arctan = atan

    def sinh(self) -> "Tensor":
        """The hyperbolic sine of each element."""
        return self._unary_op("sinh")

    def cosh(self) -> "Tensor":
        """The hyperbolic cosine of each element."""
        return self._unary_op("cosh")

    def tanh(self) -> "Tensor":
        """The hyperbolic tangent of each element."""
        return self._unary_op("tanh")

    def asinh(self) -> "Tensor":
        """The number that has this hyperbolic sine."""
        return self._unary_op("asinh")

    arcsinh = asinh

    def acosh(self) -> "Tensor":
        """The number that has this hyperbolic cosine."""
        return self._unary_op("acosh")

    arccosh = acosh

    def atanh(self) -> "Tensor":
        """The number that has this hyperbolic tangent."""
        return self._unary_op("atanh")

    arctanh = atanh

    def erf(self) -> "Tensor":
        """The error function of each element."""
        return self._unary_op("erf")

    def clamp(self, min: Operand = None, max: Operand = None) -> "Tensor":
        """Each element, or the bound it is beyond. Bounds are numbers or tensors; either may be left out."""
        if isinstance(min, TensorBase) or isinstance(max, TensorBase):
            x: Any = self
            # Not `maximum`: an element that is at its bound is itself, and takes the whole gradient.
            x = x if min is None else where(x < min, min, x)
            return x if max is None else where(x > max, max, x)
        low, high = (None if bound is None else check_number(bound) for bound in (min, max))
        return self._apply("clamp", min=low, max=high)

    clip = clamp

    def clamp_min(self, min: Operand) -> "Tensor":
        """Each element, or the bound it is below."""
        return self.clamp(min=min)

    def clamp_max(self, max: Operand) -> "Tensor":
        """Each element, or the bound it is above."""
        return self.clamp(max=max)

    def nan_to_num(
        self, nan: Number = 0.0, posinf: Number | None = None, neginf: Number | None = None
    ) -> "Tensor":
        """Numbers in place of NaN and infinities, which become the largest and smallest of their dtype."""
        name = self._value.spec.dtype
        if not dtypes.is_float(name):
            return self.positive()
        largest = dtypes.LARGEST[name]
        high = largest if posinf is None else posinf
        low = -largest if neginf is None else neginf
        x = self.masked_fill(self.isnan(), nan)
        x = x.masked_fill(self == float("inf"), high)
        return x.masked_fill(self == float("-inf"), low)

    def _scaled(self, other: Operand, alpha: Number) -> Operand:
        """`other * alpha`, if PyTorch allows that alpha."""
        if alpha == 1 and not isinstance(alpha, bool):
            return other
        with_other = other._value.spec.dtype if isinstance(other, TensorBase) else None
        kinds = {dtypes.category(name) for name in (self._value.spec.dtype, with_other) if name}
        kind = "float" if "float" in kinds or isinstance(other, float) else max(kinds)  # "int" > "bool"
        if isinstance(alpha, bool) and kind != "bool":
            raise DTypeError("Boolean alpha only supported for Boolean results.")
        if isinstance(alpha, float) and kind != "float":
            raise DTypeError(
                "For integral input tensors, argument alpha must not be a floating point number."
            )
        scaled: Any = other
        return scaled * alpha
