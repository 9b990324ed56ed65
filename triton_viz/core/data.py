"""What a trace is made of: the tensors of a launch, and the ops that its programs executed.

Everything here is plain data and survives a trip through a file.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from triton_viz.core.columns import Numbers, Places, Program, Programs, check_column


class Site(msgspec.Struct, frozen=True):
    """A line of source code."""

    file: str
    line: int
    function: str


class TensorInfo(msgspec.Struct, frozen=True):
    """A tensor argument: its name in the kernel, and where its elements are."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements, as in PyTorch."""
    dtype: str
    address: int
    """Of its first element."""
    itemsize: int
    storage: tuple[int, int]
    """From which address to which reaches the memory it is a view of."""

    @classmethod
    def of(cls, name: str, tensor: Any) -> "TensorInfo":
        """What a trace keeps of a tensor of torch's, or of an array of NumPy's."""
        if isinstance(tensor, np.ndarray):
            return cls(
                name=name,
                shape=tensor.shape,
                strides=tuple(stride // max(tensor.itemsize, 1) for stride in tensor.strides),
                dtype=tensor.dtype.name,
                address=tensor.__array_interface__["data"][0],
                itemsize=tensor.itemsize,
                storage=np.lib.array_utils.byte_bounds(tensor),
            )
        storage = tensor.untyped_storage()
        return cls(
            name=name,
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            dtype=str(tensor.dtype).removeprefix("torch."),
            address=tensor.data_ptr(),
            itemsize=tensor.element_size(),
            storage=(storage.data_ptr(), storage.data_ptr() + storage.nbytes()),
        )

    def elements(self, offsets: np.ndarray) -> np.ndarray:
        """Which element is at each distance from the first, counted in row-major order; -1 where none is.

        The largest stride is taken off first, so transposes, slices and steps come out right. Where strides
        overlap, one distance is several elements, and this is one of them.
        """
        left = offsets.astype(np.int64)
        position = np.zeros_like(left)
        inside = np.ones(left.shape, bool)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] and self.shape[axis] > 1:
                # Where a smaller stride overlaps, what is too much for this one is left to that one.
                index = np.minimum(left // self.strides[axis], self.shape[axis] - 1)
                left = left - index * self.strides[axis]
                inside &= index >= 0
                position += index * math.prod(self.shape[axis + 1 :])
        return np.where(inside & (left == 0), position, -1)


OPS: dict[str, type["Op"]] = {}
"""Each kind of op by the name that records, files and the page know. A subclass of `Op` adds itself."""


class Op(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """One op at one place in the source and one iteration, of all programs that executed it together.

    A subclass says which op, and what it did; a field that is `Numbers` holds a number for each lane. `at`
    gives what one program did.
    """

    programs: Programs
    call_path: tuple[Site, ...]
    """Where in the source, the kernel's own line first, then the functions it called."""
    iterations: tuple[tuple[int, int], ...] = ()
    """For each loop around it, outermost first: the loop's line, and which iteration this is."""

    def __init_subclass__(cls, **options: Any) -> None:
        OPS[cls.__name__] = cls

    @property
    def program(self) -> Program:
        """The one program that it is of."""
        return self.programs.only()

    def at(self, program: Program) -> "Op | None":
        """What one program did; None if it did not come here."""
        lane = self.programs.lane(program)
        return None if lane is None else self.of_lane(lane)

    def of_lane(self, lane: int) -> "Op":
        """One lane's part."""
        own = {name: Numbers(1, numbers.at(lane)) for name, numbers in self._columns()}
        return msgspec.structs.replace(self, programs=self.programs.at(lane), **own)

    def _columns(self) -> Iterator[tuple[str, Numbers]]:
        """What a subclass keeps for each lane."""
        for name in self.__struct_fields__:
            if isinstance(value := getattr(self, name), Numbers):
                yield name, value

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> "Op | None":
        """Records of one op by different programs as one; None if they differ in what cannot be a column."""
        columns = {name for part in parts for name, _ in part._columns()}
        if not all(isinstance(getattr(part, name), Numbers) for part in parts for name in columns):
            return None
        one = {"programs": parts[0].programs.at(0)} | dict.fromkeys(columns, Numbers(1))
        if any(msgspec.structs.replace(p, **one) != msgspec.structs.replace(parts[0], **one) for p in parts):
            return None
        lanes = [part.programs.lanes for part in parts]
        together: dict[str, Any] = {
            name: Numbers.joined([getattr(part, name) for part in parts], lanes) for name in columns
        }
        together["programs"] = Programs.joined([part.programs for part in parts])
        return msgspec.structs.replace(parts[0], **together)

    def check(self) -> None:
        """Raise a ValueError if its columns do not fit each other: a file may say anything."""
        check_column(self.programs.order, self.programs.lanes)
        check_column(self.programs.active, self.programs.lanes)
        for _, numbers in self._columns():
            check_column(numbers, self.programs.lanes)


class Access(Op, frozen=True, tag=True, kw_only=True):
    """Elements of tensors that were touched. Where the mask is false nothing was."""

    places: Places
    values: np.ndarray | None = None
    """What was read or written, of shape (L, *block), if that was asked for."""

    def of_lane(self, lane: int) -> "Access":
        """One lane's part."""
        values = self.values
        if values is not None and len(values) > 1:
            values = values[lane : lane + 1]
        places, programs = self.places.at(lane), self.programs.at(lane)
        return msgspec.structs.replace(self, programs=programs, places=places, values=values)

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> "Access | None":
        """Records of one access by different programs as one."""
        lanes = [part.programs.lanes for part in parts]
        places = Places.joined([part.places for part in parts], lanes)
        if places is None:
            return None
        values = None
        if parts[0].values is not None:
            columns = [
                np.broadcast_to(p.values, (n, *p.places.shape))
                for p, n in zip(parts, lanes, strict=True)
                if p.values is not None
            ]
            values = np.concatenate(columns)
        programs = Programs.joined([part.programs for part in parts])
        return msgspec.structs.replace(parts[0], programs=programs, places=places, values=values)

    def check(self) -> None:
        """Raise a ValueError if its columns do not fit each other."""
        super().check()
        self.places.check(self.programs.lanes)
        check_column(self.values, self.programs.lanes)
        if self.values is not None and self.values.shape[1:] != self.places.shape:
            raise ValueError("values that do not fit their block")

    @property
    def tensor(self) -> str:
        """The tensor's name in the kernel; empty if nothing was touched, several if several were."""
        return ", ".join(self.places.tensors)

    @property
    def offsets(self) -> np.ndarray:
        """How far each element is from its tensor's first, in elements: a block, or one for each lane."""
        return self._blocks(self.places.elements)

    @property
    def mask(self) -> np.ndarray:
        """Which elements were touched: a block, or one for each lane."""
        return self._blocks(self.places.mask)

    def _blocks(self, of_lane: Callable[[int], np.ndarray]) -> np.ndarray:
        lanes = self.programs.lanes
        return of_lane(0) if lanes == 1 else np.stack([of_lane(lane) for lane in range(lanes)])


class Load(Access, frozen=True, tag=True, kw_only=True):
    """Elements read."""


class Store(Access, frozen=True, tag=True, kw_only=True):
    """Elements written."""


class Atomic(Access, frozen=True, tag=True, kw_only=True):
    """Elements read, changed and written in one step."""

    operation: str = ""
    """add, max, xchg, cas, ..."""


class Dot(Op, frozen=True, tag=True, kw_only=True):
    """A product of two tiles."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    result: tuple[int, ...]
    dtype: str = ""
    """The type of the left tile's elements, as Triton abbreviates it: fp16, bf16, int8, ..."""


class Reduce(Op, frozen=True, tag=True, kw_only=True):
    """An axis combined away: a sum, a maximum, ..."""

    combine: str
    axis: int | None
    input: tuple[int, ...]
    result: tuple[int, ...]


class Scan(Op, frozen=True, tag=True, kw_only=True):
    """A running combination along an axis."""

    combine: str
    axis: int
    input: tuple[int, ...]
    reverse: bool = False


class Transfer(Op, frozen=True, tag=True, kw_only=True):
    """Elements that went from one memory of a chip to another. HBM's are loads and stores."""

    source: str
    """SBUF, PSUM, ..."""
    destination: str
    tensor: str
    """What they are of, by its name in the kernel."""
    shape: tuple[int, ...]
    bytes: int


class SbufEvent(Op, frozen=True, tag=True, kw_only=True):
    """A buffer on the chip: where it was allocated, how large it is, and when it was in use.

    Times count the instructions of a program, so events of one program are the lines of a timeline.
    """

    memory: str
    """SBUF or PSUM."""
    name: str
    """The variable that it was assigned to."""
    shape: tuple[int, ...]
    dtype: str
    partitions: int
    bytes_per_partition: int
    start: int
    """The first instruction that uses it: its first write."""
    end: int
    """The last instruction that uses it."""
    capacity: int
    """The bytes that each partition of the memory has."""


class Compute(Op, frozen=True, tag=True, kw_only=True):
    """Arithmetic, a cast, a change of shape."""

    name: str
    inputs: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]


class Other(Op, frozen=True, tag=True, kw_only=True):
    """An op that the registry does not know."""

    name: str
    inputs: tuple[tuple[int, ...], ...]


class Issue(Op, frozen=True, tag=True, kw_only=True):
    """Something wrong that a client found at this place, in one program that shows it."""

    kind: str
    """out of bounds, race, overflow, ..."""
    verdict: str
    """violation: it happens, and was checked to happen. undecided: nobody knows, and `message` says why."""
    message: str
    tensor: str = ""
    index: tuple[int, ...] | None = None
    """The element, as the user would index the tensor; None where there is none such."""
    offset: int | None = None
    """The same as a distance from the tensor's first element, in elements."""
    past_end: int = 0
    """How many bytes beyond the tensor (or, negative, before it)."""
    mask: bool | None = None
    """What the mask was there; None if there was none."""
    expression: str = ""
    """How the address came about, in the user's names."""
    suggestion: str = ""
    others: tuple[Program, ...] = ()
    """Other programs that are part of it: the second of a race."""
    other_path: tuple[Site, ...] = ()
    """Where they did their part."""


_launches = itertools.count()


class Launch(msgspec.Struct, kw_only=True):
    """One run of one kernel."""

    id: int = msgspec.field(default_factory=lambda: next(_launches))
    kernel: str
    file: str
    first_line: int
    source: str
    grid: Program
    tensors: tuple[TensorInfo, ...]
    records: list[Op]

    @property
    def ops(self) -> int:
        """How many ops all programs together executed, of those that are recorded."""
        return sum(record.programs.count for record in self.records)

    def at(self, program: Program) -> list[Op]:
        """What one program did, in order."""
        return [op for _, op in self.numbered(program)]

    def numbered(self, program: Program) -> Iterator[tuple[int, Op]]:
        """What one program did, in order, each with the number of its record."""
        for place, record in enumerate(self.records):
            op = record.at(program)
            if op is not None:
                yield place, op

    def programs(self) -> Iterator[Program]:
        """All programs, in the order in which they run one at a time."""
        x, y, z = self.grid
        return itertools.product(range(x), range(y), range(z))
