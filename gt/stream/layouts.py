"""Layouts: how a tensor is distributed over a mesh, which is an ordered list of workers.

    Replicated()        every worker of the mesh has all of it
    Sharded(0)          each has a part, cut along an axis; parts may be of unequal size, or empty
    Partial("sum")      each has a tensor of the whole shape, and the tensor is their sum (or max, or min)

A `Placement` is a layout and its mesh. A tensor on one worker is replicated over a mesh of one.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gt.ops.dtypes import SIZES


class Replicated(msgspec.Struct, frozen=True, tag="replicated", array_like=True):
    """Every worker has all of it."""

    def __str__(self) -> str:
        return "replicated"


class Sharded(msgspec.Struct, frozen=True, tag="sharded", array_like=True):
    """Every worker has a part along an axis. Without sizes, the parts are as equal as possible."""

    axis: int
    sizes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"sharded({self.axis})"


class Partial(msgspec.Struct, frozen=True, tag="partial", array_like=True):
    """Every worker has a term of it: the tensor is their sum, maximum or minimum."""

    op: str = "sum"

    def __str__(self) -> str:
        return f"partial({self.op})"


Layout = Replicated | Sharded | Partial


class Box(NamedTuple):
    """A part of a tensor: from `start`, up to `stop`, along every axis."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its own shape."""
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))

    @property
    def empty(self) -> bool:
        """Whether no element is in it."""
        return any(b <= a for a, b in zip(self.start, self.stop, strict=True))

    def overlap(self, other: "Box") -> "Box":
        """The intersection of two boxes."""
        return Box(
            tuple(map(max, self.start, other.start)),
            tuple(map(min, self.stop, other.stop)),
        )

    def within(self, other: "Box") -> tuple[slice, ...]:
        """Its slices in an array that holds the box `other`."""
        return tuple(slice(a - o, b - o) for a, b, o in zip(self.start, self.stop, other.start, strict=True))


class Placement(msgspec.Struct, frozen=True, array_like=True):
    """A layout over a mesh."""

    layout: Layout
    workers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.layout}@{','.join(self.workers)}"

    def box(self, index: int, shape: Sequence[int]) -> Box:
        """The part of a tensor of this shape that the worker at this index of the mesh has."""
        if not isinstance(self.layout, Sharded):
            return Box((0,) * len(shape), tuple(shape))
        axis, sizes = self.layout.axis, self.layout.sizes
        before = sum(sizes[:index])
        start, stop = [0] * len(shape), list(shape)
        start[axis], stop[axis] = before, before + sizes[index]
        return Box(tuple(start), tuple(stop))

    def local_shape(self, index: int, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part or copy that the worker at this index of the mesh has."""
        if not isinstance(self.layout, Sharded):
            return tuple(shape)
        axis = self.layout.axis
        return (*shape[:axis], self.layout.sizes[index], *shape[axis + 1 :])

    @property
    def whole(self) -> bool:
        """Whether every worker has all of it."""
        return isinstance(self.layout, Replicated)


def even(length: int, parts: int, granularity: int = 1) -> tuple[int, ...]:
    """Sizes that are as equal as possible, each a multiple of `granularity`, the larger ones first.

    >>> even(10, 4), even(12, 2, 4)
    ((3, 3, 2, 2), (8, 4))
    """
    each, more = divmod(length // granularity, parts)
    return tuple((each + (index < more)) * granularity for index in range(parts))


def proportional(length: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Sizes in proportion to weights.

    >>> proportional(10, [1, 4])
    (2, 8)
    """
    total = sum(weights)
    ends = [round(length * end / total) for end in itertools.accumulate(weights)]
    return tuple(b - a for a, b in zip([0, *ends[:-1]], ends, strict=True))


@functools.lru_cache(maxsize=10_000)
def bytes_moved(shape: tuple[int, ...], dtype: str, source: Placement, target: Placement) -> int:
    """How many bytes workers send each other to change a tensor's placement."""
    if source == target:
        return 0
    total = math.prod(shape) * SIZES[dtype]
    if isinstance(source.layout, Partial):
        if target.whole and len(target.workers) > 1 and set(source.workers) == set(target.workers):
            return 2 * (len(source.workers) - 1) * total  # reduced in parts, and then the parts are gathered
        return sum(
            _share(target, index, shape, total) * (len(source.workers) - (worker in source.workers))
            for index, worker in enumerate(target.workers)
        )
    moved = 0
    for index, worker in enumerate(target.workers):
        needs = _share(target, index, shape, total)
        if worker in source.workers:
            needs -= _in_common(source, source.workers.index(worker), target, index, shape, total)
        moved += needs
    return moved


def _share(placement: Placement, index: int, shape: tuple[int, ...], total: int) -> int:
    if not isinstance(placement.layout, Sharded) or not total:
        return total
    return total * placement.layout.sizes[index] // shape[placement.layout.axis]


def _in_common(
    source: Placement, have: int, target: Placement, want: int, shape: tuple[int, ...], total: int
) -> int:
    if not total:
        return 0
    box = source.box(have, shape).overlap(target.box(want, shape))
    return 0 if box.empty else total * math.prod(box.shape) // math.prod(shape)
