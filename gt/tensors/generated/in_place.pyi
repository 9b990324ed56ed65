# fmt: off
"""Written by `python -m tools.op_list`."""

from typing import Any

from gt.tensors.base import Number, TensorBase
from gt.tensors.tensor import Tensor

class GeneratedInPlace(TensorBase):
    """`x.NAME_()` for every method that has an in-place form, and `x += y` and its like."""

    def __iadd__(self, other: Any) -> Tensor: ...
    def __iand__(self, other: Any) -> Tensor: ...
    def __ifloordiv__(self, other: Any) -> Tensor: ...
    def __ilshift__(self, other: Any) -> Tensor: ...
    def __imod__(self, other: Any) -> Tensor: ...
    def __imul__(self, other: Any) -> Tensor: ...
    def __ior__(self, other: Any) -> Tensor: ...
    def __ipow__(self, other: Any) -> Tensor: ...
    def __irshift__(self, other: Any) -> Tensor: ...
    def __isub__(self, other: Any) -> Tensor: ...
    def __itruediv__(self, other: Any) -> Tensor: ...
    def __ixor__(self, other: Any) -> Tensor: ...
    def abs_(self) -> Tensor:
        """As `abs`, in place."""
    def absolute_(self) -> Tensor:
        """As `abs`, in place."""
    def acos_(self) -> Tensor:
        """As `acos`, in place."""
    def acosh_(self) -> Tensor:
        """As `acosh`, in place."""
    def add_(self, other: Any, *, alpha: bool | int | float = 1) -> Tensor:
        """As `add`, in place."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: bool | int | float = 1) -> Tensor:
        """As `addcdiv`, in place."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: bool | int | float = 1) -> Tensor:
        """As `addcmul`, in place."""
    def addmm_(
        self, mat1: Tensor, mat2: Tensor, *, beta: bool | int | float = 1, alpha: bool | int | float = 1
    ) -> Tensor:
        """As `addmm`, in place."""
    def addmv_(
        self, mat: Tensor, vec: Tensor, *, beta: bool | int | float = 1, alpha: bool | int | float = 1
    ) -> Tensor:
        """As `addmv`, in place."""
    def arccos_(self) -> Tensor:
        """As `acos`, in place."""
    def arccosh_(self) -> Tensor:
        """As `acosh`, in place."""
    def arcsin_(self) -> Tensor:
        """As `asin`, in place."""
    def arcsinh_(self) -> Tensor:
        """As `asinh`, in place."""
    def arctan2_(self, other: Tensor) -> Tensor:
        """As `atan2`, in place."""
    def arctan_(self) -> Tensor:
        """As `atan`, in place."""
    def arctanh_(self) -> Tensor:
        """As `atanh`, in place."""
    def asin_(self) -> Tensor:
        """As `asin`, in place."""
    def asinh_(self) -> Tensor:
        """As `asinh`, in place."""
    def atan2_(self, other: Tensor) -> Tensor:
        """As `atan2`, in place."""
    def atan_(self) -> Tensor:
        """As `atan`, in place."""
    def atanh_(self) -> Tensor:
        """As `atanh`, in place."""
    def baddbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: bool | int | float = 1, alpha: bool | int | float = 1
    ) -> Tensor:
        """As `baddbmm`, in place."""
    def bitwise_and_(self, other: Any) -> Tensor:
        """As `bitwise_and`, in place."""
    def bitwise_left_shift_(self, other: Any) -> Tensor:
        """As `bitwise_left_shift`, in place."""
    def bitwise_not_(self) -> Tensor:
        """As `bitwise_not`, in place."""
    def bitwise_or_(self, other: Any) -> Tensor:
        """As `bitwise_or`, in place."""
    def bitwise_right_shift_(self, other: Any) -> Tensor:
        """As `bitwise_right_shift`, in place."""
    def bitwise_xor_(self, other: Any) -> Tensor:
        """As `bitwise_xor`, in place."""
    def ceil_(self) -> Tensor:
        """As `ceil`, in place."""
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """As `clamp`, in place."""
    def clamp_max_(self, max: Any) -> Tensor:
        """As `clamp_max`, in place."""
    def clamp_min_(self, min: Any) -> Tensor:
        """As `clamp_min`, in place."""
    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """As `clamp`, in place."""
    def cos_(self) -> Tensor:
        """As `cos`, in place."""
    def cosh_(self) -> Tensor:
        """As `cosh`, in place."""
    def cumprod_(self, dim: int | None = None, dtype: Any = None) -> Tensor:
        """As `cumprod`, in place."""
    def cumsum_(self, dim: int | None = None, dtype: Any = None) -> Tensor:
        """As `cumsum`, in place."""
    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """As `div`, in place."""
    def divide_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """As `div`, in place."""
    def erf_(self) -> Tensor:
        """As `erf`, in place."""
    def exp2_(self) -> Tensor:
        """As `exp2`, in place."""
    def exp_(self) -> Tensor:
        """As `exp`, in place."""
    def expm1_(self) -> Tensor:
        """As `expm1`, in place."""
    def fix_(self) -> Tensor:
        """As `trunc`, in place."""
    def floor_(self) -> Tensor:
        """As `floor`, in place."""
    def floor_divide_(self, other: Any) -> Tensor:
        """As `floor_divide`, in place."""
    def fmod_(self, other: Any) -> Tensor:
        """As `fmod`, in place."""
    def frac_(self) -> Tensor:
        """As `frac`, in place."""
    def index_add_(self, dim: int, index: Tensor, source: Tensor, *, alpha: bool | int | float = 1) -> Tensor:
        """As `index_add`, in place."""
    def lerp_(self, end: Tensor, weight: Any) -> Tensor:
        """As `lerp`, in place."""
    def log10_(self) -> Tensor:
        """As `log10`, in place."""
    def log1p_(self) -> Tensor:
        """As `log1p`, in place."""
    def log2_(self) -> Tensor:
        """As `log2`, in place."""
    def log_(self) -> Tensor:
        """As `log`, in place."""
    def logical_and_(self, other: Tensor) -> Tensor:
        """As `logical_and`, in place."""
    def logical_not_(self) -> Tensor:
        """As `logical_not`, in place."""
    def logical_or_(self, other: Tensor) -> Tensor:
        """As `logical_or`, in place."""
    def logical_xor_(self, other: Tensor) -> Tensor:
        """As `logical_xor`, in place."""
    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """As `masked_fill`, in place."""
    def mul_(self, other: Any) -> Tensor:
        """As `mul`, in place."""
    def multiply_(self, other: Any) -> Tensor:
        """As `mul`, in place."""
    def nan_to_num_(
        self,
        nan: bool | int | float = 0.0,
        posinf: bool | int | float | None = None,
        neginf: bool | int | float | None = None,
    ) -> Tensor:
        """As `nan_to_num`, in place."""
    def neg_(self) -> Tensor:
        """As `neg`, in place."""
    def negative_(self) -> Tensor:
        """As `neg`, in place."""
    def pow_(self, exponent: Any) -> Tensor:
        """As `pow`, in place."""
    def reciprocal_(self) -> Tensor:
        """As `reciprocal`, in place."""
    def relu_(self) -> Tensor:
        """As `relu`, in place."""
    def remainder_(self, other: Any) -> Tensor:
        """As `remainder`, in place."""
    def round_(self, *, decimals: int = 0) -> Tensor:
        """As `round`, in place."""
    def rsqrt_(self) -> Tensor:
        """As `rsqrt`, in place."""
    def scatter_(
        self,
        dim: int,
        index: Tensor,
        src: Tensor | Number | None = None,
        *,
        value: bool | int | float | None = None,
    ) -> Tensor:
        """As `scatter`, in place."""
    def scatter_add_(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """As `scatter_add`, in place."""
    def sigmoid_(self) -> Tensor:
        """As `sigmoid`, in place."""
    def sign_(self) -> Tensor:
        """As `sign`, in place."""
    def sin_(self) -> Tensor:
        """As `sin`, in place."""
    def sinh_(self) -> Tensor:
        """As `sinh`, in place."""
    def sqrt_(self) -> Tensor:
        """As `sqrt`, in place."""
    def square_(self) -> Tensor:
        """As `square`, in place."""
    def sub_(self, other: Any, *, alpha: bool | int | float = 1) -> Tensor:
        """As `sub`, in place."""
    def subtract_(self, other: Any, *, alpha: bool | int | float = 1) -> Tensor:
        """As `sub`, in place."""
    def tan_(self) -> Tensor:
        """As `tan`, in place."""
    def tanh_(self) -> Tensor:
        """As `tanh`, in place."""
    def tril_(self, diagonal: int = 0) -> Tensor:
        """As `tril`, in place."""
    def triu_(self, diagonal: int = 0) -> Tensor:
        """As `triu`, in place."""
    def true_divide_(self, other: Any) -> Tensor:
        """As `true_divide`, in place."""
    def trunc_(self) -> Tensor:
        """As `trunc`, in place."""
