"""Functions that arrange elements anew: a tensor's methods, called as `gt.flip(x, 0)`, and a few more."""

from collections.abc import Sequence
from typing import Any

from gt.client.base import apply
from gt.client.functions.base import function
from gt.client.methods.indexing import as_list
from gt.client.tensor import Tensor
from gt.errors import ShapeError
from gt.ops import shapes

__all__ = [
    "broadcast_tensors",
    "broadcast_to",
    "cat",
    "chunk",
    "clone",
    "concat",
    "concatenate",
    "diag",
    "diagonal",
    "expand_as",
    "flatten",
    "flip",
    "hstack",
    "meshgrid",
    "moveaxis",
    "movedim",
    "narrow",
    "permute",
    "ravel",
    "repeat_interleave",
    "reshape",
    "roll",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "t",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unflatten",
    "unsqueeze",
    "vstack",
]

broadcast_to = function(Tensor.broadcast_to)
chunk = function(Tensor.chunk)
clone = function(Tensor.clone)
diag = function(Tensor.diag)
diagonal = function(Tensor.diagonal)
expand_as = function(Tensor.expand_as)
flatten = function(Tensor.flatten)
flip = function(Tensor.flip)
moveaxis = function(Tensor.moveaxis)
movedim = function(Tensor.movedim)
narrow = function(Tensor.narrow)
pad = function(Tensor.pad)
permute = function(Tensor.permute)
ravel = function(Tensor.ravel)
repeat_interleave = function(Tensor.repeat_interleave)
reshape = function(Tensor.reshape)
roll = function(Tensor.roll)
split = function(Tensor.split)
squeeze = function(Tensor.squeeze)
swapaxes = function(Tensor.swapaxes)
t = function(Tensor.t)
tile = function(Tensor.tile)
trace = function(Tensor.trace)
transpose = function(Tensor.transpose)
tril = function(Tensor.tril)
triu = function(Tensor.triu)
unbind = function(Tensor.unbind)
unflatten = function(Tensor.unflatten)
unsqueeze = function(Tensor.unsqueeze)


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
    """Tensors stretched to the shape they have in common."""
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
