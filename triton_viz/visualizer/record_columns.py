"""The elements that all programs of a record accessed, computed from its columns."""

import math
from collections.abc import Iterator

import numpy as np

from triton_viz.core.data import Access, Launch, Record
from triton_viz.core.records.columns import AccessedElements
from triton_viz.core.records.tensor_info import TensorInfo

_AT_ONCE = 1 << 21
"""The number of elements that are expanded at a time."""


def ran(record: Record) -> np.ndarray | None:
    """The lanes that executed a record's op; None for all."""
    return record.programs.active


def program_positions(record: Record) -> np.ndarray:
    """The program of each lane, counted with x fastest, like on the page."""
    gx, gy, gz = record.programs.grid
    order = record.programs.order.all()
    if gy == gz == 1:
        return order
    rest, z = np.divmod(order, gz)
    x, y = np.divmod(rest, gy)
    return x + gx * (y + gy * z)


def in_tensor(record: Access, name: str) -> np.ndarray | None:
    """The lanes whose access was in this tensor; None if there are none."""
    covered = record.elements
    if name not in covered.tensors:
        return None
    lanes = record.programs.lanes
    found = np.ones(lanes, bool) if ran(record) is None else record.programs.active
    assert found is not None
    if covered.which is not None and covered.which.ndim == 1:
        found = found & (np.broadcast_to(covered.which, (lanes,)) == covered.tensors.index(name))
    return found if found.any() else None


def listed(record: Access, tensor: TensorInfo) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """In pieces: the positions in a tensor that all programs accessed, and the values if they were
    recorded."""
    lanes = in_tensor(record, tensor.name)
    if lanes is None:
        return
    covered = record.elements
    size = math.prod(covered.shape)
    chosen = np.flatnonzero(lanes)
    step = max(1, _AT_ONCE // max(1, size))
    packed = tensor.is_contiguous
    count = math.prod(tensor.shape)
    for begin in range(0, len(chosen), step):
        part = chosen[begin : begin + step]
        mask = _mask(covered, part)
        if covered.which is not None and covered.which.ndim > 1:
            which = covered.which[part if len(covered.which) > 1 else [0]]
            mask = mask & (which == covered.tensors.index(tensor.name)).reshape(len(which), size)
        mask = np.broadcast_to(mask, (len(part), size))
        offsets = np.broadcast_to(_offsets(covered, part), (len(part), size))[mask]
        positions = offsets if packed else tensor.elements(offsets)
        inside = (positions >= 0) & (positions < count)
        values = None
        if record.values is not None:
            values = record.values[part if len(record.values) > 1 else [0]].reshape(-1, size)
            values = np.broadcast_to(values, (len(part), size))[mask][inside]
        yield positions[inside], values


def runs(record: Access, tensor: TensorInfo) -> tuple[np.ndarray, np.ndarray] | None:
    """`listed` as starts and ends of runs, for blocks whose last step is 1 and whose mask is a box."""
    covered = record.elements
    packed = (
        tensor.is_contiguous and covered.first is not None and bool(covered.steps) and covered.steps[-1] == 1
    )
    lanes = in_tensor(record, tensor.name)
    if (
        not packed
        or lanes is None
        or covered.bits is not None
        or (covered.which is not None and covered.which.ndim > 1)
    ):
        return None
    assert covered.first is not None
    chosen = np.flatnonzero(lanes)
    bounds = covered.box.bounds if covered.box is not None else (None,) * len(covered.shape)
    start = _column(covered.first.all(), chosen)
    begins, ends, alive = start[:, None], None, np.ones((len(chosen), 1), bool)
    for axis, (size, step) in enumerate(zip(covered.shape, covered.steps, strict=True)):
        pair = bounds[axis]
        low = (
            np.zeros(len(chosen), np.int64) if pair is None else np.maximum(_column(pair[0].all(), chosen), 0)
        )
        high = (
            np.full(len(chosen), size) if pair is None else np.minimum(_column(pair[1].all(), chosen), size)
        )
        if axis == len(covered.shape) - 1:
            ends = begins + np.maximum(high, low)[:, None]
            begins = begins + low[:, None]
        else:
            if begins.size * size > 1 << 24:
                return None
            index = np.arange(size)
            inside = (index >= low[:, None]) & (index < high[:, None])
            begins = (begins[:, :, None] + index * step).reshape(len(chosen), -1)
            alive = (alive[:, :, None] & inside[:, None, :]).reshape(len(chosen), -1)
    assert ends is not None
    keep = alive & (ends > begins)
    count = math.prod(tensor.shape)
    return np.clip(begins[keep], 0, count), np.clip(ends[keep], 0, count)


def coverage(launch: Launch, tensor: TensorInfo, kinds: tuple[type[Access], ...]) -> np.ndarray:
    """The number of accesses of all programs to each element of a tensor."""
    count = math.prod(tensor.shape)
    changes = np.zeros(count + 1, np.int32)
    counts = np.zeros(count, np.int32)
    for record in launch.records:
        if not isinstance(record, kinds):
            continue
        found = runs(record, tensor)
        if found is not None:
            for ends, by in zip(found, (1, -1), strict=True):
                _add(changes, ends, by)
        else:
            for positions, _ in listed(record, tensor):
                _add(counts, positions, 1)
    return counts + np.cumsum(changes, dtype=np.int32)[:count]


def _add(counts: np.ndarray, covered: np.ndarray, by: int) -> None:
    """Add to some counts. If many change, processing all counts is faster."""
    if len(covered) * 8 < len(counts):
        np.add.at(counts, covered, by)
    else:
        counts += by * np.bincount(covered, minlength=len(counts)).astype(counts.dtype)


def _column(numbers: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    return np.broadcast_to(numbers, (len(lanes),)) if len(numbers) == 1 else numbers[lanes]


def _offsets(covered: AccessedElements, lanes: np.ndarray) -> np.ndarray:
    """Every element's distance from the tensor's first, a row per lane."""
    if covered.offsets is not None:
        chosen = covered.offsets[lanes] if len(covered.offsets) > 1 else covered.offsets
        return chosen.reshape(len(chosen), -1).astype(np.int64)
    assert covered.first is not None
    block = np.zeros((1,) * len(covered.shape), np.int64)
    for axis, step in enumerate(covered.steps):
        index = np.arange(covered.shape[axis], dtype=np.int64) * step
        block = block + index.reshape(-1, *(1,) * (len(covered.shape) - axis - 1))
    return _column(covered.first.all(), lanes)[:, None] + np.broadcast_to(block, covered.shape).reshape(1, -1)


def _mask(covered: AccessedElements, lanes: np.ndarray) -> np.ndarray:
    """Every element's mask, a row per lane or one for all."""
    size = math.prod(covered.shape)
    if covered.bits is not None:
        rows = covered.bits[lanes] if len(covered.bits) > 1 else covered.bits
        return np.unpackbits(rows, axis=1, count=size).astype(bool)
    inside = np.ones((1, *covered.shape), bool)
    for axis, bounds in enumerate(covered.box.bounds if covered.box is not None else ()):
        if bounds is not None:
            low, high = (_column(end.all(), lanes)[:, None] for end in bounds)
            index = np.arange(covered.shape[axis])
            along = (index >= low) & (index < high)
            inside = inside & along.reshape(
                len(along), *(1,) * axis, -1, *(1,) * (len(covered.shape) - axis - 1)
            )
    return inside.reshape(len(inside), size)
