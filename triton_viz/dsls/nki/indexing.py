"""Indexing: converts index expressions of a kernel to the elements that they select.

An index that is regular (integers, slices, `nl.arange` and sums of them) and inside the tensor gives a view.
Any other index is kept as coordinates, and checked when the elements are read or written, when the mask is
known.
"""

import dataclasses
import operator
from typing import Any

import numpy as np

from triton_viz.errors import UnsupportedError


@dataclasses.dataclass(frozen=True)
class Axis:
    """Evenly spaced indices along an axis."""

    start: int
    step: int
    count: int

    def inside(self, size: int) -> bool:
        """Whether all indices are inside of an axis of this size."""
        last = self.start + self.step * (self.count - 1)
        return not self.count or (min(self.start, last) >= 0 and max(self.start, last) < size)

    def positions(self) -> np.ndarray:
        """All indices, as an array."""
        return self.start + self.step * np.arange(self.count, dtype=np.int64)


class GridIndex(np.ndarray):
    """An index of `mgrid`: it has the grid's rank, and length one along all axes but its own.

    A selected tile has only the axes of its indices. So if a grid has more axes than the tensor has indices,
    the unused axes are dropped: `x[p, f]` has two axes for `p, f, one = nl.mgrid[0:128, 0:512, 0:1]`.
    """


@dataclasses.dataclass(frozen=True)
class Picked:
    """Elements by their coordinates: for each axis of the tensor an array that broadcasts to `shape`."""

    coordinates: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    spread: tuple[int, ...] | None = None
    """The shape with the dropped axes, which masks of the same indices have."""

    def inside(self, size: tuple[int, ...]) -> np.ndarray:
        """Which elements are inside of a tensor of this shape."""
        result = np.ones((1,) * len(self.shape), bool)
        for along, n in zip(self.coordinates, size, strict=True):
            result = result & (along >= 0) & (along < n)
        return np.broadcast_to(result, self.shape)

    def clipped(self, size: tuple[int, ...]) -> tuple[np.ndarray, ...]:
        """The coordinates, clipped to the tensor."""
        return tuple(np.clip(c, 0, max(n - 1, 0)) for c, n in zip(self.coordinates, size, strict=True))

    def at(self, position: tuple[int, ...]) -> tuple[int, ...]:
        """The coordinates of one element."""
        return tuple(int(np.broadcast_to(c, self.shape)[position]) for c in self.coordinates)


Key = list[Any]
"""For each axis of a tensor an int, an `Axis`, an array of indices; None for a new axis."""


def parse(key: Any, shape: tuple[int, ...]) -> Key:
    """An index expression, with one entry for each axis."""
    entries = list(key) if isinstance(key, tuple) else [key]
    named = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if named > len(shape):
        raise IndexError(f"{named} indices for a tensor of shape {shape}")
    rest: Key = [slice(None)] * (len(shape) - named)
    if any(entry is Ellipsis for entry in entries):
        at = next(i for i, entry in enumerate(entries) if entry is Ellipsis)
        entries[at : at + 1] = rest
    else:
        entries += rest
    sizes = iter(shape)
    return [None if entry is None else _entry(entry, next(sizes)) for entry in entries]


def _entry(entry: Any, size: int) -> Any:
    if isinstance(entry, slice):
        step = 1 if entry.step is None else operator.index(entry.step)
        if step < 1:
            raise UnsupportedError(f"a slice's step is at least 1, not {step}")
        start = 0 if entry.start is None else operator.index(entry.start)
        stop = size if entry.stop is None else operator.index(entry.stop)
        if start >= 0 > stop:
            raise IndexError(f"a slice that ends at {stop} is empty: indices do not count from the end")
        return Axis(start, step, max(0, -(-(stop - start) // step)))
    if isinstance(entry, np.ndarray):
        if entry.dtype == bool:
            raise UnsupportedError("a tensor cannot be indexed with a mask: give it as mask=")
        return entry if entry.dtype == np.int64 else entry.astype(np.int64)
    if hasattr(entry, "as_index"):  # a tile of indices
        return np.asarray(entry.as_index())
    return operator.index(entry)


def basic(key: Key) -> bool:
    """Whether the key has integers and slices only."""
    return not any(isinstance(entry, np.ndarray) for entry in key)


def picked(key: Key) -> Picked:
    """The coordinates that a key selects, with NumPy's rules for the axes of the result."""
    if any(entry is None for entry in key):
        raise UnsupportedError(
            "a new axis (None) cannot be combined with nl.arange, nor with indices outside of the tensor"
        )
    arrays = [None if isinstance(entry, Axis) else np.asarray(entry) for entry in key]
    chosen = [at for at, array in enumerate(arrays) if array is not None]
    try:
        block = np.broadcast_shapes(*(array.shape for array in arrays if array is not None))
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in arrays if array is not None)
        raise IndexError(f"indices of shapes {shapes} cannot be broadcast together") from None
    together = not chosen or chosen[-1] - chosen[0] + 1 == len(chosen)
    # NumPy keeps the position of indexed axes, or puts them first if slices are between them.
    first = chosen[0] if together and chosen else 0
    slices = [at for at in range(len(key)) if arrays[at] is None]
    before = [at for at in slices if together and at < first]
    after = [at for at in slices if at not in before]
    rank = len(slices) + len(block)
    shape = (
        *(key[at].count for at in before),
        *block,
        *(key[at].count for at in after),
    )
    coordinates: list[np.ndarray] = []
    for at, entry in enumerate(key):
        array = arrays[at]
        if array is not None:
            coordinates.append(array.reshape(array.shape + (1,) * len(after)).astype(np.int64, copy=False))
            continue
        where = before.index(at) if at in before else len(before) + len(block) + after.index(at)
        coordinates.append(entry.positions().reshape(-1, *(1,) * (rank - where - 1)))
    found = Picked(tuple(coordinates), shape)
    return _without_unused(found, len(key)) if any(isinstance(a, GridIndex) for a in key) else found


def _without_unused(found: Picked, indices: int) -> Picked:
    """The index without axes of length one that exceed the number of indices."""
    rank = len(found.shape)
    unused = [axis for axis in range(rank - 1, 0, -1) if found.shape[axis] == 1]
    unused = unused[: max(0, rank - max(indices, 2))]
    kept = [axis for axis in range(rank) if axis not in unused]
    full = [np.asarray(c).reshape((1,) * (rank - c.ndim) + c.shape) for c in found.coordinates]
    coordinates = tuple(c.reshape(tuple(c.shape[axis] for axis in kept)) for c in full)
    return Picked(coordinates, tuple(found.shape[axis] for axis in kept), found.shape)


def steps_of(along: np.ndarray, rank: int) -> tuple[int, tuple[int, ...]] | None:
    """The first index and the step along each of `rank` axes; None if they are not regular."""
    if along.size == 0:
        return 0, (0,) * rank
    along = along.reshape((1,) * (rank - along.ndim) + along.shape)
    first = int(along.flat[0])
    steps = []
    expected = np.full((1,) * rank, first, np.int64)
    for axis, size in enumerate(along.shape):
        if size == 1:
            steps.append(0)
            continue
        origin: list[Any] = [0] * rank
        origin[axis] = 1
        step = int(along[tuple(origin)]) - first
        steps.append(step)
        expected = expected + (np.arange(size, dtype=np.int64) * step).reshape(-1, *(1,) * (rank - axis - 1))
    return (first, tuple(steps)) if np.array_equal(expected, along) else None
