"""Instructions of `nki.isa` that select, search and collect statistics, with the conventions of
`isa_compute`."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import hardware, nki_machine, nki_ops
from triton_viz.dsls.nki.functions import function_of
from triton_viz.dsls.nki.isa_compute import accumulate, stages
from triton_viz.dsls.nki.isa_enums import reduce_cmd, word
from triton_viz.dsls.nki.isa_operands import FLOAT, not_both_in_psum, per_partition, result, writes
from triton_viz.dsls.nki.nki_ops import (
    apply,
    as_mask,
    computing,
    either,
    finish,
    free_elements,
    masked,
    operand,
)
from triton_viz.dsls.nki.tensor import Tensor
from triton_viz.errors import KernelError

FP32_MIN = float(np.finfo(np.float32).min)


def select_reduce(
    dst: Tensor | None,
    predicate: Tensor,
    on_true: Tensor,
    on_false: Any,
    reduce_res: Tensor | None = None,
    reduce_cmd: Any = reduce_cmd.idle,
    reduce_op: Any = "maximum",
    reverse_pred: bool = False,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """`on_true` where the predicate is true, `on_false` elsewhere; the result's maximum in `reduce_res`."""
    not_both_in_psum("select_reduce", predicate, on_true)
    other = on_false
    if isinstance(on_false, Tensor) and on_false.size == on_false.shape[0] and on_false.ndim != on_true.ndim:
        other = on_false.reshape(on_false.shape[0], *(1,) * (on_true.ndim - 1))
    sides = (other, on_true) if reverse_pred else (on_true, other)
    tile = nki_ops.select(predicate, *sides, dst, dtype or on_true.dtype, mask)
    values, undefined = tile.read()
    command = word(reduce_cmd)
    if reduce_res is not None and command == "idle":
        reduce_cmd = "reset_reduce"
    values = values.astype(np.float32)
    accumulate(
        "vector", values, undefined, reduce_op, reduce_res, reduce_cmd, as_mask(mask, tile.shape, tile), tile
    )
    return tile


def range_select(
    dst: Tensor | None,
    on_true_tile: Tensor,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Any,
    bound1: Any,
    reduce_cmd: Any = reduce_cmd.reset_reduce,
    reduce_res: Tensor | None = None,
    reduce_op: Any = "maximum",
    range_start: int = 0,
    on_false_value: float = FP32_MIN,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The elements whose index in the partition is between bounds, and a constant elsewhere."""
    x, keep = masked(on_true_tile, mask)
    bounds = [per_partition(b, 2, "range_select", on_true_tile.shape[0]) for b in (bound0, bound1)]
    reads = tuple(o.tensor for o in (x, *bounds) if o.tensor is not None)
    nki_machine.current().instruction(
        "range_select", None, reads, writes(dst, reduce_res), elements=free_elements(on_true_tile.shape)
    )
    flat = x.values.reshape(x.values.shape[0], -1).astype(np.float32)
    positions = (int(range_start) + np.arange(flat.shape[1], dtype=np.float32))[None, :]
    rows = [function_of(op, "nisa.range_select") for op in (comp_op0, comp_op1)]
    inside = [
        row.compute(positions, b.values.astype(np.float32)) for row, b in zip(rows, bounds, strict=True)
    ]
    chosen = np.where(inside[0] & inside[1], flat, np.float32(on_false_value)).reshape(x.values.shape)
    if reduce_res is not None:
        accumulate("vector", chosen, x.undefined, reduce_op, reduce_res, reduce_cmd, keep, on_true_tile)
    return result(dst, chosen, either(x.undefined), dtype, [x], keep)


def reciprocal(
    dst: Tensor | None,
    data: Tensor,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The reciprocal of each element."""
    return _unary("reciprocal", "reciprocal", dst, data, dtype, mask)


def _unary(
    instruction: str, function: str, dst: Tensor | None, data: Tensor, dtype: Any, mask: Any
) -> Tensor:
    x, keep = masked(data, mask)
    nki_machine.current().instruction(
        instruction, None, (data,), writes(dst), elements=free_elements(data.shape), flops=data.size
    )
    values = apply(function_of(function, instruction), x.values.astype(np.float32))
    return result(dst, values, x.undefined, dtype, [x], keep)


def exponential(
    dst: Tensor | None,
    src: Tensor,
    max_value: Any = 0.0,
    reduce_res: Tensor | None = None,
    reduce_cmd: Any = reduce_cmd.idle,
    reduce_init: Any = 0.0,
    name: str | None = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """`exp(src - max_value)`, and optionally its sum in each partition."""
    both = [("subtract", max_value, False), ("exp", None, False)]
    values, undefined, sides = stages(src, None, both, "exponential", None, writes(dst, reduce_res))
    accumulate("vector", values, undefined, "add", reduce_res, reduce_cmd, None, src, reduce_init)
    return result(dst, values, undefined, dtype, sides[:1], None)


def bn_stats(
    dst: Tensor | None,
    data: Tensor,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """For each partition count, mean and variance * count of elements at even indices, then at odd ones."""
    x, keep = masked(data, mask)
    if free_elements(data.shape) > hardware.BN_STATS_FREE:
        nki_machine.current().report(
            "bn_stats tile",
            f"bn_stats takes at most {hardware.BN_STATS_FREE} elements of each partition, and {data.name} of "
            f"shape {data.shape} has {free_elements(data.shape)}",
            tensor=data.name,
            suggestion="call it for parts of nl.tile_size.bn_stats_fmax, and give all results to bn_aggr",
        )
    nki_machine.current().instruction(
        *("bn_stats", None, (data,), writes(dst)), elements=free_elements(data.shape), flops=3 * data.size
    )
    flat = x.values.reshape(data.shape[0], -1).astype(np.float32)
    inside = np.ones(flat.shape, bool) if keep is None else keep.reshape(flat.shape)
    rows = None
    if x.undefined is not None:
        used = np.broadcast_to(x.undefined, data.shape).reshape(flat.shape) & inside
        # The statistics of a completely undefined row are undefined, not an error.
        both = used.any(axis=1) & (used.sum(axis=1) != inside.sum(axis=1))
        if both.any():
            nki_machine.current().report_undefined(data, used.reshape(data.shape), "in bn_stats")
        rows = np.broadcast_to(used.any(axis=1, keepdims=True), (len(flat), 6))
    columns = []
    for part in (0, 1):
        some, counted = flat[:, part::2], inside[:, part::2]
        count = counted.sum(axis=1)
        mean = np.where(counted, some, 0).sum(axis=1, dtype=np.float32) / np.maximum(count, 1)
        spread = np.where(counted, (some - mean[:, None]) ** 2, 0).sum(axis=1, dtype=np.float32)
        columns += [count, mean, spread]
    return result(dst, np.stack(columns, axis=1).astype(np.float32), rows, dtype or FLOAT, [x], None)


def bn_aggr(
    dst: Tensor | None,
    data: Tensor,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Mean and variance of each partition, from one or more results of `bn_stats`."""
    x = masked(data, mask)[0]
    flat = x.values.reshape(data.shape[0], -1).astype(np.float32)
    if flat.shape[1] % 3:
        raise KernelError(
            f"bn_aggr takes triples, and {data.name} has {flat.shape[1]} elements in each partition"
        )
    nki_machine.current().instruction(
        *("bn_aggr", None, (data,), writes(dst)), elements=flat.shape[1], flops=data.size
    )
    triples = flat.reshape(data.shape[0], -1, 3)
    count, mean, spread = (triples[..., n].astype(np.float64) for n in range(3))
    total = np.maximum(count.sum(axis=1), 1)
    centre = (count * mean).sum(axis=1) / total
    variance = (spread + count * (mean - centre[:, None]) ** 2).sum(axis=1) / total
    values = np.stack([centre, variance], axis=1).astype(np.float32)
    rows = None
    if x.undefined is not None:
        used = np.broadcast_to(x.undefined, data.shape).reshape(flat.shape)
        whole = nki_ops.whole_or_none(used, 1, data, x.undefined, "in bn_aggr")
        rows = np.broadcast_to(whole[:, None], values.shape)
    return result(dst, values, rows, dtype or FLOAT, [x], None)


def _present(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Values with masked-off elements replaced by one that is not the maximum and equals no other."""
    return values if mask is None else np.where(mask, values.astype(np.float32), -np.inf)


def max8(
    dst: Tensor | None, src: Tensor, name: str | None = None, *, dtype: Any = None, mask: Any = None
) -> Tensor:
    """The eight largest elements of each partition, in descending order."""
    x = operand(src)
    flat = _present(computing(x.values), as_mask(mask, src.shape, src)).reshape(src.shape[0], -1)
    if not 8 <= flat.shape[1] <= 16384:
        raise KernelError(
            f"max8 takes 8 to 16384 elements of each partition, and {src.name} has {flat.shape[1]}"
        )
    nki_machine.current().instruction("max8", None, (src,), writes(dst), elements=flat.shape[1])
    return result(dst, -np.sort(-flat, axis=1)[:, :8], None, dtype, [x], None)


def nc_find_index8(
    dst: Tensor | None,
    data: Tensor,
    vals: Tensor,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The index of the first occurrence of each of eight values, in each partition."""
    x, wanted = operand(data), operand(vals)
    flat = _present(computing(x.values), as_mask(mask, data.shape, data)).reshape(data.shape[0], -1)
    chosen = computing(wanted.values).reshape(data.shape[0], -1)
    nki_machine.current().instruction(
        "nc_find_index8", None, (data, vals), writes(dst), elements=flat.shape[1]
    )
    values = np.argmax(flat[:, None, :] == chosen[:, :, None], axis=2)
    return result(dst, values.astype(np.uint32), None, dtype or np.uint32, [x], None)


def nc_match_replace8(
    dst: Tensor | None,
    data: Tensor,
    vals: Tensor,
    imm: float,
    dst_idx: Tensor | None = None,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The data, with the first element that equals each of eight values replaced."""
    x, wanted = operand(data), operand(vals)
    flat, chosen = (computing(o.values).reshape(data.shape[0], -1) for o in (x, wanted))
    keep = as_mask(mask, data.shape, data)
    matched = np.ones(flat.shape, bool) if keep is None else keep.reshape(flat.shape)
    nki_machine.current().instruction(
        "nc_match_replace8", None, (data, vals), writes(dst, dst_idx), elements=flat.shape[1]
    )
    replaced = np.array(flat)
    positions = np.zeros(chosen.shape, np.int64)
    for row in range(len(flat)):
        for column, value in enumerate(chosen[row]):
            found = np.flatnonzero((replaced[row] == value) & matched[row])
            positions[row, column] = found[0] if len(found) else np.iinfo(np.uint32).max
            if len(found):
                replaced[row, found[0]] = imm
    if dst_idx is not None:
        finish(dst_idx, positions, None, dst_idx.dtype, None)
    return result(dst, replaced.reshape(data.shape), None, dtype, [x], keep)


def dropout(
    dst: Tensor | None,
    data: Tensor,
    prob: Any,
    name: str | None = None,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """A tile, with a share of its elements set to zero."""
    return nki_ops.dropout(data, prob, dst, dtype, mask)
