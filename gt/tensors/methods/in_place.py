"""In-place methods: the tensor object gets another value.

No value on the server is overwritten: ops that read the old value keep it, and so does the tape. Views of the
tensor are recomputed (`gt.tensors.views`). The in-place forms of other methods (`x.exp_()`, `x += y`) are
made by `gt.tensors.api`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from gt.autograd.graph import Leaf, is_grad_enabled
from gt.errors import ArgumentError, DTypeError, GraphError, ShapeError
from gt.ops import dtypes, shapes
from gt.tensors.base import Number, TensorBase, check_number, create, upload
from gt.tensors.methods.activations import ActivationMethods
from gt.tensors.random import next_seed

if TYPE_CHECKING:
    from gt.tensors.tensor import Tensor


class InPlaceMethods(ActivationMethods):
    """How a tensor gets a new value, and methods that fill it."""

    __slots__ = ()

    def _become(self, result: "Tensor") -> "Tensor":
        raise NotImplementedError  # a Tensor's own

    def _in_place(self, result: Any) -> "Tensor":
        """Replace the value by a result's, which must have the same shape, and is cast to this tensor's
        dtype."""
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
        """Raise GraphError for a leaf that requires a gradient, as PyTorch does."""
        if isinstance(self._edge, Leaf) and self._edge.requires_grad and is_grad_enabled():
            raise GraphError(
                "a leaf Variable that requires grad is being used in an in-place operation. "
                "Do it inside no_grad()"
            )

    def zero_(self) -> "Tensor":
        """Set all elements to 0, in place."""
        return self.fill_(0)

    def fill_(self, value: Any) -> "Tensor":
        """Set all elements to one value, in place."""
        if isinstance(value, TensorBase):
            if value._value.spec.shape:
                raise ShapeError(
                    "fill_ only supports 0-dimension value tensor but got tensor with "
                    f"{len(value._value.spec.shape)} dimensions."
                )
            return self.copy_(value)
        self._may_change()
        return self._become(self._new("full", value=check_number(value)))

    def copy_(self, other: Any, non_blocking: bool = False) -> "Tensor":
        """Copy another tensor's values in place, in this one's dtype, broadcast to its shape."""
        if isinstance(other, np.ndarray | np.generic):
            other = upload(self._value.client, np.asarray(other))
        if isinstance(other, Number):
            return self.fill_(other)
        if not isinstance(other, TensorBase):
            raise TypeError(f"copy_(): argument 'other' must be Tensor, not {type(other).__name__}")
        self._may_change()
        spec, source = self._value.spec, other._value.spec
        if source.dtype != spec.dtype:
            other = other._apply("cast", dtype=spec.dtype)
        if source.shape != spec.shape:
            other = other._apply("expand", shape=shapes.expand(source.shape, spec.shape))
        elif source.dtype == spec.dtype and other._edge is not None:
            other = other._apply("reshape", shape=spec.shape)  # a node for autograd between the two tensors
        return self._become(other)  # type: ignore[arg-type] - every TensorBase is a Tensor

    def normal_(self, mean: float = 0.0, std: float = 1.0) -> "Tensor":
        """Fill with random numbers from a normal distribution, in place."""
        if std < 0:
            raise ArgumentError(f"normal expects std >= 0.0, but found std {std}")
        self._may_be_random("normal_")
        return self._become(scaled(self._new("randn", seed=next_seed()), std, mean))

    def uniform_(self, a: float = 0.0, b: float = 1.0, **bounds: float) -> "Tensor":
        """Fill with random numbers, uniform in [a, b), in place. PyTorch calls the bounds `from` and `to`."""
        a, b = bounds.get("from", a), bounds.get("to", b)
        if a > b:
            raise ArgumentError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
        self._may_be_random("uniform_")
        return self._become(scaled(self._new("rand", seed=next_seed()), b - a, a))

    def bernoulli_(self, p: float = 0.5) -> "Tensor":
        """Fill with 1 with probability p, and 0 otherwise, in place."""
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
        """The result of a creation op in this tensor's shape and dtype."""
        spec = self._value.spec
        return create(self._value.client, op, shape=spec.shape, dtype=spec.dtype, **attrs)


def scaled(x: "Tensor", scale: float, shift: float) -> "Tensor":
    """`x * scale + shift`, in as few ops as that takes."""
    x = x if scale == 1 else x * scale
    return x if shift == 0 else x + shift
