"""Methods that arrange elements anew."""

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from gt.client.base import TensorBase
from gt.errors import ShapeError
from gt.ops import shapes

if TYPE_CHECKING:
    from gt.client.tensor import Tensor

Size = SupportsIndex | Sequence[SupportsIndex]
"""Part of a shape, or a whole one: `f(2, 3)` and `f((2, 3))` mean the same."""


class ShapeMethods(TensorBase):
    """Other shapes of the same elements."""

    __slots__ = ()

    def transpose(self, dim0: int, dim1: int) -> "Tensor":
        """This tensor with two dimensions swapped."""
        rank = len(self._value.spec.shape)
        i, j = shapes.normalize_dim(dim0, rank), shapes.normalize_dim(dim1, rank)
        return self._apply("transpose", dim0=i, dim1=j)

    @property
    def T(self) -> "Tensor":
        """The transpose of a matrix."""
        shape = self._value.spec.shape
        if len(shape) != 2:
            raise ShapeError(f"T is for matrices, and this tensor has shape {list(shape)}; use transpose")
        return self.transpose(0, 1)

    def reshape(self, *shape: Size) -> "Tensor":
        """The same elements in another shape; one size may be -1."""
        return self._apply("reshape", shape=shapes.reshape(self._value.spec.shape, as_shape(shape)))

    view = reshape

    def expand(self, *shape: Size) -> "Tensor":
        """This tensor repeated along its dimensions of size 1; -1 keeps a size."""
        return self._apply("expand", shape=shapes.expand(self._value.spec.shape, as_shape(shape)))


def as_shape(sizes: tuple[Size, ...]) -> tuple[int, ...]:
    """The shape that was given, in one piece or in several."""
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    try:
        return tuple(operator.index(n) for n in given)  # type: ignore[arg-type] - it raises on what is none
    except TypeError:
        raise TypeError(f"a shape is whole numbers, and this is {given!r}") from None
