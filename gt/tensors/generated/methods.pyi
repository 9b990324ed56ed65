# fmt: off
"""Written by `python -m tools.op_list`."""

from collections.abc import Sequence
from typing import Any

from gt.tensors.base import TensorBase
from gt.tensors.tensor import Tensor

class GeneratedMethods(TensorBase):
    """Operators, methods and aliases."""

    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Any) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __ge__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def abs(self) -> Tensor:
        """The absolute value of each element."""
    def acos(self) -> Tensor:
        """The inverse cosine of each element."""
    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine of each element."""
    def all(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        """Whether every element is true, or not 0."""
    def amax(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        """The largest element; equal ones share its gradient."""
    def amin(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        """The smallest element; equal ones share its gradient."""
    def any(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
        """Whether any element is true, or not 0."""
    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """The index of the largest element: along a dimension, or in the flattened tensor."""
    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """The index of the smallest element: along a dimension, or in the flattened tensor."""
    def asin(self) -> Tensor:
        """The inverse sine of each element."""
    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine of each element."""
    def atan(self) -> Tensor:
        """The inverse tangent of each element."""
    def atan2(self, other: Tensor) -> Tensor:
        """The angle of the point (other, self), in radians."""
    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent of each element."""
    def bitwise_and(self, other: Any) -> Tensor:
        """`self & other`."""
    def bitwise_left_shift(self, other: Any) -> Tensor:
        """`self << other`."""
    def bitwise_not(self) -> Tensor:
        """`~self`."""
    def bitwise_or(self, other: Any) -> Tensor:
        """`self | other`."""
    def bitwise_right_shift(self, other: Any) -> Tensor:
        """`self >> other`."""
    def bitwise_xor(self, other: Any) -> Tensor:
        """`self ^ other`."""
    def ceil(self) -> Tensor:
        """Each element, rounded up."""
    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Each element, or the bound that it exceeds. Bounds are numbers or tensors; either may be left
        out.
        """
    def cos(self) -> Tensor:
        """The cosine of each element."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine of each element."""
    def cumprod(self, dim: int | None = None, dtype: Any = None) -> Tensor:
        """The product of each element and those before it along a dimension."""
    def cumsum(self, dim: int | None = None, dtype: Any = None) -> Tensor:
        """The sum of each element and those before it along a dimension."""
    def divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """`self / other`; rounded down with rounding_mode="floor", and towards 0 with "trunc"."""
    def elu(self, alpha: float = 1.0) -> Tensor:
        """Each element, or alpha * (exp(x) - 1) where it is negative."""
    def eq(self, other: Any) -> Tensor:
        """`self == other`."""
    def erf(self) -> Tensor:
        """The error function of each element."""
    def exp(self) -> Tensor:
        """e to the power of each element."""
    def exp2(self) -> Tensor:
        """2 to the power of each element."""
    def expm1(self) -> Tensor:
        """exp(x) - 1 of each element, exact near 0."""
    def floor(self) -> Tensor:
        """Each element, rounded down."""
    def floor_divide(self, other: Any) -> Tensor:
        """`self // other`: the quotient, rounded down."""
    def fmod(self, other: Any) -> Tensor:
        """The remainder of a division rounded towards 0; it has the sign of `self`."""
    def ge(self, other: Any) -> Tensor:
        """`self >= other`."""
    def gelu(self, approximate: str = "none") -> Tensor:
        """Each element times the probability that a standard normal variable is below it."""
    def gt(self, other: Any) -> Tensor:
        """`self > other`."""
    def hardtanh(self, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
        """Each element, clamped to [min_val, max_val]; the gradient is 0 at the bounds and beyond."""
    def isfinite(self) -> Tensor:
        """Whether each element is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether each element is infinite."""
    def isnan(self) -> Tensor:
        """Whether each element is NaN."""
    def le(self, other: Any) -> Tensor:
        """`self <= other`."""
    def leaky_relu(self, negative_slope: float = 0.01) -> Tensor:
        """Each element, multiplied by `negative_slope` where it is negative."""
    def log(self) -> Tensor:
        """The natural logarithm of each element."""
    def log10(self) -> Tensor:
        """The logarithm to base 10 of each element."""
    def log1p(self) -> Tensor:
        """log(1 + x) of each element, exact near 0."""
    def log2(self) -> Tensor:
        """The logarithm to base 2 of each element."""
    def log_softmax(self, dim: int, dtype: Any = None) -> Tensor:
        """The logarithm of the softmax, exact also where that rounds to 0."""
    def logical_and(self, other: Tensor) -> Tensor:
        """Whether both elements are not 0."""
    def logical_not(self) -> Tensor:
        """Whether each element is 0."""
    def logical_or(self, other: Tensor) -> Tensor:
        """Whether at least one of two elements is not 0."""
    def logical_xor(self, other: Tensor) -> Tensor:
        """Whether exactly one of two elements is not 0."""
    def logsumexp(self, dim: int | Sequence[int] | None, keepdim: bool = False) -> Tensor:
        """log(sum(exp(x))), without overflow."""
    def lt(self, other: Any) -> Tensor:
        """`self < other`."""
    def maximum(self, other: Tensor) -> Tensor:
        """The larger of two elements."""
    def minimum(self, other: Tensor) -> Tensor:
        """The smaller of two elements."""
    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """This tensor with some dimensions moved to other positions, the others in their old order."""
    def mul(self, other: Any) -> Tensor:
        """`self * other`."""
    def ne(self, other: Any) -> Tensor:
        """`self != other`."""
    def neg(self) -> Tensor:
        """`-self`."""
    def prod(self, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
        """The product along a dimension, or of all elements."""
    def reciprocal(self) -> Tensor:
        """1 divided by each element."""
    def relu(self) -> Tensor:
        """Each element, or 0 where it is negative."""
    def remainder(self, other: Any) -> Tensor:
        """`self % other`: the remainder of a floor division; it has the sign of `other`."""
    def rsqrt(self) -> Tensor:
        """1 divided by the square root of each element."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x)) of each element."""
    def sign(self) -> Tensor:
        """The sign of each element: -1, 0 or 1."""
    def silu(self) -> Tensor:
        """Each element times its sigmoid."""
    def sin(self) -> Tensor:
        """The sine of each element."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine of each element."""
    def softmax(self, dim: int, dtype: Any = None) -> Tensor:
        """exp(x) divided by its sum along a dimension."""
    def softplus(self, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta; x itself where x * beta is above the threshold."""
    def sqrt(self) -> Tensor:
        """The square root of each element."""
    def square(self) -> Tensor:
        """The square of each element."""
    def subtract(self, other: Any, *, alpha: bool | int | float = 1) -> Tensor:
        """`self - alpha * other`."""
    def sum(
        self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Tensor:
        """The sum over some dimensions, or over all."""
    def swapdims(self, dim0: int, dim1: int) -> Tensor:
        """This tensor with two dimensions swapped."""
    def tan(self) -> Tensor:
        """The tangent of each element."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent of each element."""
    def tril(self, diagonal: int = 0) -> Tensor:
        """The lower triangle of each matrix, zeros above."""
    def triu(self, diagonal: int = 0) -> Tensor:
        """The upper triangle of each matrix, zeros below."""
    def true_divide(self, other: Any) -> Tensor:
        """`self / other`."""
    def trunc(self) -> Tensor:
        """Each element, rounded towards 0."""
    def __hash__(self) -> int: ...
    absolute = abs
    arccos = acos
    arccosh = acosh
    arcsin = asin
    arcsinh = asinh
    arctan = atan
    arctan2 = atan2
    arctanh = atanh
    fix = trunc
    greater = gt
    greater_equal = ge
    less = lt
    less_equal = le
    multiply = mul
    negative = neg
    not_equal = ne
