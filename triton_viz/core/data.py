"""The data model of a trace: launches, their tensors, and their records.

A record is an op that programs executed, or a finding about the launch: an issue, a
verdict, a profile. Everything here is plain data, and can be saved to a file and loaded again.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from triton_viz.core.lazy import load
from triton_viz.core.records.columns import (
    AccessedElements,
    Numbers,
    Program,
    Programs,
    check_array,
    check_sizes,
)
from triton_viz.core.records.tensor_info import TensorInfo

R = TypeVar("R", bound="Record")


class Site(msgspec.Struct, frozen=True):
    """A line of source code."""

    file: str
    line: int
    function: str


RECORDS: dict[str, type["Record"]] = {}
"""The types of records by the names that files and the page use. A subclass of `Record` adds itself."""

OPS: dict[str, type["Op"]] = {}
"""The types of records that are ops. A subclass of `Op` adds itself."""

_DEFINED_IN: dict[str, str] = {}
"""Where types of records are defined ("module:NAME"), by their names: the modules may not be imported yet."""


def register_record(path: str) -> None:
    """Register where a type of record is defined ("module:NAME"), so that trace files with it can be read."""
    _DEFINED_IN[path.rpartition(":")[2]] = path


def record_type(name: str) -> "type[Record] | None":
    """A type of record by its name, imported if needed; None if it is unknown."""
    if name not in RECORDS and name in _DEFINED_IN:
        load(_DEFINED_IN[name])
    return RECORDS.get(name)


class Record(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Base class of records: an `Op`, or a finding of a client or the language about the launch.

    A record describes one op at one line of source and in one iteration, for all programs that executed it
    together. A field of type `Numbers` holds a number for each lane. `at` returns one program's part.
    """

    programs: Programs
    call_path: tuple[Site, ...]
    """The source lines of the op: the kernel's line first, then those of the functions that it called."""
    iterations: tuple[tuple[int, int], ...] = ()
    """For each loop around it, outermost first: the loop's line and the iteration."""

    def __init_subclass__(cls, **options: Any) -> None:
        RECORDS[cls.__name__] = cls

    @property
    def program(self) -> Program:
        """The program of a record that describes one program only."""
        return self.programs.only()

    def at(self, program: Program) -> Self | None:
        """One program's part; None if the program did not execute the op."""
        lane = self.programs.lane(program)
        return None if lane is None else self.of_lane(lane)

    def of_lane(self, lane: int) -> Self:
        """One lane's part."""
        own = {name: Numbers(1, numbers.at(lane)) for name, numbers in self._columns()}
        return msgspec.structs.replace(self, programs=self.programs.at(lane), **own)

    def _columns(self) -> Iterator[tuple[str, Numbers]]:
        """The fields that have a value for each lane."""
        for name in self.__struct_fields__:
            if isinstance(value := getattr(self, name), Numbers):
                yield name, value

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> Self | None:
        """One record for the same op of different programs; None if fields differ that cannot be columns."""
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
        """Raise a ValueError if the columns are inconsistent, as those of a damaged file may be."""
        self.programs.check()
        for _, numbers in self._columns():
            numbers.check(self.programs.lanes)


class Op(Record, frozen=True, tag=True, kw_only=True):
    """An operation of the kernel at one line of source, of all programs that executed it together.

    Each type of op is a subclass with its own fields. `at` returns one program's part.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        OPS[cls.__name__] = cls


del RECORDS["Op"]  # abstract: only its subclasses are recorded


def join_chunks(chunks: Sequence[Sequence[R]]) -> list[R]:
    """The records of all chunks. Consecutive chunks that ran the same ops in the same order share records."""
    result: list[R] = []
    for _, alike in itertools.groupby(chunks, key=lambda chunk: [_key(op) for op in chunk]):
        together = list(alike)
        if len(together) == 1:
            result += together[0]
            continue
        joined = [type(parts[0]).joined(parts) for parts in zip(*together, strict=True)]
        if any(op is None for op in joined):
            result += itertools.chain.from_iterable(together)
        else:
            result += [op for op in joined if op is not None]
    return result


def _key(op: Record) -> tuple[Any, ...]:
    """A key that is equal for records that may be joined."""
    return type(op), op.call_path, op.iterations


class Access(Op, frozen=True, tag=True, kw_only=True):
    """Elements of tensors that were accessed: those where the mask is true."""

    elements: AccessedElements
    values: np.ndarray | None = None
    """The values read or written, of shape (L, *block), if the tracer keeps values."""

    def of_lane(self, lane: int) -> "Access":
        """One lane's part."""
        values = self.values
        if values is not None and len(values) > 1:
            values = values[lane : lane + 1]
        positions, programs = self.elements.at(lane), self.programs.at(lane)
        return msgspec.structs.replace(self, programs=programs, elements=positions, values=values)

    @classmethod
    def joined(cls, parts: Sequence[Any]) -> "Access | None":
        """One record for the same access of different programs; None if fields other than the elements and
        values differ: two accesses on one line are two records.
        """
        lanes = [part.programs.lanes for part in parts]
        one = {"programs": parts[0].programs, "elements": parts[0].elements, "values": None}
        alike = [msgspec.structs.replace(part, **one) for part in parts]
        positions = AccessedElements.joined([part.elements for part in parts], lanes)
        if positions is None or any(part != alike[0] for part in alike):
            return None
        values = None
        if parts[0].values is not None:
            columns = [
                np.broadcast_to(p.values, (n, *p.elements.shape))
                for p, n in zip(parts, lanes, strict=True)
                if p.values is not None
            ]
            values = np.concatenate(columns)
        programs = Programs.joined([part.programs for part in parts])
        return msgspec.structs.replace(parts[0], programs=programs, elements=positions, values=values)

    def check(self) -> None:
        """Raise a ValueError if the columns are inconsistent."""
        super().check()
        lanes = self.programs.lanes
        self.elements.check(lanes)
        check_array(self.values, "biuf", [(lanes, *self.elements.shape)], "values")

    @property
    def tensor(self) -> str:
        """The name of the accessed tensor in the kernel: empty for no tensor, several names for several."""
        return ", ".join(self.elements.tensors)

    @property
    def offsets(self) -> np.ndarray:
        """The distance of each element from its tensor's first, in elements: one block, or one per lane."""
        return self._blocks(self.elements.elements)

    @property
    def mask(self) -> np.ndarray:
        """Which elements were accessed: one block, or one per lane."""
        return self._blocks(self.elements.mask)

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
    """A copy between two on-chip memories. Transfers from and to HBM are loads and stores."""

    source: str
    """SBUF, PSUM, ..."""
    destination: str
    tensor: str
    """The name of the tensor in the kernel."""
    shape: tuple[int, ...]
    bytes: int


class SbufEvent(Record, frozen=True, tag=True, kw_only=True):
    """A buffer on the chip: where it was allocated, how large it is, and when it was in use.

    Times are counted in instructions of the program.
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
    """The capacity of each partition of the memory, in bytes."""
    assigned: tuple[int, ...] = ()
    """Instructions that wrote it because their result was assigned to it: `tile[...] = nisa.op()`. They do
    not name it among what they write."""


class Compute(Op, frozen=True, tag=True, kw_only=True):
    """Arithmetic, a cast, a change of shape."""

    name: str
    inputs: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]


class Other(Op, frozen=True, tag=True, kw_only=True):
    """An op without a record type in the backend's registry."""

    name: str
    inputs: tuple[tuple[int, ...], ...]


class Issue(Record, frozen=True, tag=True, kw_only=True):
    """A violation that a client found at this line, with one program that shows it."""

    kind: str
    """out of bounds, race, overflow, ..."""
    verdict: str
    """violation: verified. undecided: not decided, for the reason in `message`."""
    message: str
    tensor: str = ""
    index: tuple[int, ...] | None = None
    """The element, as the user would index the tensor; None if the address is no element's."""
    offset: int | None = None
    """The element's distance from the tensor's first element, in elements."""
    past_end: int = 0
    """How many bytes beyond the tensor (or, negative, before it)."""
    mask: bool | None = None
    """The mask's value at the element; None if the access has no mask."""
    expression: str = ""
    """The expression of the address, in the user's names."""
    suggestion: str = ""
    others: tuple[Program, ...] = ()
    """Further programs of the issue: the second program of a race."""
    other_path: tuple[Site, ...] = ()
    """Their call path."""

    def check(self) -> None:
        """Raise a ValueError unless its programs are in the grid."""
        super().check()
        for program in self.others:
            if any(not 0 <= i < n for i, n in zip(program, self.programs.grid, strict=True)):
                raise ValueError(f"an issue of a program {program} in a grid of {self.programs.grid}")


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
    records: list[Record]
    checked_by: tuple[str, ...] = ()
    """The names of the clients that checked the launch, also if they found no issue."""

    def check(self) -> None:
        """Raise a ValueError if its parts are inconsistent, as those of a damaged file may be."""
        check_sizes(self.grid, "a grid")
        for tensor in self.tensors:
            tensor.check()
        for record in self.records:
            if record.programs.grid != self.grid:
                raise ValueError(f"a record of {self.kernel} is of another grid")
            record.check()

    @property
    def ops(self) -> int:
        """The number of recorded ops, summed over all programs."""
        return sum(record.programs.count for record in self.records if isinstance(record, Op))

    def at(self, program: Program) -> list[Record]:
        """One program's part of each record, in order."""
        return [op for _, op in self.numbered(program)]

    def numbered(self, program: Program) -> Iterator[tuple[int, Record]]:
        """One program's part of each record, in order, each with the number of its record."""
        for position, record in enumerate(self.records):
            op = record.at(program)
            if op is not None:
                yield position, op

    def programs(self) -> Iterator[Program]:
        """All programs, in the order of their linear ids."""
        x, y, z = self.grid
        return itertools.product(range(x), range(y), range(z))
