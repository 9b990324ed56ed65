"""Operands, masks and results of instructions, and the allocation of tiles."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.nki import nki_machine
from triton_viz.dsls.nki.buffers import MemoryRegion, as_region
from triton_viz.dsls.nki.dtypes import as_dtype, cast, is_float, promote
from triton_viz.dsls.nki.indexing import GridIndex
from triton_viz.dsls.nki.storage import Storage
from triton_viz.dsls.nki.tensor import Tensor
from triton_viz.errors import KernelError, UnsupportedError


class Operand(NamedTuple):
    """An operand of an instruction: its values, which of them are undefined, and its tensor."""

    values: np.ndarray
    undefined: np.ndarray | None
    dtype: np.dtype | None
    """None for a Python number, which takes the dtype of the other operands."""
    tensor: Tensor | None


def operand(x: Any, mask: np.ndarray | None = None) -> Operand:
    """An operand from a tile, an array of constants or a scalar."""
    if isinstance(x, Tensor):
        if x.memory == "HBM":
            raise KernelError(
                f"{x.name} is in HBM, and engines compute on SBUF and PSUM: load it first (nl.load, "
                "nisa.dma_copy)"
            )
        keep = None if mask is None or x.picked is None else _spread_from(mask, x.shape)
        values, undefined = x.read(keep)
        return Operand(values, undefined, x.dtype, x)
    if hasattr(x, "value_of_register"):
        x = x.value_of_register()
    values = np.asarray(x)
    if values.dtype.kind not in "biufV":
        raise UnsupportedError(f"{x!r} is neither a tile nor a number")
    if isinstance(x, bool | int | float):
        return Operand(values, None, None, None)
    return Operand(values, None, values.dtype, None)


def _spread_from(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """The mask of a broadcast tile, from a mask over the block: true if it is true for any copy of the
    element."""
    if mask.ndim < len(shape):
        return None
    mask = np.asarray(mask.any(axis=tuple(range(mask.ndim - len(shape)))))
    spread = tuple(axis for axis, n in enumerate(shape) if n == 1 and mask.shape[axis] != 1)
    mask = np.asarray(mask.any(axis=spread, keepdims=True))
    return mask if mask.shape == shape else None


def aligned(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Values prepared for broadcasting to this shape: a vector has one value for each partition."""
    if values.ndim == 1 < len(shape) and len(values) == shape[0]:
        return values.reshape(len(values), *(1,) * (len(shape) - 1))
    return values


def by_partition(xs: Sequence[Any]) -> list[Any]:
    """Operands of equal rank: a tile with one element per partition is broadcast over the free axes."""
    rank = max((x.ndim for x in xs if isinstance(x, Tensor)), default=0)
    return [
        x.reshape(len(x), *(1,) * (rank - 1))
        if isinstance(x, Tensor) and x.picked is None and x.memory != "HBM" and x.ndim == 1 < rank
        else x
        for x in xs
    ]


def as_mask(mask: Any, shape: tuple[int, ...], *of: Any) -> np.ndarray | None:
    """A mask over a block of this shape, the shape of these tensors."""
    if mask is None:
        return None
    if isinstance(mask, Tensor):
        raise UnsupportedError(
            "a mask is made of nl.arange and comparisons, not of a tile: use nl.where for that"
        )
    given = np.asarray(mask, bool)
    shapes = [shape]
    if isinstance(mask, GridIndex):
        spread = [t.spread for t in of if isinstance(t, Tensor) and t.spread is not None]
        shapes = [*(one for one in spread if math.prod(one) == math.prod(shape)), shape]
        if given.ndim > len(shape):  # without the axes that it does not run along
            unused = [axis for axis in range(given.ndim - 1, 0, -1) if given.shape[axis] == 1]
            given_without = given.squeeze(tuple(unused[: given.ndim - len(shape)]))
            given, shapes = (given, shapes) if spread else (given_without, shapes)
    for one in shapes:
        try:
            return np.broadcast_to(given, one).reshape(shape)
        except ValueError:
            continue
    raise KernelError(f"a mask of shape {given.shape} does not fit a block of shape {shape}")


def masked(x: Tensor, mask: Any) -> tuple[Operand, np.ndarray | None]:
    """A tile as an operand, and a mask over it."""
    keep = as_mask(mask, x.shape, x)
    return operand(x, keep), keep


# --- allocation ---


class PartitionDim(int):
    """A size that marks the partition axis."""


def allocate(
    shape: Sequence[int] | int,
    dtype: Any,
    buffer: Any = None,
    name: str = "",
    fill: Any = None,
) -> Tensor:
    """A new tensor. Without `fill` its elements are undefined."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    axis = next((at for at, n in enumerate(sizes) if isinstance(n, PartitionDim)), 0)
    sizes = tuple(int(n) for n in sizes)
    if any(n < 0 for n in sizes):
        raise KernelError(f"a tensor's sizes are not negative: {sizes}")
    region, element_dtype = as_region(buffer), as_dtype(dtype)
    here = nki_machine.current()
    if region is MemoryRegion.shared_hbm:
        found = here.take_shared(sizes, element_dtype)
        if found is not None:
            return Tensor(found)
    if fill is None:
        array, undefined = _empty(sizes, element_dtype), np.ones(sizes, bool)
    else:
        array, undefined = np.empty(sizes, element_dtype), None
        array[...] = cast(np.asarray(fill), element_dtype)
    storage = Storage(array, region.memory, name, undefined, axis)
    if region.memory != "HBM":
        here.on_chip(storage)
        return Tensor(storage)
    launched = here.launched
    storage.path = here.path()
    storage.name = launched.unique(name or here.named_here(storage.path, "hbm"))
    storage.info = TensorInfo.of(storage.name, array)
    launched.adopted.append(storage.info)
    if region is MemoryRegion.shared_hbm:
        launched.shared.append(storage)
    else:
        launched.private.append(storage)
    return Tensor(storage)


def _empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of undefined elements. They are NaN, so that their use is visible in results."""
    return np.full(shape, np.nan if is_float(dtype) else 0, dtype)


def new_tile(
    values: np.ndarray, undefined: np.ndarray | None, dtype: np.dtype, memory: str = "SBUF"
) -> Tensor:
    """A new tile with a result."""
    array = np.array(np.broadcast_to(cast(values, dtype), np.shape(values)), dtype, order="C")
    left = (
        None
        if undefined is None or not undefined.any()
        else np.array(np.broadcast_to(undefined, array.shape))
    )
    storage = Storage(array, memory, "", left)
    here = nki_machine.current()
    here.on_chip(storage)
    storage.made = here.launched.ledger.tick
    return Tensor(storage)


def finish(
    dst: Tensor | None,
    values: np.ndarray,
    undefined: np.ndarray | None,
    dtype: np.dtype,
    mask: np.ndarray | None,
    memory: str = "SBUF",
) -> Tensor:
    """Write the result of an instruction to `dst` where the mask is true, or to a new tile."""
    if dst is None:
        if mask is not None and not mask.all():
            undefined = ~mask if undefined is None else np.broadcast_to(undefined, mask.shape) | ~mask
        tile = new_tile(values, undefined, dtype, memory)
        tile.storage.masked = None if mask is None or mask.all() else np.array(mask)
        here = nki_machine.current()
        here.use(tile)
        here.launched.ledger.written[memory] += tile.size * tile.itemsize
        return tile
    if dst.size != values.size:
        raise KernelError(
            f"a result of shape {values.shape} does not fit into {dst.name}, of shape {dst.shape}"
        )
    if values.shape != dst.shape:
        if dst.shape and values.shape and dst.shape[0] != values.shape[0] and values.shape[0] != values.size:
            raise KernelError(
                f"a result of shape {values.shape} does not fit into {dst.name}, of shape {dst.shape}: they "
                "have different numbers of partitions"
            )
        undefined = None if undefined is None else np.broadcast_to(undefined, values.shape).reshape(dst.shape)
        values = values.reshape(dst.shape)
        mask = None if mask is None else mask.reshape(dst.shape)
    dst.write(values, undefined, mask)
    return dst


def common_shape(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which tiles of these shapes are broadcast."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        said = " and ".join(str(shape) for shape in shapes)
        raise KernelError(f"{name}: tiles of shapes {said} do not fit each other") from None


def result_dtype(dtype: Any, operands: Sequence[Operand], otherwise: np.dtype | None = None) -> np.dtype:
    """The dtype of a result: the given one, or the widest of the operands."""
    if dtype is not None:
        return as_dtype(dtype)
    if otherwise is not None:
        return otherwise
    return promote(op.dtype for op in operands if op.dtype is not None)


def computing(values: np.ndarray) -> np.ndarray:
    """Values in the dtype in which engines compute."""
    if is_float(values.dtype):
        return values.astype(np.float32, copy=False)
    return values


def either(*undefined: np.ndarray | None) -> np.ndarray | None:
    """The elements that are undefined in any of these masks."""
    known = [one for one in undefined if one is not None]
    if not known:
        return None
    result = known[0]
    for one in known[1:]:
        result = result | one
    return result


def free_elements(shape: tuple[int, ...]) -> int:
    """The number of elements of each partition."""
    return math.prod(shape[1:])


def whole_or_none(
    rows: np.ndarray, axis: int, tensor: Tensor | None, undefined: np.ndarray, used: str
) -> np.ndarray:
    """Which results of a reduction along an axis are undefined.

    A result of undefined elements only (a mask left out a whole row) is undefined. A result of both defined
    and undefined elements is an error.
    """
    some, every = rows.any(axis=axis), rows.all(axis=axis)
    if tensor is not None and (some & ~every).any():
        nki_machine.current().report_undefined(tensor, np.broadcast_to(undefined, tensor.shape), used)
    return np.asarray(some)
