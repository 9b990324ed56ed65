"""Functions of several tensors: joining, stacking, broadcasting."""

from collections.abc import Sequence
from typing import Any

from gt.errors import ShapeError
from gt.ops import shapes
from gt.tensors.base import apply
from gt.tensors.methods.indexing import as_list
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.tensor import Tensor

__all__ = ["broadcast_tensors", "cat", "concat", "concatenate", "hstack", "meshgrid", "stack", "vstack"]


@with_numpy_names
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along one of their dimensions."""
    given = as_list(tensors)
    if not given:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    # An empty vector joins anything: PyTorch allows it, for loops that start from one.
    joined = [x for x in given if x.shape != (0,)] or given
    dim = shapes.normalize_dim(dim, joined[0].ndim)
    return apply("cat", tuple(joined), {"dim": dim})


concat = concatenate = cat


@with_numpy_names
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension."""
    given = as_list(tensors)
    if not given:
        raise ShapeError("stack expects a non-empty TensorList")
    dim = shapes.normalize_dim(dim, given[0].ndim + 1)
    return apply("stack", tuple(given), {"dim": dim})


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined side by side."""
    given = [x if x.ndim else x.reshape(1) for x in as_list(tensors)]
    return cat(given, 0 if given and given[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined one below the other; a vector is a row."""
    return cat([x if x.ndim > 1 else x.reshape(1, -1) for x in as_list(tensors)])


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Tensors broadcast to their common shape."""
    shape: tuple[int, ...] = ()
    for x in tensors:
        shape = shapes.broadcast(shape, x.shape)
    return tuple(x.expand(shape) for x in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """For vectors of coordinates, the coordinates of every point of their grid."""
    vectors = as_list(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], Sequence) else tensors)
    if indexing not in ("ij", "xy"):
        raise ValueError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for x in vectors:
        if x.ndim > 1:
            raise ShapeError(f"Expected 0D or 1D tensor in the tensor list but got: {list(x.shape)}")
    shape = tuple(x.numel() for x in vectors)
    grids = [
        x.reshape((1,) * place + (-1,) + (1,) * (len(shape) - place - 1)).expand(shape)
        for place, x in enumerate(vectors)
    ]
    if indexing == "xy" and len(grids) > 1:
        grids = [grid.transpose(0, 1) for grid in grids]
    return tuple(grids)
