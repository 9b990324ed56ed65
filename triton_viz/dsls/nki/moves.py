"""Transfers between HBM, SBUF and PSUM."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import nki_machine
from triton_viz.dsls.nki.dtypes import as_dtype
from triton_viz.dsls.nki.functions import function_of
from triton_viz.dsls.nki.tensor import Tensor, as_value
from triton_viz.dsls.nki.tiles import (
    aligned,
    as_mask,
    finish,
    free_elements,
    masked,
    operand,
    result_dtype,
)
from triton_viz.errors import KernelError, UnsupportedError


def load(src: Tensor, dtype: Any = None, mask: Any = None, dst: Tensor | None = None) -> Tensor:
    """Load elements of HBM into a tile."""
    keep = as_mask(mask, src.shape, src)
    here = nki_machine.current()
    here.instruction("dma_copy", None, (src,), () if dst is None else (dst,), mask=keep)
    value = here.builder.load(src, keep)
    values, undefined = value.data[0], undefined_of(src)
    if undefined is not None and keep is not None:
        undefined = undefined & keep
    if undefined is not None and undefined.any():
        here.report_undefined(src, undefined, "as the source of a load")
        undefined = None
    element_dtype = src.dtype if dtype is None else as_dtype(dtype)
    count = src.size if keep is None else int(keep.sum())
    here.moved("HBM", "SBUF" if dst is None else dst.memory, count * src.itemsize)
    if src.picked is not None:
        keep = _inside(src, keep)
    return finish(dst, values, None, element_dtype, keep)


def _inside(tensor: Tensor, keep: np.ndarray | None) -> np.ndarray | None:
    assert tensor.picked is not None
    inside = tensor.picked.inside(tensor.array.shape)
    return keep if inside.all() else inside if keep is None else keep & inside


def undefined_of(tensor: Tensor) -> np.ndarray | None:
    """Which elements of a part of HBM are undefined."""
    if tensor.undefined is None:
        return None
    if tensor.picked is None:
        return tensor.undefined
    at = tensor.picked.clipped(tensor.array.shape)
    found = np.broadcast_to(tensor.undefined[at], tensor.shape)
    inside = tensor.picked.inside(tensor.array.shape)
    return found & inside


def store(dst: Tensor, value: Any, mask: Any = None) -> None:
    """Store a tile or a scalar in HBM."""
    keep = as_mask(mask, dst.shape, dst)
    here = nki_machine.current()
    source = value if isinstance(value, Tensor) else None
    if source is not None and source.memory == "HBM":
        values, undefined = source.read()
    else:
        values, undefined = operand(value, keep)[:2]
    here.instruction("dma_copy", None, () if source is None else (source,), (dst,), mask=keep)
    values, undefined = _fitted(values, undefined, dst)
    if undefined is not None:
        used = undefined if keep is None else undefined & keep
        if dst.picked is not None:  # elements outside are reported as out of bounds
            used = used & dst.picked.inside(dst.array.shape)
        if used.any():
            assert source is not None
            here.report_undefined(source, used, f"as the value stored in {dst.name}")
    here.builder.store(dst, as_value(values), keep)
    define(dst, keep)
    count = dst.size if keep is None else int(keep.sum())
    here.moved("SBUF" if source is None else source.memory, "HBM", count * dst.itemsize)


def _fitted(
    values: np.ndarray, undefined: np.ndarray | None, dst: Tensor
) -> tuple[np.ndarray, np.ndarray | None]:
    """Values in a destination's shape."""
    if values.ndim == 0 or values.shape == dst.shape:
        return np.broadcast_to(values, dst.shape), undefined
    if values.size == dst.size:
        return values.reshape(dst.shape), None if undefined is None else undefined.reshape(dst.shape)
    try:
        spread = np.broadcast_to(aligned(values, dst.shape), dst.shape)
    except ValueError:
        raise KernelError(
            f"values of shape {values.shape} do not fit into {dst.name}, of shape {dst.shape}"
        ) from None
    left = None if undefined is None else np.broadcast_to(aligned(undefined, dst.shape), dst.shape)
    return spread, left


def define(dst: Tensor, keep: np.ndarray | None) -> None:
    """Mark the elements that a store wrote as defined."""
    if dst.undefined is None:
        return
    if dst.picked is None:
        dst.undefined[... if keep is None else keep] = False
        return
    inside = dst.picked.inside(dst.array.shape)
    inside = inside if keep is None else inside & keep
    dst.undefined[tuple(np.broadcast_to(c, dst.shape)[inside] for c in dst.picked.coordinates)] = False


def copy(
    src: Any,
    dst: Tensor | None = None,
    dtype: Any = None,
    mask: Any = None,
    instruction: str = "tensor_copy",
    engine: str | None = None,
    memory: str = "SBUF",
) -> Tensor:
    """Copy a tile to another, on the chip."""
    op, keep = masked(src, mask)
    here = nki_machine.current()
    destination = memory if dst is None else dst.memory
    here.instruction(
        instruction, engine, (src,), () if dst is None else (dst,), elements=free_elements(src.shape)
    )
    value = here.builder.transfer(as_value(op.values, src.dtype), src.memory, destination, src.name)
    here.moved(src.memory, destination, src.size * src.itemsize)
    values = op.values if op.values.dtype.kind == "V" else value.data[0]
    return finish(dst, values, op.undefined, result_dtype(dtype, [op]), keep, memory)


def load_transposed(
    src: Tensor, axes: tuple[int, ...], dtype: Any, mask: Any, dst: Tensor | None = None
) -> Tensor:
    """Load elements of HBM or SBUF into a tile, with axes in another order."""
    here = nki_machine.current()
    keep = as_mask(mask, src.shape, src)
    here.instruction("dma_transpose", None, (src,), () if dst is None else (dst,), mask=keep)
    destination = "SBUF" if dst is None else dst.memory
    if src.memory == "HBM":
        values = here.builder.load(src, keep).data[0]
        undefined = undefined_of(src)
        if undefined is not None and (undefined if keep is None else undefined & keep).any():
            here.report_undefined(src, undefined, "as the source of a load")
        undefined = None
        if src.picked is not None:
            keep = _inside(src, keep)
    else:
        op = operand(src)
        values, undefined = op.values, op.undefined
        here.builder.transfer(as_value(values, src.dtype), src.memory, destination, src.name)
    here.moved(src.memory, destination, src.size * src.itemsize)
    turned = None if undefined is None else undefined.transpose(axes)
    element_dtype = src.dtype if dtype is None else as_dtype(dtype)
    return finish(
        dst, values.transpose(axes), turned, element_dtype, None if keep is None else keep.transpose(axes)
    )


def atomic(dst: Tensor, value: Any, op: Any, mask: Any) -> None:
    """Add a tile to elements of HBM."""
    if function_of(op, "nl.atomic_rmw").name != "add":
        raise UnsupportedError("nl.atomic_rmw adds; it has no other op")
    here = nki_machine.current()
    keep = as_mask(mask, dst.shape, dst)
    values, undefined = operand(value, keep)[:2]
    values, undefined = _fitted(values, undefined, dst)
    if undefined is not None and (undefined if keep is None else undefined & keep).any():
        here.report_undefined(value, undefined, f"as the value added to {dst.name}")
    here.instruction("dma_copy", None, (value,) if isinstance(value, Tensor) else (), (dst,))
    here.builder.atomic(dst, as_value(values), keep, "add")
    here.moved("SBUF", "HBM", (dst.size if keep is None else int(keep.sum())) * dst.itemsize)
