"""Ops by their uuid, and the raw data of accesses: elements, mask and values."""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from triton_viz.core.data import Access, Launch, Op, Program
from triton_viz.core.trace import launches

_UUID = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,12})\.([0-9]{1,12})\.([0-9]{1,12})", re.ASCII)


def uuid_of(launch: Launch, number: int, program: Program) -> str:
    """The id of one program's part of a record. It is constant while the launch is in memory."""
    return f"{launch.id}-{number}-{'.'.join(str(index) for index in program)}"


def find(uuid: str) -> tuple[Launch, int, Program]:
    """The launch, record and program of a uuid; raises KeyError if there is no such op."""
    match = _UUID.fullmatch(uuid)
    if match is None:
        raise KeyError(uuid)
    id, number, x, y, z = map(int, match.groups())
    for launch in launches:
        if launch.id == id and number < len(launch.records):
            record = launch.records[number]
            if isinstance(record, Op) and record.programs.lane((x, y, z)) is not None:
                return launch, number, (x, y, z)
    raise KeyError(uuid)


class RawTensor(NamedTuple):
    """One program's access, element by element."""

    launch: Launch
    number: int
    program: Program
    op: Access
    values: np.ndarray | None
    """The values of the block; None if they were not recorded."""
    mask: np.ndarray


def raw_of(launch: Launch, number: int, program: Program) -> RawTensor:
    """The raw data of one program's access; raises KeyError if the program did not execute it."""
    op = launch.records[number].at(program)
    if not isinstance(op, Access):
        raise KeyError(uuid_of(launch, number, program))
    return RawTensor(launch, number, program, op, None if op.values is None else op.values[0], op.mask)


class RawTensorsOf(Mapping[str, RawTensor]):
    """A mapping from uuids to the raw data of some ops of one program, computed on lookup."""

    def __init__(self, launch: Launch, numbers: list[int], program: Program):
        self._launch, self._program = launch, program
        self._numbers = {uuid_of(launch, number, program): number for number in numbers}

    def __getitem__(self, uuid: str) -> RawTensor:
        return raw_of(self._launch, self._numbers[uuid], self._program)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class RawTensorData(Mapping[str, RawTensor]):
    """A mapping from uuids to raw data of accesses, computed on lookup; the most recent ones are cached."""

    KEPT = 64

    def __init__(self) -> None:
        self._kept: OrderedDict[str, RawTensor] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, uuid: str) -> RawTensor:
        with self._lock:
            if uuid in self._kept:
                self._kept.move_to_end(uuid)
                return self._kept[uuid]
        raw = raw_of(*find(uuid))
        with self._lock:
            self._kept[uuid] = raw
            while len(self._kept) > self.KEPT:
                self._kept.popitem(last=False)
        return raw

    def __iter__(self) -> Iterator[str]:
        """The uuids of all accesses of all programs."""
        for launch in launches:
            for number, record in enumerate(launch.records):
                if isinstance(record, Access):
                    for lane in range(record.programs.lanes):
                        program = record.programs.program(lane)
                        if record.programs.lane(program) is not None:
                            yield uuid_of(launch, number, program)

    def __len__(self) -> int:
        return sum(r.programs.count for launch in launches for r in launch.records if isinstance(r, Access))

    def clear(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._kept.clear()


raw_tensor_data = RawTensorData()
"""The raw data of every access of every program, by uuid."""
