"""Methods that end in `_`, and `+=` and its like: the tensor takes on a new value.

Nothing is overwritten. What has read the old value keeps it, and the tape remembers it; views look again
(`gt.client.views`).
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from gt.client.autograd import Leaf, is_grad_enabled
from gt.client.base import Number, TensorBase, check_number, create, upload
from gt.client.methods.activations import ActivationMethods
from gt.client.random import next_seed
from gt.errors import ArgumentError, DTypeError, GraphError, ShapeError
from gt.ops import dtypes, shapes

if TYPE_CHECKING:
    from gt.client.tensor import Tensor


class InPlaceMethods(ActivationMethods):
    """In-place arithmetic, and filling."""

    __slots__ = ()

    def _become(self, result: "Tensor") -> "Tensor":
        raise NotImplementedError  # a Tensor's own

    def _in_place(self, result: Any) -> "Tensor":
        """Take on a result, if it fits: its shape must be this one's, and it is cast to this one's dtype."""
        if result is NotImplemented:
            return result
        self._may_change()
        mine, new = self._value.spec, result._value.spec
        if new.shape != mine.shape:
            raise ShapeError(
                f"output with shape {list(mine.shape)} doesn't match the broadcast shape {list(new.shape)}"
            )
        if not dtypes.fits(new.dtype, mine.dtype):
            raise DTypeError(
                f"result type {dtypes.TITLE[new.dtype]} can't be cast to the desired output type "
                f"{dtypes.TITLE[mine.dtype]}"
            )
        return self._become(result._cast(mine.dtype))

    def _may_change(self) -> None:
        """Raise where PyTorch would: a leaf's gradient is that of the value it had."""
        if isinstance(self._edge, Leaf) and self._edge.requires_grad and is_grad_enabled():
            raise GraphError(
                "a leaf Variable that requires grad is being used in an in-place operation. "
                "Do it inside no_grad()"
            )

    # --- operators ---

    def __iadd__(self, other: Any) -> "Tensor":
        return self._in_place(self + other)

    def __isub__(self, other: Any) -> "Tensor":
        return self._in_place(self - other)

    def __imul__(self, other: Any) -> "Tensor":
        return self._in_place(self * other)

    def __itruediv__(self, other: Any) -> "Tensor":
        return self._in_place(self / other)

    def __ifloordiv__(self, other: Any) -> "Tensor":
        return self._in_place(self // other)

    def __imod__(self, other: Any) -> "Tensor":
        return self._in_place(self % other)

    def __ipow__(self, other: Any) -> "Tensor":
        return self._in_place(self**other)

    def __iand__(self, other: Any) -> "Tensor":
        return self._in_place(self & other)

    def __ior__(self, other: Any) -> "Tensor":
        return self._in_place(self | other)

    def __ixor__(self, other: Any) -> "Tensor":
        return self._in_place(self ^ other)

    def __ilshift__(self, other: Any) -> "Tensor":
        return self._in_place(self << other)

    def __irshift__(self, other: Any) -> "Tensor":
        return self._in_place(self >> other)

    # --- arithmetic ---

    def add_(self, other: Any, *, alpha: Number = 1) -> "Tensor":
        """In place, `self + alpha * other`."""
        return self._in_place(self.add(other, alpha=alpha))

    def sub_(self, other: Any, *, alpha: Number = 1) -> "Tensor":
        """In place, `self - alpha * other`."""
        return self._in_place(self.sub(other, alpha=alpha))

    def mul_(self, other: Any) -> "Tensor":
        """In place, `self * other`."""
        return self._in_place(self.mul(other))

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> "Tensor":
        """In place, `self / other`."""
        return self._in_place(self.div(other, rounding_mode=rounding_mode))

    def floor_divide_(self, other: Any) -> "Tensor":
        """In place, `self // other`."""
        return self._in_place(self.floor_divide(other))

    def remainder_(self, other: Any) -> "Tensor":
        """In place, `self % other`."""
        return self._in_place(self.remainder(other))

    def pow_(self, exponent: Any) -> "Tensor":
        """In place, `self ** exponent`."""
        return self._in_place(self.pow(exponent))

    def lerp_(self, end: "Tensor", weight: Any) -> "Tensor":
        """In place, a weighted step to `end`."""
        return self._in_place(self.lerp(end, weight))

    def addcmul_(self, tensor1: "Tensor", tensor2: "Tensor", *, value: Number = 1) -> "Tensor":
        """In place, `self + value * tensor1 * tensor2`."""
        return self._in_place(self.addcmul(tensor1, tensor2, value=value))

    def addcdiv_(self, tensor1: "Tensor", tensor2: "Tensor", *, value: Number = 1) -> "Tensor":
        """In place, `self + value * tensor1 / tensor2`."""
        return self._in_place(self.addcdiv(tensor1, tensor2, value=value))

    def neg_(self) -> "Tensor":
        """In place, `-self`."""
        return self._in_place(-self)

    def abs_(self) -> "Tensor":
        """In place, without the sign."""
        return self._in_place(self.abs())

    def sign_(self) -> "Tensor":
        """In place, the sign."""
        return self._in_place(self.sign())

    def square_(self) -> "Tensor":
        """In place, each element times itself."""
        return self._in_place(self.square())

    def sqrt_(self) -> "Tensor":
        """In place, the square root."""
        return self._in_place(self.sqrt())

    def rsqrt_(self) -> "Tensor":
        """In place, 1 divided by the square root."""
        return self._in_place(self.rsqrt())

    def reciprocal_(self) -> "Tensor":
        """In place, 1 divided by each element."""
        return self._in_place(self.reciprocal())

    def exp_(self) -> "Tensor":
        """In place, e to the power of each element."""
        return self._in_place(self.exp())

    def log_(self) -> "Tensor":
        """In place, the natural logarithm."""
        return self._in_place(self.log())

    def log1p_(self) -> "Tensor":
        """In place, log(1 + x)."""
        return self._in_place(self.log1p())

    def sin_(self) -> "Tensor":
        """In place, the sine."""
        return self._in_place(self.sin())

    def cos_(self) -> "Tensor":
        """In place, the cosine."""
        return self._in_place(self.cos())

    def tanh_(self) -> "Tensor":
        """In place, the hyperbolic tangent."""
        return self._in_place(self.tanh())

    def erf_(self) -> "Tensor":
        """In place, the error function."""
        return self._in_place(self.erf())

    def sigmoid_(self) -> "Tensor":
        """In place, 1 / (1 + exp(-x))."""
        return self._in_place(self.sigmoid())

    def relu_(self) -> "Tensor":
        """In place, 0 where an element is negative."""
        return self._in_place(self.relu())

    def floor_(self) -> "Tensor":
        """In place, rounded down."""
        return self._in_place(self.floor())

    def ceil_(self) -> "Tensor":
        """In place, rounded up."""
        return self._in_place(self.ceil())

    def round_(self, *, decimals: int = 0) -> "Tensor":
        """In place, rounded to the nearest."""
        return self._in_place(self.round(decimals=decimals))

    def trunc_(self) -> "Tensor":
        """In place, rounded towards 0."""
        return self._in_place(self.trunc())

    def clamp_(self, min: Any = None, max: Any = None) -> "Tensor":
        """In place, kept between bounds."""
        return self._in_place(self.clamp(min, max))

    clip_ = clamp_

    def clamp_min_(self, min: Any) -> "Tensor":
        """In place, kept above a bound."""
        return self._in_place(self.clamp_min(min))

    def clamp_max_(self, max: Any) -> "Tensor":
        """In place, kept below a bound."""
        return self._in_place(self.clamp_max(max))

    def logical_not_(self) -> "Tensor":
        """In place, whether each element is 0."""
        return self._in_place(self.logical_not())

    def masked_fill_(self, mask: "Tensor", value: Any) -> "Tensor":
        """In place, another value where the mask is true."""
        return self._in_place(self.masked_fill(mask, value))

    # --- filling ---

    def zero_(self) -> "Tensor":
        """In place, all zeros."""
        return self.fill_(0)

    def fill_(self, value: Any) -> "Tensor":
        """In place, one value everywhere."""
        if isinstance(value, TensorBase):
            if value._value.spec.shape:
                raise ShapeError(
                    "fill_ only supports 0-dimension value tensor but got tensor with "
                    f"{len(value._value.spec.shape)} dimensions."
                )
            return self.copy_(value)
        self._may_change()
        return self._become(self._new("full", value=check_number(value)))

    def copy_(self, src: Any, non_blocking: bool = False) -> "Tensor":
        """In place, another tensor's values, in this one's dtype and stretched to its shape."""
        if isinstance(src, np.ndarray | np.generic):
            src = upload(self._value.client, np.asarray(src))
        if not isinstance(src, TensorBase):
            raise TypeError(f"copy_(): argument 'other' must be Tensor, not {type(src).__name__}")
        self._may_change()
        spec, source = self._value.spec, src._value.spec
        if source.dtype != spec.dtype:
            src = src._apply("cast", dtype=spec.dtype)
        if source.shape != spec.shape:
            src = src._apply("expand", shape=shapes.expand(source.shape, spec.shape))
        elif source.dtype == spec.dtype and src._edge is not None:
            src = src._apply("reshape", shape=spec.shape)  # a place on the tape, between the two tensors
        return self._become(src)  # type: ignore[arg-type] - every TensorBase is a Tensor

    def normal_(self, mean: float = 0.0, std: float = 1.0) -> "Tensor":
        """In place, random numbers from a normal distribution."""
        if std < 0:
            raise ArgumentError(f"normal expects std >= 0.0, but found std {std}")
        self._may_be_random("normal_")
        return self._become(scaled(self._new("randn", seed=next_seed()), std, mean))

    def uniform_(self, a: float = 0.0, b: float = 1.0, **bounds: float) -> "Tensor":
        """In place, random numbers, evenly spread over [a, b). PyTorch calls the bounds `from` and `to`."""
        a, b = bounds.get("from", a), bounds.get("to", b)
        if a > b:
            raise ArgumentError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
        self._may_be_random("uniform_")
        return self._become(scaled(self._new("rand", seed=next_seed()), b - a, a))

    def bernoulli_(self, p: float = 0.5) -> "Tensor":
        """In place, 1 with probability p, and else 0."""
        if not 0 <= p <= 1:
            raise ArgumentError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
        self._may_change()
        return self._become(self._new("bernoulli", p=float(p), seed=next_seed()))

    def _may_be_random(self, name: str) -> None:
        self._may_change()
        dtype = self._value.spec.dtype
        if not dtypes.is_float(dtype):
            raise DTypeError(f'"{name}" not implemented for {dtypes.TITLE[dtype]!r}')

    def _new(self, op: str, **attrs: Any) -> "Tensor":
        """What a creation op makes in this tensor's shape and dtype."""
        spec = self._value.spec
        return create(self._value.client, op, shape=spec.shape, dtype=spec.dtype, **attrs)


def scaled(x: "Tensor", scale: float, shift: float) -> "Tensor":
    """`x * scale + shift`, in as few ops as that takes."""
    x = x if scale == 1 else x * scale
    return x if shift == 0 else x + shift
