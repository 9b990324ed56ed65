"""Shadows: for each element of a storage, which programs accessed it from one line of source.

The first and the last program by linear id suffice: if different programs accessed an element, these two
differ, and if the first and last programs of two sites are all the same, no other program accessed it. So a
shadow has 8 bytes for each element, is exact, and does not depend on the order of touches.
"""

import math

import numpy as np

from triton_viz.clients.race_detector.touches import Touch, TouchKind, conflict
from triton_viz.core.data import Site
from triton_viz.executor.affine import apart

_NO_PROGRAM = np.int32(2**31 - 1)


class Shadow:
    """Accesses of one site to the elements of one storage, each `granule` bytes wide."""

    def __init__(self, kind: TouchKind, path: tuple[Site, ...], width: int, size: int, granule: int):
        self.kind, self.path, self.width = kind, path, width
        """The width of an access in bytes."""
        self.granule = granule
        self.first = np.full(size, _NO_PROGRAM)
        self.last = np.full(size, -1, np.int32)
        self.value = np.zeros(size, f"u{granule}") if kind in (TouchKind.WRITE, TouchKind.SIGNAL) else None
        """The last stored value, to detect whether all stored values are equal."""
        self.differs = None if self.value is None else np.zeros(size, bool)

    @property
    def touched(self) -> np.ndarray:
        """Which elements were accessed."""
        return self.last >= 0

    def refine(self, granule: int) -> None:
        """Use smaller elements, because a program accesses parts of them."""
        parts = self.granule // granule
        self.granule = granule
        self.first, self.last = np.repeat(self.first, parts), np.repeat(self.last, parts)
        if self.value is not None and self.differs is not None:
            self.value, self.differs = self.value.view(f"u{granule}"), np.repeat(self.differs, parts)

    def add(self, touch: Touch, start: int) -> None:
        """Add a touch of the storage that begins at `start`."""
        if not self._add_blocks(touch, start):
            self._add_elements(touch, start)

    def _add_blocks(self, touch: Touch, start: int) -> bool:
        """Add evenly spaced, disjoint blocks as one strided array. False if the blocks are not such."""
        form = touch.form
        if form is None or touch.mask is not None or touch.programs.active is not None:
            return False
        step, granule = form.lane_step, self.granule
        lanes = touch.lanes
        if step is None or (len(form.base) == 1 and lanes > 1):
            return False
        steps = (step, *form.steps, granule)
        shape = (lanes, *form.shape, touch.width // granule)
        if not apart(steps, shape):
            return False
        begin = (int(form.base[0]) - start) // granule

        def window(array: np.ndarray) -> np.ndarray:
            strides = tuple(s // granule * array.itemsize for s in steps)
            return np.ndarray(
                shape, array.dtype, buffer=array, offset=begin * array.itemsize, strides=strides
            )

        programs = touch.order.astype(np.int32).reshape(-1, *(1,) * (len(shape) - 1))
        seen = window(self.last)
        if self.value is not None and self.differs is not None:
            assert touch.values is not None
            new = self._parts(np.broadcast_to(touch.values, shape[:-1]))
            value, differs = window(self.value), window(self.differs)
            differs |= (seen >= 0) & (value != new)
            value[...] = new
        np.minimum(window(self.first), programs, out=window(self.first))
        np.maximum(seen, programs, out=seen)
        return True

    def _add_elements(self, touch: Touch, start: int) -> None:
        """Add any touch, element by element."""
        addresses, programs, values = touch.flat()
        parts = touch.width // self.granule
        index = (addresses - start) // self.granule
        if parts > 1:
            index = (index[:, None] + np.arange(parts)).reshape(-1)
            programs = np.repeat(programs, parts)
        programs = programs.astype(np.int32)
        if self.value is not None and self.differs is not None and values is not None:
            new = self._parts(values).reshape(-1)
            seen = self.last[index] >= 0
            old = self.value[index]
            # The last of several stores to one element is kept, and the others are compared with it.
            self.value[index] = new
            kept = self.value[index]
            self.differs[index[(kept != new) | (seen & (old != new))]] = True
        # For equal indices NumPy keeps the last assignment, so reverse the order to keep the first program.
        back, their = index[::-1], programs[::-1]
        self.first[back] = np.minimum(self.first[back], their)
        self.last[index] = np.maximum(self.last[index], programs)

    def _parts(self, values: np.ndarray) -> np.ndarray:
        """The bits of values, split into granules."""
        bits = np.ascontiguousarray(values)[..., None]
        return bits.view(f"u{self.granule}")


def in_conflict(one: Shadow, other: Shadow) -> np.ndarray | None:
    """Which elements different programs accessed from two sites (or one); None if that is no conflict."""
    if not conflict(one, other):
        return None
    if one is other:
        return one.touched & (one.first != one.last)
    alone = (one.first == one.last) & (other.first == other.last) & (one.first == other.first)
    return one.touched & other.touched & ~alone


def same_values(one: Shadow, other: Shadow) -> np.ndarray | None:
    """Which elements received one value only from two storing sites; None if a site does not store."""
    if one.value is None or other.value is None or one.differs is None or other.differs is None:
        return None
    return ~one.differs & ~other.differs & (one.value == other.value)


def two_programs(one: Shadow, other: Shadow, at: int) -> tuple[int, int]:
    """Two different programs that accessed an element, the first from one site, the second from the other."""
    for mine in (int(one.first[at]), int(one.last[at])):
        for theirs in (int(other.first[at]), int(other.last[at])):
            if mine != theirs:
                return mine, theirs
    raise ValueError(f"only one program touched element {at}")


def are_disjoint(touches: list[Touch], programs: int) -> bool:
    """Whether no two programs access the same element of a storage, decided without comparing elements.

    True if the programs' address ranges are disjoint, or if all programs execute the same access once and the
    blocks form a lattice, as in a tiled matrix product.
    """
    return _own_intervals(touches, programs) or _lattice(touches)


def _own_intervals(touches: list[Touch], programs: int) -> bool:
    lows = np.full(programs, np.iinfo(np.int64).max)
    highs = np.zeros(programs, np.int64)
    for touch in touches:
        low, high, used = touch.spans
        ids = touch.order[used]
        lows[ids] = np.minimum(lows[ids], low[used])
        highs[ids] = np.maximum(highs[ids], high[used])
    came = np.flatnonzero(highs)
    in_order = came[np.argsort(lows[came])]
    return bool((highs[in_order][:-1] <= lows[in_order][1:]).all())


def _lattice(touches: list[Touch]) -> bool:
    one = touches[0]
    if any(t.form is None or t.path != one.path for t in touches) or one.form is None:
        return False
    shapes = {(t.form.steps, t.form.shape, t.width) for t in touches if t.form is not None}
    order = np.concatenate([touch.order for touch in touches])
    grid = one.programs.grid
    if len(shapes) != 1 or len(order) != math.prod(grid) or len(np.unique(order)) != len(order):
        return False
    bases = [np.broadcast_to(t.form.base, (t.lanes,)) for t in touches if t.form is not None]
    base = np.empty(len(order), np.int64)
    base[order] = np.concatenate(bases)
    corner = base.reshape(grid)
    steps = []
    fitted = np.full(grid, corner[0, 0, 0])
    for axis, size in enumerate(grid):
        index = tuple(int(a == axis and size > 1) for a in range(3))
        steps.append(int(corner[index] - corner[0, 0, 0]))
        fitted += (np.arange(size) * steps[-1]).reshape([-1 if a == axis else 1 for a in range(3)])
    if not (fitted == corner).all():
        return False
    return apart((*steps, *one.form.steps, 1), (*grid, *one.form.shape, one.width))
