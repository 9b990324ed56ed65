"""Elementwise functions, reductions and selections of tiles, with masks, dtypes and undefined elements."""

import math
from typing import Any

import numpy as np

from triton_viz.dsls.nki import nki_machine
from triton_viz.dsls.nki.dtypes import is_float, promote
from triton_viz.dsls.nki.functions import FUNCTIONS, Function, identity_of
from triton_viz.dsls.nki.tensor import Tensor, as_value
from triton_viz.dsls.nki.tiles import (
    Operand,
    aligned,
    as_mask,
    by_partition,
    common_shape,
    computing,
    either,
    finish,
    free_elements,
    masked,
    operand,
    result_dtype,
    whole_or_none,
)
from triton_viz.errors import KernelError
from triton_viz.executor.value import Value


def apply(row: Function, *values: np.ndarray) -> np.ndarray:
    """Apply an elementwise function by an op of the builder, so that clients receive it."""
    on_integers = bool(row.integer_name) and not any(is_float(v.dtype) for v in values)
    if not on_integers and not row.client_name:
        raise KernelError(f"{row.name} takes integers, and one of its operands is floating-point")
    if on_integers:
        parts = [v.astype(np.int32) if v.dtype.kind == "b" and not row.boolean else v for v in values]
    else:
        parts = [v.astype(np.float32) if v.dtype != np.float32 else v for v in values]
    common_shape(row.name, *(part.shape for part in parts))
    name = row.integer_name if on_integers else row.client_name
    result: Value = getattr(nki_machine.current().builder, name)(
        row.name, *(as_value(part) for part in parts)
    )
    return result.data[0]


def elementwise(
    name: str,
    *xs: Any,
    dtype: Any = None,
    mask: Any = None,
    instruction: str = "",
    engine: str | None = None,
) -> Tensor:
    """An elementwise function of `nki.language`."""
    row = FUNCTIONS[name]
    if not any(isinstance(x, Tensor) for x in xs):
        raise KernelError(f"{name} takes tiles; compute with plain numbers in Python")
    xs = tuple(by_partition(xs))
    shape = common_shape(name, *(x.shape if isinstance(x, Tensor) else np.shape(x) for x in xs))
    keep = as_mask(mask, shape, *xs)
    ops = [operand(x, keep) for x in xs]
    reads = tuple(op.tensor for op in ops if op.tensor is not None)
    nki_machine.current().instruction(
        instruction or {"scalar": "activation"}.get(row.engine, "tensor_tensor"),
        engine,
        reads,
        elements=free_elements(shape),
        flops=math.prod(shape),
    )
    values = apply(row, *_weak([op.values for op in ops], ops))
    undefined = either(*(op.undefined for op in ops))
    if undefined is not None:
        undefined = np.broadcast_to(undefined, values.shape)
    otherwise = np.dtype(bool) if row.boolean else None
    if (
        not row.boolean
        and not row.integer_name
        and not any(is_float(o.dtype) for o in ops if o.dtype is not None)
    ):
        otherwise = np.dtype(np.float32)
    if any(o.dtype is None and is_float(o.values.dtype) for o in ops) and not row.boolean:
        held = promote(o.dtype for o in ops if o.dtype is not None)
        otherwise = held if is_float(held) else np.dtype(np.float32)
    return finish(None, values, undefined, result_dtype(dtype, ops, otherwise), keep)


def _weak(values: list[np.ndarray], ops: list[Operand]) -> list[np.ndarray]:
    """Values with Python numbers converted to the integer dtype of the tiles."""
    tiles = [v for v, op in zip(values, ops, strict=True) if op.dtype is not None]
    if any(is_float(v.dtype) for v in tiles):
        return values
    dtypes = [v.dtype for v in tiles]
    return [
        v.astype(dtypes[0])
        if op.dtype is None and v.dtype.kind in "iub" and dtypes and dtypes[0].kind in "iu"
        else v
        for v, op in zip(values, ops, strict=True)
    ]


def reduced(
    row_name: str,
    data: Operand,
    axis: Any,
    keepdims: bool,
    mask: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """An operand reduced along axes, and which results are undefined."""
    rank = data.values.ndim
    axes = sorted({int(a) % rank for a in (axis if isinstance(axis, tuple | list) else [axis])})
    if 0 in axes:
        nki_machine.current().report(
            "partition axis",
            "axis 0 is the partition axis, along which the vector engine cannot reduce",
            suggestion="transpose the tile first, or use nisa.tensor_partition_reduce or a matmul with ones",
        )
    order = [a for a in range(rank) if a not in axes] + axes
    kept = tuple(data.values.shape[a] for a in range(rank) if a not in axes)
    values = computing(data.values).transpose(order).reshape(*kept, -1)
    undefined = data.undefined
    if mask is not None:
        inside = mask.transpose(order).reshape(values.shape)
        values = np.where(
            inside, values, np.asarray(identity_of(row_name, values.dtype)).astype(values.dtype)
        )
        undefined = None if undefined is None else undefined & mask
    (result,) = nki_machine.current().builder.reduce((as_value(values),), len(kept), row_name)
    left = None
    if undefined is not None and undefined.any():
        rows = np.broadcast_to(undefined, data.values.shape).transpose(order).reshape(*kept, -1)
        left = whole_or_none(rows, -1, data.tensor, undefined, "in a reduction")
    final = tuple(1 if a in axes else n for a, n in enumerate(data.values.shape)) if keepdims else kept
    return result.data[0].reshape(final), None if left is None else left.reshape(final)


def reduce_tile(
    name: str,
    data: Tensor,
    axis: Any,
    dst: Tensor | None = None,
    dtype: Any = None,
    mask: Any = None,
    keepdims: bool = False,
    negate: bool = False,
    instruction: str = "tensor_reduce",
) -> Tensor:
    """A tile reduced along axes."""
    op, keep = masked(data, mask)
    here = nki_machine.current()
    here.instruction(
        instruction,
        None,
        (data,),
        () if dst is None else (dst,),
        elements=free_elements(data.shape),
        flops=data.size,
    )
    values, undefined = reduced(name, op, axis, keepdims, keep)
    if negate:
        values = -values
    return finish(dst, values, undefined, result_dtype(dtype, [op]), None)


def select(
    condition: Any,
    x: Any,
    y: Any,
    dst: Tensor | None,
    dtype: Any,
    mask: Any,
    instruction: str = "select_reduce",
) -> Tensor:
    """Elements of one tile where a condition is true, and of another where it is not."""
    given = by_partition((condition, x, y))
    shape = common_shape(
        instruction, *(one.shape if isinstance(one, Tensor) else np.shape(one) for one in given)
    )
    sides = [operand(one, as_mask(mask, shape, *given)) for one in given]
    reads = tuple(side.tensor for side in sides if side.tensor is not None)
    nki_machine.current().instruction(
        instruction, None, reads, () if dst is None else (dst,), elements=free_elements(shape)
    )
    true = computing(sides[0].values) != 0
    values = np.where(true, computing(sides[1].values), computing(sides[2].values))
    undefined = None
    if any(side.undefined is not None for side in sides):
        parts = [np.zeros(shape, bool) if s.undefined is None else s.undefined for s in sides]
        undefined = np.where(true, parts[1], parts[2]) | parts[0]
    return finish(dst, values, undefined, result_dtype(dtype, sides[1:]), as_mask(mask, shape))


def dropout(data: Tensor, prob: Any, dst: Tensor | None, dtype: Any, mask: Any) -> Tensor:
    """A tile with a share of its elements set to zero."""
    here = nki_machine.current()
    op, share = operand(data), operand(prob)
    here.instruction(
        "dropout", None, (data,), () if dst is None else (dst,), elements=free_elements(data.shape)
    )
    kept = here.random.random(data.shape) >= aligned(computing(share.values), data.shape)
    values = np.where(kept, computing(op.values), 0)
    return finish(dst, values, op.undefined, result_dtype(dtype, [op]), as_mask(mask, data.shape, data))
