"""Methods that make one number of many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gt.client.base import TensorBase
from gt.errors import ShapeError
from gt.ops import shapes

if TYPE_CHECKING:
    from gt.client.tensor import Tensor

Dims = int | Sequence[int] | None


class ReductionMethods(TensorBase):
    """Sums, means and the like, over some dimensions or all."""

    __slots__ = ()

    def _dims(self, dim: Dims) -> tuple[int, ...] | None:
        if dim is None or dim == ():
            return None
        rank = len(self._value.spec.shape)
        dims = (dim,) if isinstance(dim, int) else dim
        normal = tuple(shapes.normalize_dim(d, rank) for d in dims)
        if len(set(normal)) != len(normal):
            raise ShapeError(f"a dimension appears more than once in dim={dim}")
        # A number has a dimension 0 by PyTorch's leave, but none to reduce.
        return normal if rank else None

    def sum(self, dim: Dims = None, keepdim: bool = False) -> "Tensor":
        """The sum over some dimensions, or over all."""
        return self._apply("sum", dim=self._dims(dim), keepdim=keepdim)

    def mean(self, dim: Dims = None, keepdim: bool = False) -> "Tensor":
        """The mean over some dimensions, or over all."""
        return self._apply("mean", dim=self._dims(dim), keepdim=keepdim)
