"""What tensors held, as far as reads and writes that were kept tell."""

import math
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from triton_viz.core.data import Access, Atomic, Launch, Load, Program, Store, TensorInfo
from triton_viz.core.trace import launches
from triton_viz.visualizer.columns import listed
from triton_viz.visualizer.draw import is_op, uuid_of
from triton_viz.visualizer.payloads import Histogram

_UUID = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,12})\.([0-9]{1,12})\.([0-9]{1,12})", re.ASCII)


def has_values(launch: Launch) -> bool:
    """Whether what was read and written was kept."""
    return any(isinstance(record, Access) and record.values is not None for record in launch.records)


class RawTensor(NamedTuple):
    """One program's access, element by element."""

    launch: Launch
    number: int
    program: Program
    op: Access
    values: np.ndarray | None
    """Of the block; None if they were not kept."""
    mask: np.ndarray


class RawTensorData(Mapping[str, RawTensor]):
    """Accesses by uuid. Each is listed when it is looked at; the last few are kept."""

    KEPT = 64

    def __init__(self) -> None:
        self._kept: OrderedDict[str, RawTensor] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, uuid: str) -> RawTensor:
        with self._lock:
            if uuid in self._kept:
                self._kept.move_to_end(uuid)
                return self._kept[uuid]
        launch, number, program = find(uuid)
        op = launch.records[number].at(program)
        if not isinstance(op, Access):
            raise KeyError(uuid)
        values = None if op.values is None else op.values[0]
        raw = RawTensor(launch, number, program, op, values, op.mask)
        with self._lock:
            self._kept[uuid] = raw
            while len(self._kept) > self.KEPT:
                self._kept.popitem(last=False)
        return raw

    def __iter__(self) -> Iterator[str]:
        """All that there are: one for each access and program."""
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
        """Forget what was listed."""
        with self._lock:
            self._kept.clear()


raw_tensor_data = RawTensorData()
"""Every access of every program, by uuid."""


def find(uuid: str) -> tuple[Launch, int, Program]:
    """The launch, record and program that a uuid names; KeyError if there is no such op."""
    match = _UUID.fullmatch(uuid)
    if match is None:
        raise KeyError(uuid)
    id, number, x, y, z = map(int, match.groups())
    for launch in launches:
        if launch.id == id and number < len(launch.records):
            record = launch.records[number]
            if is_op(record) and record.programs.lane((x, y, z)) is not None:
                return launch, number, (x, y, z)
    raise KeyError(uuid)


def tensor_values(launch: Launch, tensor: TensorInfo, upto: int) -> tuple[np.ndarray, np.ndarray]:
    """What each element of a tensor held after a record of all programs, and whether that is known.

    An element that was read before anybody wrote to it held from the start what was read.
    """
    count = math.prod(tensor.shape)
    values, known, written = np.zeros(count), np.zeros(count, bool), np.zeros(count, bool)
    stores: list[tuple[np.ndarray, np.ndarray | None]] = []
    for number, record in enumerate(launch.records):
        if not isinstance(record, Access) or tensor.name not in record.places.tensors:
            continue
        for positions, kept in listed(record, tensor):
            if isinstance(record, Load) and kept is not None:
                fresh = ~(known[positions] | written[positions])
                values[positions[fresh]] = kept[fresh]
                known[positions[fresh]] = True
            elif isinstance(record, Store | Atomic):
                written[positions] = True
                if number <= upto:
                    stores.append((positions, kept if isinstance(record, Store) else None))
    for positions, kept in stores:
        known[positions] = kept is not None  # what an atomic left there was not recorded
        if kept is not None:
            values[positions] = kept
    return values, known


def histogram(name: str, values: np.ndarray, bins: int) -> Histogram:
    """How often which values occur."""
    numbers = np.asarray(values, np.float64).ravel()
    nan, infinite = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return Histogram(
            name=name, counts=[], edges=[], elements=0, nan=nan, infinite=infinite,
            lowest=None, highest=None, mean=None,
        )  # fmt: skip
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        bins = 1
    with np.errstate(over="ignore"):
        wide = not np.isfinite(high - low)
    # The distance between the largest doubles is no double: count them at half their size.
    counts, edges = np.histogram(numbers / 2 if wide else numbers, bins)
    edges = edges * 2 if wide else edges
    return Histogram(
        name=name,
        counts=counts.tolist(),
        edges=np.clip(edges, -np.finfo(float).max, np.finfo(float).max).tolist(),
        elements=len(numbers),
        nan=nan,
        infinite=infinite,
        lowest=low,
        highest=high,
        mean=float(np.mean(numbers / 2) * 2 if wide else np.mean(numbers)),
    )
