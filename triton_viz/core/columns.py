"""Records of many programs at once: one per op and iteration, with a column for every thing that differs.

A million programs that load from evenly spaced addresses are two numbers here. `record.at(program)` is what
one program did, as plain arrays.
"""

import math
from typing import Any

import msgspec
import numpy as np

from triton_viz.core.data import OPS, Op, Program, Site


class Numbers(msgspec.Struct, frozen=True):
    """A number per lane. Evenly spaced ones are kept as the first and the step; one stands for all lanes."""

    count: int
    first: int = 0
    step: int = 0
    listed: np.ndarray | None = None
    """All of them, if they are not evenly spaced."""

    @classmethod
    def of(cls, numbers: np.ndarray) -> "Numbers":
        """Numbers in their shortest form."""
        count, first = len(numbers), int(numbers[0])
        if count == 1:
            return cls(1, first)
        step = int(numbers[1]) - first
        if int(numbers[-1]) - first == step * (count - 1) and (np.diff(numbers) == step).all():
            return cls(count, first, step)
        low, high = int(numbers.min()), int(numbers.max())
        fits = -(2**31) <= low and high < 2**31
        return cls(count, listed=numbers.astype(np.int32 if fits else np.int64))

    def at(self, lane: int) -> int:
        """One lane's number."""
        if self.count == 1:
            lane = 0
        return self.first + self.step * lane if self.listed is None else int(self.listed[lane])

    def all(self) -> np.ndarray:
        """Every lane's number."""
        if self.listed is not None:
            return self.listed.astype(np.int64)
        return self.first + self.step * np.arange(self.count, dtype=np.int64)


class Programs(msgspec.Struct, frozen=True):
    """Which programs the lanes of a record are, in a grid counted with z fastest."""

    grid: Program
    order: Numbers
    """Each lane's place in that count."""
    active: np.ndarray | None = None
    """The lanes that ran the op, if not all did."""

    @property
    def count(self) -> int:
        """How many programs ran the op."""
        return self.lanes if self.active is None else int(self.active.sum())

    @property
    def lanes(self) -> int:
        """How many lanes there were."""
        return self.order.count

    def only(self) -> Program:
        """The one program that it is."""
        return self.program(0)

    def program(self, lane: int) -> Program:
        """Which program a lane is."""
        place, z = divmod(self.order.at(lane), self.grid[2])
        x, y = divmod(place, self.grid[1])
        return x, y, z

    def lane(self, program: Program) -> int | None:
        """Which lane a program is; None if it did not run the op."""
        if any(not 0 <= i < n for i, n in zip(program, self.grid, strict=True)):
            return None
        place = (program[0] * self.grid[1] + program[1]) * self.grid[2] + program[2]
        order = self.order
        if order.listed is not None:
            found = np.flatnonzero(order.listed == place)
            lane = int(found[0]) if len(found) else -1
        else:
            lane, rest = divmod(place - order.first, order.step) if order.step else (0, place - order.first)
            lane = lane if rest == 0 and lane < order.count else -1
        if lane < 0 or (self.active is not None and not self.active[lane]):
            return None
        return lane


class Box(msgspec.Struct, frozen=True):
    """Masks that are true between bounds: for each axis a start and an end per lane, or None for all of it."""

    bounds: tuple[tuple[Numbers, Numbers] | None, ...]


class Places(msgspec.Struct, frozen=True):
    """Which elements of which tensors a block covers, for each lane."""

    shape: tuple[int, ...]
    """The block's."""
    tensors: tuple[str, ...]
    """The names of those it reaches; none if nothing was touched."""
    first: Numbers | None = None
    """Each lane's first element, as a distance from its tensor's first; the others follow by `steps`."""
    steps: tuple[int, ...] = ()
    offsets: np.ndarray | None = None
    """Or every element's, of shape (L, *shape), where they do not lie regularly."""
    which: np.ndarray | None = None
    """Which of the tensors each lane (L,) or each element (L, *shape) is in, if there are several; -1 in none."""
    box: Box | None = None
    """What was masked off, if that is regular."""
    bits: np.ndarray | None = None
    """Or every element's mask, packed into bits, a row per lane."""

    def mask(self, lane: int) -> np.ndarray:
        """Which elements one lane touched."""
        if self.bits is not None:
            row = self.bits[lane if len(self.bits) > 1 else 0]
            return np.unpackbits(row, count=math.prod(self.shape)).astype(bool).reshape(self.shape)
        inside = np.ones(self.shape, bool)
        for axis, bounds in enumerate(self.box.bounds if self.box is not None else ()):
            if bounds is not None:
                start, end = bounds[0].at(lane), bounds[1].at(lane)
                index = np.arange(self.shape[axis])
                along = (index >= start) & (index < end)
                inside &= along.reshape(-1, *(1,) * (len(self.shape) - axis - 1))
        return inside

    def elements(self, lane: int) -> np.ndarray:
        """The distance of each of a lane's elements from its tensor's first."""
        if self.offsets is not None:
            return self.offsets[lane if len(self.offsets) > 1 else 0].astype(np.int64)
        assert self.first is not None
        result: np.ndarray = np.full(self.shape, self.first.at(lane), np.int64)
        for axis, step in enumerate(self.steps):
            index = np.arange(self.shape[axis], dtype=np.int64) * step
            result += index.reshape(-1, *(1,) * (len(self.shape) - axis - 1))
        return result

    def touched(self, lanes: int) -> np.ndarray:
        """How many elements each lane touched."""
        if self.bits is not None:
            counts = np.bitwise_count(self.bits).reshape(len(self.bits), -1).sum(axis=1, dtype=np.int64)
        else:
            counts = np.ones(1, np.int64)
            for axis, size in enumerate(self.shape):
                bounds = self.box.bounds[axis] if self.box is not None else None
                if bounds is None:
                    counts = counts * size
                else:
                    inside = bounds[1].all() - bounds[0].all()
                    counts = counts * np.maximum(inside, 0)
        return np.broadcast_to(counts, (lanes,))

    def at(self, lane: int) -> dict[str, Any]:
        """One lane's part, as the fields of an access."""
        mask = self.mask(lane)
        offsets = self.elements(lane)
        if not self.tensors or not mask.any():
            return {"tensor": "", "offsets": np.zeros(self.shape, np.int64), "mask": mask}
        if self.which is None:
            return {"tensor": self.tensors[0], "offsets": offsets, "mask": mask}
        which = self.which[lane if len(self.which) > 1 else 0]
        if which.ndim == 0 or len(set(which[mask].tolist())) == 1:
            owner = self.tensors[int(which if which.ndim == 0 else which[mask][0])]
            return {"tensor": owner, "offsets": offsets, "mask": mask}
        used = sorted(set(which[mask].tolist()))
        names = tuple(self.tensors[i] for i in used)
        number_of = np.array([used.index(i) if i in used else -1 for i in range(len(self.tensors))])
        local = np.where(mask, number_of[which], -1)
        return {
            "tensor": ", ".join(names),
            "offsets": offsets,
            "mask": mask,
            "tensors": names,
            "which": local,
        }


class Record(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """One op at one place in the source and one iteration, of all programs that ran it together."""

    kind: str
    """The name of its `Op` type: Load, Store, Dot, ..."""
    programs: Programs
    call_path: tuple[Site, ...]
    iterations: tuple[tuple[int, int], ...] = ()
    detail: dict[str, Any] = {}
    """What is the same for all programs, as fields of the op."""
    places: Places | None = None
    values: np.ndarray | None = None
    """What was read or written, of shape (L, *shape), if that was asked for."""

    def check(self) -> None:
        """Raise a ValueError if its columns do not fit each other."""
        lanes = self.programs.lanes
        columns = [self.programs.order, self.programs.active, self.values]
        if (places := self.places) is not None:
            rank = len(places.shape)
            if places.first is None and places.offsets is None:
                raise ValueError("an access without places")
            if places.first is not None and len(places.steps) != rank:
                raise ValueError("an access whose steps do not fit its shape")
            bounds = places.box.bounds if places.box is not None else (None,) * rank
            if len(bounds) != rank:
                raise ValueError("a mask that does not fit its block")
            for array in (places.offsets, self.values):
                if array is not None and array.shape[1:] != places.shape:
                    raise ValueError("an access whose columns do not fit its block")
            columns += [places.first, places.offsets, places.which, places.bits]
            columns += [end for pair in bounds if pair is not None for end in pair]
        for column in columns:
            count = column.count if isinstance(column, Numbers) else None if column is None else len(column)
            if count not in (None, 1, lanes):
                raise ValueError(f"a column of {count} lanes in a record of {lanes}")
            if isinstance(column, Numbers) and column.listed is not None and len(column.listed) != count:
                raise ValueError("a column that is shorter than it says")

    def at(self, program: Program) -> Op | None:
        """What one program did; None if it did not come here."""
        lane = self.programs.lane(program)
        if lane is None:
            return None
        fields = {name: _frozen(value) for name, value in self.detail.items()}
        if self.places is not None:
            fields |= self.places.at(lane)
            if self.values is not None:
                fields["values"] = self.values[lane if len(self.values) > 1 else 0]
        return OPS[self.kind](program=program, call_path=self.call_path, iterations=self.iterations, **fields)


def _frozen(value: Any) -> Any:
    """A detail as it was made: a file has lists where there were tuples."""
    return tuple(_frozen(x) for x in value) if isinstance(value, list) else value
