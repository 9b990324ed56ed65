# fmt: off
"""Written by `python -m tools.op_list`."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

from gt.tensors.base import Number
from gt.tensors.methods.indexing import Sorted
from gt.tensors.tensor import Tensor

def abs(input: Tensor) -> Tensor:
    """The absolute value of each element."""
def acos(input: Tensor) -> Tensor:
    """The inverse cosine of each element."""
def acosh(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine of each element."""
def add(input: Tensor | Number, other: Any, *, alpha: bool | int | float = 1) -> Tensor:
    """`self + alpha * other`."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: bool | int | float = 1) -> Tensor:
    """`self + value * tensor1 / tensor2`."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: bool | int | float = 1) -> Tensor:
    """`self + value * tensor1 * tensor2`."""
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: bool | int | float = 1, alpha: bool | int | float = 1
) -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)`."""
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: bool | int | float = 1, alpha: bool | int | float = 1
) -> Tensor:
    """`beta * self + alpha * (mat @ vec)`."""
def all(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether every element is true, or not 0."""
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close to the other's. Waits for the result."""
def amax(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The largest element; equal ones share its gradient."""
def amin(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """The smallest element; equal ones share its gradient."""
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element."""
def any(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true, or not 0."""
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element: along a dimension, or in the flattened tensor."""
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element: along a dimension, or in the flattened tensor."""
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort the tensor along a dimension. The order of equal elements is kept."""
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not 0, one in each row. Waits for the data."""
def asin(input: Tensor) -> Tensor:
    """The inverse sine of each element."""
def asinh(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine of each element."""
def atan(input: Tensor) -> Tensor:
    """The inverse tangent of each element."""
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (other, self), in radians."""
def atanh(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent of each element."""
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: bool | int | float = 1,
    alpha: bool | int | float = 1,
) -> Tensor:
    """`beta * self + alpha * (batch1 @ batch2)`, for batches of matrices."""
def bitwise_and(input: Tensor | Number, other: Any) -> Tensor:
    """`self & other`."""
def bitwise_left_shift(input: Tensor | Number, other: Any) -> Tensor:
    """`self << other`."""
def bitwise_not(input: Tensor) -> Tensor:
    """`~self`."""
def bitwise_or(input: Tensor | Number, other: Any) -> Tensor:
    """`self | other`."""
def bitwise_right_shift(input: Tensor | Number, other: Any) -> Tensor:
    """`self >> other`."""
def bitwise_xor(input: Tensor | Number, other: Any) -> Tensor:
    """`self ^ other`."""
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices."""
def broadcast_to(
    input: Tensor,
    *sizes: SupportsIndex | Sequence[SupportsIndex],
    size: SupportsIndex | Sequence[SupportsIndex] | None = None,
) -> Tensor:
    """As `expand`."""
def ceil(input: Tensor) -> Tensor:
    """Each element, rounded up."""
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """This tensor split into at most `chunks` pieces of one size; the last may be smaller."""
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Each element, or the bound that it exceeds. Bounds are numbers or tensors; either may be left
    out.
    """
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Each element, or the upper bound that it is above."""
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Each element, or the lower bound that it is below."""
def clone(input: Tensor) -> Tensor:
    """A tensor of the same value, through which gradients flow back to this one."""
def cos(input: Tensor) -> Tensor:
    """The cosine of each element."""
def cosh(input: Tensor) -> Tensor:
    """The hyperbolic cosine of each element."""
def count_nonzero(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The number of elements that are not 0."""
def cumprod(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The product of each element and those before it along a dimension."""
def cumsum(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The sum of each element and those before it along a dimension."""
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix; or the matrix that has this vector as its diagonal."""
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of the matrices in two dimensions, as the last dimension."""
def div(input: Tensor | Number, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`self / other`; rounded down with rounding_mode="floor", and towards 0 with "trunc"."""
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors."""
def eq(input: Tensor, other: Any) -> Tensor:
    """`self == other`."""
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal. Waits for the result."""
def erf(input: Tensor) -> Tensor:
    """The error function of each element."""
def exp(input: Tensor) -> Tensor:
    """e to the power of each element."""
def exp2(input: Tensor) -> Tensor:
    """2 to the power of each element."""
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """This tensor repeated to another's shape."""
def expm1(input: Tensor) -> Tensor:
    """exp(x) - 1 of each element, exact near 0."""
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim merged into one."""
def flip(
    input: Tensor,
    *reversed: SupportsIndex | Sequence[SupportsIndex],
    dims: SupportsIndex | Sequence[SupportsIndex] | None = None,
) -> Tensor:
    """This tensor with the elements reversed along some dimensions."""
def floor(input: Tensor) -> Tensor:
    """Each element, rounded down."""
def floor_divide(input: Tensor, other: Any) -> Tensor:
    """`self // other`: the quotient, rounded down."""
def fmod(input: Tensor, other: Any) -> Tensor:
    """The remainder of a division rounded towards 0; it has the sign of `self`."""
def frac(input: Tensor) -> Tensor:
    """The fractional part of each element: x - trunc(x)."""
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The elements at the indices along a dimension, in the shape of `index`."""
def ge(input: Tensor, other: Any) -> Tensor:
    """`self >= other`."""
def gt(input: Tensor, other: Any) -> Tensor:
    """`self > other`."""
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: bool | int | float = 1
) -> Tensor:
    """This tensor with slices added to those at the indices along a dimension."""
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices at the indices along a dimension."""
def is_floating_point(input: Tensor) -> bool:
    """Whether its dtype is a floating point dtype."""
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether each element differs from the other's by at most `atol + rtol * abs(other)`."""
def isfinite(input: Tensor) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
def isinf(input: Tensor) -> Tensor:
    """Whether each element is infinite."""
def isnan(input: Tensor) -> Tensor:
    """Whether each element is NaN."""
def le(input: Tensor, other: Any) -> Tensor:
    """`self <= other`."""
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """A weighted step from here to `end`: `self + weight * (end - self)`."""
def log(input: Tensor) -> Tensor:
    """The natural logarithm of each element."""
def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10 of each element."""
def log1p(input: Tensor) -> Tensor:
    """log(1 + x) of each element, exact near 0."""
def log2(input: Tensor) -> Tensor:
    """The logarithm to base 2 of each element."""
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The logarithm of the softmax, exact also where that rounds to 0."""
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Whether both elements are not 0."""
def logical_not(input: Tensor) -> Tensor:
    """Whether each element is 0."""
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Whether at least one of two elements is not 0."""
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Whether exactly one of two elements is not 0."""
def logsumexp(input: Tensor, dim: int | Sequence[int] | None, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))), without overflow."""
def lt(input: Tensor, other: Any) -> Tensor:
    """`self < other`."""
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """This tensor with another value where the mask is true."""
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, in one dimension. Waits for the mask."""
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product, also written `a @ b`."""
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element; with its index along a dimension; or the larger elements of two tensors."""
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two elements."""
def mean(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The mean over some dimensions, or over all."""
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element; with its index along a dimension; or the smaller elements of two tensors."""
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two elements."""
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """This tensor with some dimensions moved to other positions, the others in their old order."""
def mul(input: Tensor | Number, other: Any) -> Tensor:
    """`self * other`."""
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
def nan_to_num(
    input: Tensor,
    nan: bool | int | float = 0.0,
    posinf: bool | int | float | None = None,
    neginf: bool | int | float | None = None,
) -> Tensor:
    """NaN and infinities replaced by numbers; infinities by the largest and smallest of the dtype."""
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """The part of a dimension that begins at `start`."""
def ne(input: Tensor, other: Any) -> Tensor:
    """`self != other`."""
def neg(input: Tensor) -> Tensor:
    """`-self`."""
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0. Waits for the data."""
def norm(
    input: Tensor,
    p: Any = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> Tensor:
    """The p-norm of the elements: the Euclidean norm for 2, the largest absolute value for infinity."""
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The matrix of all products of two vectors' elements."""
def permute(
    input: Tensor,
    *order: SupportsIndex | Sequence[SupportsIndex],
    dims: SupportsIndex | Sequence[SupportsIndex] | None = None,
) -> Tensor:
    """This tensor with its dimensions in another order."""
def positive(input: Tensor) -> Tensor:
    """`+self`: the tensor itself."""
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product along a dimension, or of all elements."""
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
def reciprocal(input: Tensor) -> Tensor:
    """1 divided by each element."""
def relu(input: Tensor) -> Tensor:
    """Each element, or 0 where it is negative."""
def remainder(input: Tensor | Number, other: Any) -> Tensor:
    """`self % other`: the remainder of a floor division; it has the sign of `other`."""
def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Each element, or each slice along a dimension, repeated.

    `repeats` may be a tensor or a list with a number for each. A tensor is read, so this waits for it.
    """
def reshape(
    input: Tensor,
    *sizes: SupportsIndex | Sequence[SupportsIndex],
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
) -> Tensor:
    """The same elements in another shape; one size may be -1."""
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """This tensor with its elements shifted along dimensions, circularly."""
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Each element, rounded to this number of decimals; halves are rounded to the even neighbor."""
def rsqrt(input: Tensor) -> Tensor:
    """1 divided by the square root of each element."""
def rsub(input: Tensor, other: Any, *, alpha: bool | int | float = 1) -> Tensor:
    """`other - alpha * self`."""
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | Number | None = None,
    *,
    value: bool | int | float | None = None,
) -> Tensor:
    """This tensor with `src`'s elements, or one value, at the indices along `dim`."""
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """As `scatter`, but the elements are added to this tensor's."""
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One slice along a dimension, without that dimension."""
def selu(input: Tensor) -> Tensor:
    """scale * elu(x), with the constants of self-normalizing networks."""
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)) of each element."""
def sign(input: Tensor) -> Tensor:
    """The sign of each element: -1, 0 or 1."""
def sin(input: Tensor) -> Tensor:
    """The sine of each element."""
def sinh(input: Tensor) -> Tensor:
    """The hyperbolic sine of each element."""
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """exp(x) divided by its sum along a dimension."""
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Sorted:
    """The elements in order along a dimension, and the index of each."""
def split(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """This tensor split into pieces of this size (the last may be smaller), or of these sizes."""
def sqrt(input: Tensor) -> Tensor:
    """The square root of each element."""
def square(input: Tensor) -> Tensor:
    """The square of each element."""
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """This tensor without its dimensions of size 1, or without those of `dim` that have size 1."""
def std(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: bool | int | float | None = None,
) -> Tensor:
    """The standard deviation: the square root of the variance."""
def sub(input: Tensor | Number, other: Any, *, alpha: bool | int | float = 1) -> Tensor:
    """`self - alpha * other`."""
def sum(
    input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The sum over some dimensions, or over all."""
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """As `transpose`."""
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or a number stays as it is."""
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As `gather`; the other dimensions are broadcast. Over the flattened tensor if no dim is given."""
def tan(input: Tensor) -> Tensor:
    """The tangent of each element."""
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of each element."""
def tile(
    input: Tensor,
    *counts: SupportsIndex | Sequence[SupportsIndex],
    dims: SupportsIndex | Sequence[SupportsIndex] | None = None,
) -> Tensor:
    """As `repeat`; leading dimensions for which no number is given are not repeated."""
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """The k largest (or smallest) elements along a dimension, in order, and the index of each."""
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """This tensor with two dimensions swapped."""
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of each matrix, zeros above."""
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of each matrix, zeros below."""
def true_divide(input: Tensor, other: Any) -> Tensor:
    """`self / other`."""
def trunc(input: Tensor) -> Tensor:
    """Each element, rounded towards 0."""
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension."""
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dimension split into several; one size may be -1."""
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct values, in ascending order. Waits for the data."""
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """This tensor with a new dimension of size 1."""
def var(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: bool | int | float | None = None,
) -> Tensor:
    """The variance. It divides by the number of elements less the correction, which is 1."""

absolute = abs
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
clip = clamp
divide = div
fix = trunc
greater = gt
greater_equal = ge
less = lt
less_equal = le
moveaxis = movedim
multiply = mul
negative = neg
not_equal = ne
subtract = sub
swapdims = transpose
