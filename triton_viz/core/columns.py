"""Columns: what differs between the programs of one record, for all of them at once.

A million programs that load from evenly spaced addresses are two numbers here.
"""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

Program = tuple[int, int, int]
"""Which program of the grid: its index along x, y and z."""


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
        fits = low >= -(2**31) and high < 2**31
        return cls(count, listed=numbers.astype(np.int32 if fits else np.int64))

    @classmethod
    def joined(cls, parts: Sequence["Numbers"], lanes: Sequence[int]) -> "Numbers":
        """The numbers of several groups of lanes, one group after the other."""
        first, step, total = parts[0].first, parts[0].step, sum(lanes)
        if all(part.count == 1 and part.listed is None and part.first == first for part in parts):
            return cls(1, first)
        if parts[0].listed is None and parts[0].count == lanes[0] > 1:
            begins = np.cumsum([0, *lanes[:-1]])
            if all(
                p.listed is None and p.first == first + step * b and (p.step == step or n == 1)
                for p, b, n in zip(parts, begins.tolist(), lanes, strict=True)
            ):
                return cls(total, first, step)
        columns = [np.broadcast_to(part.all(), (n,)) for part, n in zip(parts, lanes, strict=True)]
        return cls.of(np.concatenate(columns))

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

    @classmethod
    def of(cls, program: Program, grid: Program) -> "Programs":
        """One program of a grid."""
        return cls(grid, Numbers(1, _place(program, grid)))

    @classmethod
    def joined(cls, parts: Sequence["Programs"]) -> "Programs":
        """Those of several records."""
        order = Numbers.joined([part.order for part in parts], [part.lanes for part in parts])
        if all(part.active is None for part in parts):
            return cls(parts[0].grid, order)
        active = [np.ones(p.lanes, bool) if p.active is None else p.active for p in parts]
        return cls(parts[0].grid, order, np.concatenate(active))

    def only(self) -> Program:
        """The one program that it is."""
        if self.lanes != 1:
            raise ValueError(f"this is of {self.lanes} programs: ask for one with .at(program)")
        return self.program(0)

    def at(self, lane: int) -> "Programs":
        """One lane's."""
        return Programs(self.grid, Numbers(1, self.order.at(lane)))

    def program(self, lane: int) -> Program:
        """Which program a lane is."""
        place, z = divmod(self.order.at(lane), self.grid[2])
        x, y = divmod(place, self.grid[1])
        return x, y, z

    def lane(self, program: Program) -> int | None:
        """Which lane a program is; None if it did not run the op."""
        if any(not 0 <= i < n for i, n in zip(program, self.grid, strict=True)):
            return None
        place = _place(program, self.grid)
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


def _place(program: Program, grid: Program) -> int:
    return (program[0] * grid[1] + program[1]) * grid[2] + program[2]


class Box(msgspec.Struct, frozen=True):
    """Masks that are true between bounds: for each axis a start and an end per lane, or None for all."""

    bounds: tuple[tuple[Numbers, Numbers] | None, ...]


class Places(msgspec.Struct, frozen=True, eq=False):
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
    """Which of the tensors each lane (L,) or each element (L, *shape) is in, if there are several."""
    box: Box | None = None
    """What was masked off, if that is regular."""
    bits: np.ndarray | None = None
    """Or every element's mask, packed into bits, a row per lane."""

    @classmethod
    def joined(cls, parts: Sequence["Places"], lanes: Sequence[int]) -> "Places | None":
        """Those of several records as one; None if they differ in more than where they begin."""
        one = parts[0]
        forms = {
            (p.shape, p.tensors, p.steps, p.first is None, p.which is None, p.bits is None) for p in parts
        }
        boxes = {None if p.box is None else tuple(b is None for b in p.box.bounds) for p in parts}
        if len(forms) > 1 or (len(boxes) > 1 and None not in boxes):
            return None

        def column(name: str) -> np.ndarray | None:
            arrays = [getattr(part, name) for part in parts]
            if arrays[0] is None:
                return None
            return np.concatenate(
                [np.broadcast_to(a, (n, *a.shape[1:])) for a, n in zip(arrays, lanes, strict=True)]
            )

        first = None
        if one.first is not None:
            first = Numbers.joined([part.first for part in parts if part.first is not None], lanes)
        box = None
        if boxes != {None}:
            rank = len(one.shape)
            bounds: list[tuple[Numbers, Numbers] | None] = []
            for axis in range(rank):
                mine = [p.box.bounds[axis] if p.box is not None else None for p in parts]
                if all(pair is None for pair in mine):
                    bounds.append(None)
                    continue
                whole = (Numbers(1, 0), Numbers(1, one.shape[axis]))
                pairs = [whole if pair is None else pair for pair in mine]
                bounds.append(
                    (
                        Numbers.joined([p[0] for p in pairs], lanes),
                        Numbers.joined([p[1] for p in pairs], lanes),
                    )
                )
            box = Box(tuple(bounds))
        return cls(
            one.shape, one.tensors, first, one.steps, column("offsets"), column("which"), box, column("bits")
        )

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

    def at(self, lane: int) -> "Places":
        """One lane's part, with every element's place and mask."""
        mask = self.mask(lane)
        offsets = self.elements(lane)[None]
        bits = np.packbits(mask.reshape(1, -1), axis=1)
        if not self.tensors or not mask.any():
            return Places(self.shape, (), offsets=np.zeros_like(offsets), bits=bits)
        if self.which is None:
            return Places(self.shape, self.tensors[:1], offsets=offsets, bits=bits)
        which = self.which[lane if len(self.which) > 1 else 0]
        used = [int(which)] if which.ndim == 0 else np.unique(which[mask]).tolist()
        names = tuple(self.tensors[number] for number in used)
        if len(used) == 1:
            return Places(self.shape, names, offsets=offsets, bits=bits)
        own = np.where(mask, np.searchsorted(used, which), -1)[None]
        return Places(self.shape, names, offsets=offsets, bits=bits, which=own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b
            for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        )

    def check(self, lanes: int) -> None:
        """Raise a ValueError if its parts do not fit each other, or so many lanes."""
        rank = len(self.shape)
        if self.offsets is None and (self.first is None or len(self.steps) != rank):
            raise ValueError("an access whose places do not fit its block")
        bounds = self.box.bounds if self.box is not None else (None,) * rank
        if len(bounds) != rank or (self.offsets is not None and self.offsets.shape[1:] != self.shape):
            raise ValueError("a mask or a column that does not fit its block")
        if self.bits is not None and self.bits.shape[1:] != (-(-math.prod(self.shape) // 8),):
            raise ValueError("a mask that does not fit its block")
        columns: list[Any] = [self.first, self.offsets, self.which, self.bits]
        columns += [end for pair in bounds if pair is not None for end in pair]
        for column in columns:
            check_column(column, lanes)


def check_column(column: Numbers | np.ndarray | None, lanes: int) -> None:
    """Raise a ValueError unless a column has a number for each lane, or one for all."""
    if column is None:
        return
    count = column.count if isinstance(column, Numbers) else len(column)
    if count not in (1, lanes):
        raise ValueError(f"a column of {count} lanes in a record of {lanes}")
    if isinstance(column, Numbers) and column.listed is not None and len(column.listed) != count:
        raise ValueError("a column that is shorter than it says")
