"""The memory cost of a block: requests, sectors and distinct elements, for many lanes at once.

An access is a block of elements per lane: a first element and a step per axis, between bounds. Blocks with
equal alignment and equal masks have equal costs, so only one block of each such class is examined.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from triton_viz.executor.affine import apart

SECTOR = 32
"""The bytes that a GPU's memory moves at a time."""
REQUEST = 32
"""The elements of one request: one for each thread of a warp."""
_BATCH = 1 << 19
"""The most elements that are expanded at a time."""
_EXAMINED = 64
"""The number of blocks that are examined to find an unknown contiguous axis."""
MOST_ELEMENTS = 1 << 22
"""With more elements than this to compare, only some lanes are examined, and the result is an estimate."""

Bounds = tuple[tuple[np.ndarray, np.ndarray] | None, ...]
"""For each axis of a block, the start and end of the accessed part, of shape (I, L); None for the whole
axis."""


class Batch(msgspec.Struct, eq=False):
    """Accesses of one site to one tensor in I iterations and L lanes, which differ in offset and bounds
    only."""

    width: int
    """The element size in bytes."""
    unit: int
    """The bytes from one offset to the next: the element size of the tensor, unless a pointer was cast."""
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    """The step from one element to the next along each axis, in elements."""
    first: np.ndarray
    """The offset of each block's first element, of shape (I, L)."""
    bounds: Bounds
    active: np.ndarray
    """Which lanes executed the access, of shape (I, L)."""
    offsets: np.ndarray | None = None
    """The offset of every element, of shape (I, L, E), if they are not evenly spaced."""
    keep: np.ndarray | None = None
    """The mask, of shape (I, L, E), if it is not a box."""

    @property
    def size(self) -> int:
        """The number of elements of a block."""
        return math.prod(self.shape)

    @property
    def listed(self) -> bool:
        """Whether elements have to be examined one by one."""
        return self.offsets is not None or self.keep is not None

    def touched(self) -> np.ndarray:
        """The number of elements that each block accesses, of shape (I, L)."""
        if self.keep is not None:
            counts = np.count_nonzero(self.keep, axis=2)
        else:
            counts = np.full(self.first.shape, self.size, np.int64)
            for axis, pair in enumerate(self.bounds):
                if pair is not None:
                    counts = counts // self.shape[axis] * np.maximum(pair[1] - pair[0], 0)
        return np.where(self.active, counts, 0)

    def distinct(self) -> np.ndarray | None:
        """The distinct elements that each block accesses, (I, L); None if elements have to be compared."""
        if self.listed or not _apart(self.steps, self.shape):
            return None
        counts = self.touched()
        for axis, step in enumerate(self.steps):
            if step == 0:
                pair = self.bounds[axis]
                along = self.shape[axis] if pair is None else pair[1] - pair[0]
                counts = counts // np.maximum(along, 1)
        return counts

    def elements(self, rows: np.ndarray, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The offsets of these blocks' elements, of shape (N, E), and their masks."""
        if self.offsets is not None:
            offsets = self.offsets[rows, lanes].astype(np.int64)
        else:
            offsets = self.first[rows, lanes][:, None] + block_offsets(self.shape, self.steps)
        kept = np.broadcast_to(self.active[rows, lanes][:, None], offsets.shape)
        if self.keep is not None:
            return offsets, kept & self.keep[rows, lanes]
        for axis, pair in enumerate(self.bounds):
            if pair is not None:
                index = _index_along(self.shape, axis)
                start, end = (bound[rows, lanes][:, None] for bound in pair)
                kept = kept & (index >= start) & (index < end)
        return offsets, kept

    def restricted(self, lanes: np.ndarray) -> "Batch":
        """The batch restricted to some lanes."""
        return msgspec.structs.replace(
            self,
            first=self.first[:, lanes],
            bounds=tuple(None if p is None else (p[0][:, lanes], p[1][:, lanes]) for p in self.bounds),
            active=self.active[:, lanes],
            offsets=None if self.offsets is None else self.offsets[:, lanes],
            keep=None if self.keep is None else self.keep[:, lanes],
        )


def block_offsets(shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    """The distance of each element of a block from the first, in row-major order."""
    offsets = np.zeros((1,), np.int64)
    for size, step in zip(shape, steps, strict=True):
        offsets = (offsets[:, None] + np.arange(size, dtype=np.int64) * step).reshape(-1)
    return offsets


def _index_along(shape: tuple[int, ...], axis: int) -> np.ndarray:
    inner = math.prod(shape[axis + 1 :])
    return np.arange(math.prod(shape)) // inner % shape[axis]


def _apart(steps: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether elements that differ in more than an axis of step 0 have different offsets."""
    return apart(steps, tuple(size if step else 1 for step, size in zip(steps, shape, strict=True)))


def regular_steps(batch: Batch) -> tuple[int, ...] | None:
    """The step from one element to the next along each axis; None if it is not constant."""
    if batch.offsets is None:
        return batch.steps
    steps = [np.unique(distances) for distances in _distances(batch, batch.active)]
    return tuple(int(s[0]) if len(s) else 0 for s in steps) if all(len(s) < 2 for s in steps) else None


def _distances(batch: Batch, active: np.ndarray) -> Iterator[np.ndarray]:
    """Along each axis, the distances of neighbouring elements that are both accessed."""
    offsets, kept = (array.reshape(-1, *batch.shape) for array in batch.elements(*np.nonzero(active)))
    for axis in range(1, offsets.ndim):
        both = kept.take(range(1, kept.shape[axis]), axis) & kept.take(range(kept.shape[axis] - 1), axis)
        yield np.diff(offsets, axis=axis)[both]


def _typical_steps(batch: Batch) -> tuple[int, ...]:
    """The most frequent distance of neighbours along each axis."""
    if batch.offsets is None:
        return batch.steps
    some = np.zeros_like(batch.active)
    rows, lanes = np.nonzero(batch.active)
    looked = np.linspace(0, len(rows) - 1, min(len(rows), _EXAMINED)).astype(np.int64)
    some[rows[looked], lanes[looked]] = True
    return tuple(int(np.median(np.abs(d))) if d.size else 0 for d in _distances(batch, some))


# --- requests and sectors ---


class Cost(msgspec.Struct, frozen=True):
    """The memory cost of a block."""

    requests: int = 0
    sectors: int = 0
    ideal: int = 0
    """The sectors if the elements of each request were contiguous."""


_costs: dict[tuple[Any, ...], dict[int, tuple[int, int, int]]] = {}
_MOST_COSTS = 1 << 16


def cost_of(batch: Batch, alignment: int) -> Cost:
    """The memory cost of all blocks of a batch. `alignment` is the byte address of offset 0.

    Elements are assigned to threads as Triton's compiler does: neighbours in memory go to neighbouring
    threads, along whichever axis of the block they are.
    """
    if batch.listed:
        return _cost_of_listed(batch, alignment)
    codes = (batch.first * batch.unit + alignment) % SECTOR
    for axis, pair in enumerate(batch.bounds):
        if pair is not None:
            radix = batch.shape[axis] + 1
            codes = (codes * radix + pair[0]) * radix + np.maximum(pair[1], 0)
    codes = codes[batch.active]
    if codes.size == 0:
        return Cost()
    if (codes == codes[0]).all():
        classes, counts = codes[:1], np.array([codes.size])
    else:
        classes, counts = np.unique(codes, return_counts=True)
    bounded = tuple(pair is not None for pair in batch.bounds)
    if len(_costs) > 64:
        _costs.clear()
    known = _costs.setdefault((batch.shape, batch.steps, batch.unit, batch.width, bounded), {})
    missing = np.array([code for code in classes.tolist() if code not in known], np.int64)
    if missing.size:
        if len(known) > _MOST_COSTS:
            known.clear()
            missing = classes
        for code, cost in zip(missing.tolist(), _cost_of_classes(missing, batch, bounded), strict=True):
            known[code] = cost
    table = np.array([known[code] for code in classes.tolist()])
    return Cost(*(counts @ table).tolist())


def _cost_of_classes(
    classes: np.ndarray, batch: Batch, bounded: tuple[bool, ...]
) -> list[tuple[int, int, int]]:
    at = _thread_order(batch.shape, batch.steps)
    positions = block_offsets(batch.shape, batch.steps)[at] * batch.unit
    result: list[tuple[int, int, int]] = []
    some = max(1, _BATCH // max(batch.size, 1))
    for begin in range(0, len(classes), some):
        rest = classes[begin : begin + some]
        kept = np.ones((len(rest), batch.size), bool)
        for axis in reversed(range(len(batch.shape))):
            if bounded[axis]:
                radix = batch.shape[axis] + 1
                rest, end = np.divmod(rest, radix)
                rest, start = np.divmod(rest, radix)
                index = _index_along(batch.shape, axis)[at]
                kept &= (index >= start[:, None]) & (index < end[:, None])
        # Negative steps may lead to negative addresses, for which `>>` rounds down, too.
        result += _requests(rest[:, None] + positions, kept, batch.width)
    return result


def _thread_order(shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    """A permutation of a block's elements in which neighbours in memory are adjacent."""
    order = sorted(range(len(shape)), key=lambda axis: -abs(steps[axis]) if steps[axis] else -math.inf)
    return np.arange(math.prod(shape)).reshape(shape).transpose(order).reshape(-1)


def _cost_of_listed(batch: Batch, alignment: int) -> Cost:
    rows, lanes = np.nonzero(batch.active)
    if not len(rows):
        return Cost()
    at = _thread_order(batch.shape, _typical_steps(batch))
    total = np.zeros(3, np.int64)
    some = max(1, _BATCH // max(batch.size, 1))
    for begin in range(0, len(rows), some):
        offsets, kept = batch.elements(rows[begin : begin + some], lanes[begin : begin + some])
        found = _requests(offsets[:, at] * batch.unit + alignment, kept[:, at], batch.width)
        total += np.array(found).sum(axis=0)
    return Cost(*total.tolist())


def _requests(addresses: np.ndarray, kept: np.ndarray, width: int) -> list[tuple[int, int, int]]:
    """For each row of byte addresses: requests, sectors, and sectors at best."""
    rows, size = addresses.shape
    nothing = np.iinfo(np.int64).max
    padded = np.full((rows, -(-size // REQUEST) * REQUEST), nothing)
    np.copyto(padded[:, :size], addresses, where=kept)
    asked = padded.reshape(rows, -1, REQUEST)
    if not (asked[..., 1:] >= asked[..., :-1]).all():
        asked = np.sort(asked, axis=2)
    valid = asked != nothing
    distinct = _changes(asked, valid)
    sectors = _changes(asked >> 5, valid)
    ideal = -(-distinct * width // SECTOR)
    return list(
        zip(
            valid[..., 0].sum(axis=1).tolist(),
            sectors.sum(axis=1).tolist(),
            ideal.sum(axis=1).tolist(),
            strict=True,
        )
    )


def _changes(ordered: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """The number of distinct valid values in each row; rows are sorted, with invalid values last."""
    fresh = valid[..., 1:] & (ordered[..., 1:] != ordered[..., :-1])
    return fresh.sum(axis=-1) + valid[..., 0]


# --- distinct elements of a program ---


def distinct_per_lane(batches: Sequence[Batch], lanes: int) -> tuple[np.ndarray, bool]:
    """The distinct elements that each lane accesses in all batches together, and whether that is exact."""
    batches = _without_copies(batches)
    if len(batches) == 1:
        counts = _of_one_batch(batches[0])
        if counts is not None:
            return counts, True
    elif _separate(batches):
        parts = [distinct_per_lane([batch], lanes) for batch in batches]
        return np.sum([counts for counts, _ in parts], axis=0), all(exact for _, exact in parts)
    return _compared(batches, lanes)


def _without_copies(batches: Sequence[Batch]) -> list[Batch]:
    """Batches without repetitions: a row that is read in three passes is one batch."""
    kept: list[Batch] = []
    for batch in batches:
        if not any(_same(batch, other) for other in kept):
            kept.append(batch)
    return kept


def _same(a: Batch, b: Batch) -> bool:
    if a.listed or b.listed or (a.shape, a.steps, a.first.shape) != (b.shape, b.steps, b.first.shape):
        return False
    for mine, other in zip(a.bounds, b.bounds, strict=True):
        if (mine is None) != (other is None):
            return False
        if mine is not None and other is not None and not all(map(np.array_equal, mine, other)):
            return False
    return np.array_equal(a.first, b.first) and np.array_equal(a.active, b.active)


def _of_one_batch(batch: Batch) -> np.ndarray | None:
    """Each lane's distinct elements, if the offsets of iterations are evenly spaced or equal."""
    counts = batch.distinct()
    if counts is None:
        return None
    if len(counts) == 1:
        return counts[0]
    step = np.diff(batch.first, axis=0)
    if not step.any():
        limits = [bound for pair in batch.bounds if pair is not None for bound in pair]
        whole = all((bound == bound[:1]).all() for bound in limits)
        return counts.max(axis=0) if whole else None
    if (step == step[0, 0]).all() and _apart((int(step[0, 0]), *batch.steps), (len(counts), *batch.shape)):
        return counts.sum(axis=0)
    return None


def _separate(batches: list[Batch]) -> bool:
    """Whether the address ranges of different batches are disjoint in each lane."""
    if any(batch.offsets is not None for batch in batches):
        return False
    spans = []
    for batch in batches:
        ends = [step * (size - 1) for step, size in zip(batch.steps, batch.shape, strict=True)]
        low, high = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
        spans.append((batch.first.min(axis=0) + low, batch.first.max(axis=0) + high))
    return all(
        bool(((a[1] < b[0]) | (b[1] < a[0])).all()) for i, a in enumerate(spans) for b in spans[i + 1 :]
    )


def _compared(batches: list[Batch], lanes: int) -> tuple[np.ndarray, bool]:
    """Each lane's distinct elements, by comparing all. Of lanes that differ by an offset, one is examined."""
    origin = np.min([batch.first.min(axis=0) for batch in batches], axis=0)
    random = np.random.default_rng(0)
    codes = np.zeros(lanes, np.uint64)
    alike = not any(batch.listed for batch in batches)
    if alike:
        for batch in batches:
            columns = [batch.first - origin, batch.active]
            columns += [bound for pair in batch.bounds if pair is not None for bound in pair]
            for column in columns:
                factors = random.integers(1, 2**63, len(column), np.uint64)[:, None] | np.uint64(1)
                codes = codes + (np.broadcast_to(column, batch.first.shape).astype(np.uint64) * factors).sum(
                    axis=0, dtype=np.uint64
                )
        _, picked, of = np.unique(codes, return_index=True, return_inverse=True)
    else:
        picked = of = np.arange(lanes)
    each = sum(len(batch.first) * batch.size for batch in batches)
    most = max(1, MOST_ELEMENTS // max(each, 1))
    exact = len(picked) <= most
    looked = picked if exact else picked[np.linspace(0, len(picked) - 1, most).astype(np.int64)]
    counts = np.empty(len(looked), np.int64)
    some = max(1, _BATCH // max(each, 1))
    for begin in range(0, len(looked), some):
        part = looked[begin : begin + some]
        counts[begin : begin + some] = _distinct([_rows(batch, part) for batch in batches])
    if exact:
        return counts[of], True
    return np.full(lanes, counts.mean()), False


def _rows(batch: Batch, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.repeat(np.arange(len(batch.first)), len(lanes))
    offsets, kept = batch.elements(rows, np.tile(lanes, len(batch.first)))

    def by_lane(array: np.ndarray) -> np.ndarray:
        return array.reshape(len(batch.first), len(lanes), -1).swapaxes(0, 1).reshape(len(lanes), -1)

    return by_lane(offsets), by_lane(kept)


def _distinct(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    nothing = np.iinfo(np.int64).max
    positions = np.concatenate([np.where(kept, offsets, nothing) for offsets, kept in parts], axis=1)
    positions.sort(axis=1)
    return _changes(positions, positions != nothing)
