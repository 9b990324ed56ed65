"""Columns: for each field of a record that differs between programs, the values of all programs.

The evenly spaced addresses of a million programs are stored as two numbers.
"""

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

LARGEST = 2**63 - 1
"""The largest size, position or address, which are signed 64-bit integers."""
_LARGEST_BLOCK = 2**31
"""The most elements that a block in a file may have: more could not have been computed at once."""

Program = tuple[int, int, int]
"""The index of a program in the grid, along x, y and z."""


class Numbers(msgspec.Struct, frozen=True):
    """A number per lane. Evenly spaced numbers are stored as the first and the step."""

    count: int
    first: int = 0
    step: int = 0
    listed: np.ndarray | None = None
    """All of them, if they are not evenly spaced."""

    @classmethod
    def of(cls, numbers: np.ndarray) -> "Numbers":
        """Numbers from an array, in compact form if they are evenly spaced."""
        count, first = len(numbers), int(numbers[0])
        if count == 1:
            return cls(1, first)
        step = int(numbers[1]) - first
        if int(numbers[-1]) - first == step * (count - 1) and (numbers[1:] - numbers[:-1] == step).all():
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
        """The number of one lane."""
        if self.count == 1:
            lane = 0
        return self.first + self.step * lane if self.listed is None else int(self.listed[lane])

    def all(self) -> np.ndarray:
        """The numbers of all lanes, as an array."""
        if self.listed is not None:
            return self.listed.astype(np.int64)
        return self.first + self.step * np.arange(self.count, dtype=np.int64)

    def check(self, lanes: int, low: int = -LARGEST, high: int = LARGEST) -> None:
        """Raise a ValueError unless these are numbers from low to high, one for each lane or one for all."""
        if self.count not in (1, lanes) or not 0 <= self.count <= LARGEST:
            raise ValueError(f"a column of {self.count} lanes in a record of {lanes}")
        if self.listed is None:
            found = [self.first, self.first + self.step * (self.count - 1)] if self.count else []
        elif self.listed.shape != (self.count,):
            raise ValueError("a column whose number of values is not its count")
        elif self.listed.dtype.kind not in "iu":
            raise ValueError(f"a column of {self.listed.dtype}")
        else:
            found = [int(self.listed.min()), int(self.listed.max())] if self.count else []
        if any(not low <= number <= high for number in found):
            raise ValueError(f"a column whose numbers go from {found[0]} to {found[1]}")


class Programs(msgspec.Struct, frozen=True):
    """Which programs the lanes of a record are, in a grid counted with z fastest."""

    grid: Program
    order: Numbers
    """Each lane's linear program id."""
    active: np.ndarray | None = None
    """The lanes that ran the op, if not all did."""

    @property
    def count(self) -> int:
        """The number of programs that ran the op."""
        return self.lanes if self.active is None else int(self.active.sum())

    @property
    def lanes(self) -> int:
        """The number of lanes, active or not."""
        return self.order.count

    @classmethod
    def of(cls, program: Program, grid: Program) -> "Programs":
        """One program of a grid."""
        return cls(grid, Numbers(1, linear_program_id(program, grid)))

    @classmethod
    def all_of(cls, grid: Program) -> "Programs":
        """All programs of a grid."""
        count = math.prod(grid)
        return cls(grid, Numbers(count, 0, 1 if count > 1 else 0))

    @classmethod
    def joined(cls, parts: Sequence["Programs"]) -> "Programs":
        """The programs of several records."""
        order = Numbers.joined([part.order for part in parts], [part.lanes for part in parts])
        if all(part.active is None for part in parts):
            return cls(parts[0].grid, order)
        active = [np.ones(p.lanes, bool) if p.active is None else p.active for p in parts]
        return cls(parts[0].grid, order, np.concatenate(active))

    def only(self) -> Program:
        """The program, if there is only one. Raises a ValueError otherwise."""
        if self.lanes != 1:
            raise ValueError(f"this record has {self.lanes} programs: choose one with .at(program)")
        return self.program(0)

    def at(self, lane: int) -> "Programs":
        """The programs of a record with this lane only."""
        return Programs(self.grid, Numbers(1, self.order.at(lane)))

    def program(self, lane: int) -> Program:
        """The program of a lane."""
        linear_id, z = divmod(self.order.at(lane), self.grid[2])
        x, y = divmod(linear_id, self.grid[1])
        return x, y, z

    def lane(self, program: Program) -> int | None:
        """The lane of a program; None if it did not run the op."""
        if any(not 0 <= i < n for i, n in zip(program, self.grid, strict=True)):
            return None
        linear_id = linear_program_id(program, self.grid)
        order = self.order
        if order.listed is not None:
            found = np.flatnonzero(order.listed == linear_id)
            lane = int(found[0]) if len(found) else -1
        else:
            lane, rest = (
                divmod(linear_id - order.first, order.step) if order.step else (0, linear_id - order.first)
            )
            lane = lane if rest == 0 and lane < order.count else -1
        if lane < 0 or (self.active is not None and not self.active[lane]):
            return None
        return lane

    def check(self) -> None:
        """Raise a ValueError unless the lanes are programs of the grid."""
        check_sizes(self.grid, "a grid")
        self.order.check(self.lanes, 0, max(math.prod(self.grid) - 1, 0))
        if self.active is not None and (self.active.shape != (self.lanes,) or self.active.dtype.kind != "b"):
            raise ValueError(f"active lanes as {self.active.dtype} of shape {self.active.shape}")


def linear_program_id(program: Program, grid: Program) -> int:
    """The index of a program in its grid, counted with z fastest."""
    return (program[0] * grid[1] + program[1]) * grid[2] + program[2]


class Box(msgspec.Struct, frozen=True):
    """Masks that are true between bounds: for each axis a start and an end per lane, or None for all."""

    bounds: tuple[tuple[Numbers, Numbers] | None, ...]


class AccessedElements(msgspec.Struct, frozen=True, eq=False):
    """The elements of tensors that an access covers, for each lane."""

    shape: tuple[int, ...]
    """The block's."""
    tensors: tuple[str, ...]
    """The names of the accessed tensors; empty if no element was accessed."""
    first: Numbers | None = None
    """Each lane's first element, as a distance from its tensor's first; the others follow by `steps`."""
    steps: tuple[int, ...] = ()
    offsets: np.ndarray | None = None
    """The offset of every element, of shape (L, *shape), if they are not evenly spaced."""
    which: np.ndarray | None = None
    """Which of the tensors each lane (L,) or each element (L, *shape) is in, if there are several."""
    box: Box | None = None
    """The mask as bounds, if it is a box."""
    bits: np.ndarray | None = None
    """Otherwise the mask of every element, packed into bits, a row per lane."""

    @classmethod
    def joined(cls, parts: Sequence["AccessedElements"], lanes: Sequence[int]) -> "AccessedElements | None":
        """The elements of several records as one; None if they differ in more than offsets and masks."""
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
        """The mask of one lane."""
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
        """The offsets of one lane's elements: distances from the tensor's first element."""
        if self.offsets is not None:
            return self.offsets[lane if len(self.offsets) > 1 else 0].astype(np.int64)
        assert self.first is not None
        result: np.ndarray = np.full(self.shape, self.first.at(lane), np.int64)
        for axis, step in enumerate(self.steps):
            index = np.arange(self.shape[axis], dtype=np.int64) * step
            result += index.reshape(-1, *(1,) * (len(self.shape) - axis - 1))
        return result

    def touched(self, lanes: int) -> np.ndarray:
        """The number of elements that each lane accessed."""
        return np.broadcast_to(self._count(self.bits, Numbers.all), (lanes,))

    def touched_by(self, lane: int) -> int:
        """The number of elements that one lane accessed, computed for this lane only."""
        bits = None if self.bits is None else self.bits[lane if len(self.bits) > 1 else 0][None]
        return int(self._count(bits, lambda column: np.array([column.at(lane)]))[0])

    def _count(self, bits: np.ndarray | None, column: Callable[[Numbers], np.ndarray]) -> np.ndarray:
        """The number of true elements of a mask, given as bits or as the box with columns from `column`."""
        if bits is not None:
            return np.bitwise_count(bits).reshape(len(bits), -1).sum(axis=1, dtype=np.int64)
        counts = np.ones(1, np.int64)
        for axis, size in enumerate(self.shape):
            bounds = self.box.bounds[axis] if self.box is not None else None
            inside = size if bounds is None else np.maximum(column(bounds[1]) - column(bounds[0]), 0)
            counts = counts * inside
        return counts

    def at(self, lane: int) -> "AccessedElements":
        """One lane's part, with every element's offset and mask."""
        mask = self.mask(lane)
        offsets = self.elements(lane)[None]
        bits = np.packbits(mask.reshape(1, -1), axis=1)
        if not self.tensors or not mask.any():
            return AccessedElements(self.shape, (), offsets=np.zeros_like(offsets), bits=bits)
        if self.which is None:
            return AccessedElements(self.shape, self.tensors[:1], offsets=offsets, bits=bits)
        which = self.which[lane if len(self.which) > 1 else 0]
        used = [int(which)] if which.ndim == 0 else np.unique(which[mask]).tolist()
        names = tuple(self.tensors[number] for number in used)
        if len(used) == 1:
            return AccessedElements(self.shape, names, offsets=offsets, bits=bits)
        own = np.where(mask, np.searchsorted(used, which), -1)[None]
        return AccessedElements(self.shape, names, offsets=offsets, bits=bits, which=own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccessedElements) and all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else a == b
            for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        )

    def check(self, lanes: int) -> None:
        """Raise a ValueError if the parts are inconsistent, or do not have this number of lanes."""
        rank = len(self.shape)
        check_sizes(self.shape, "a block", _LARGEST_BLOCK)
        block = tuple(self.shape)
        if self.offsets is None and (self.first is None or len(self.steps) != rank):
            raise ValueError("an access whose elements do not fit its block")
        bounds = self.box.bounds if self.box is not None else (None,) * rank
        if len(bounds) != rank or (self.offsets is not None and self.offsets.shape[1:] != self.shape):
            raise ValueError("a mask or a column that does not fit its block")
        if self.bits is not None and self.bits.shape[1:] != (-(-math.prod(self.shape) // 8),):
            raise ValueError("a mask that does not fit its block")
        check_array(
            self.bits, "u", [(lanes, *self.bits.shape[1:])] if self.bits is not None else [], "a mask"
        )
        check_array(self.offsets, "iu", [(lanes, *block)], "the offsets of a block")
        check_array(self.which, "iu", [(lanes,), (lanes, *block)], "the tensors of a block")
        if self.which is not None and self.which.size and int(self.which.max()) >= len(self.tensors):
            raise ValueError("a block in a tensor that it does not name")
        if self.offsets is None and self.first is not None:
            self.first.check(lanes)
            reach = sum(abs(step) * max(size - 1, 0) for step, size in zip(self.steps, block, strict=True))
            if reach > LARGEST // 2:
                raise ValueError(f"a block with steps of {self.steps}")
        for pair in bounds:
            for end in pair or ():
                end.check(lanes)


def check_sizes(sizes: Sequence[int], what: str, most: int = LARGEST) -> None:
    """Raise a ValueError unless these are sizes of a block with at most `most` elements."""
    if any(size < 0 for size in sizes) or math.prod(max(size, 1) for size in sizes) > most:
        raise ValueError(f"{what} of {tuple(sizes)}")


def check_array(array: np.ndarray | None, kinds: str, shapes: Sequence[tuple[int, ...]], what: str) -> None:
    """Raise a ValueError unless an array has one of these `dtype.kind`s and shapes (or one lane for all)."""
    if array is None:
        return
    allowed = [shape for lanes in shapes for shape in (lanes, (1, *lanes[1:]))]
    if array.shape not in allowed or array.dtype.kind not in kinds:
        raise ValueError(f"{what} as {array.dtype} of shape {array.shape}, which does not fit its block")
