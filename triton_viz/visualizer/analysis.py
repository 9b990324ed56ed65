"""Simple measures over a launch's records."""

from collections.abc import Iterable
from typing import TypedDict

import numpy as np

from triton_viz.core.data import Access, Launch, Op


class Traffic(TypedDict):
    """What all programs together moved between one tensor and the kernel."""

    type: str
    tensor: str
    ops: int
    elements: int
    masked: int
    bytes: int


def analyze_records(launch: Launch, records: Iterable[Op]) -> list[Traffic]:
    """The traffic of each tensor, each kind of access apart, in order of first use."""
    itemsize = {tensor.name: tensor.itemsize for tensor in launch.tensors}
    table: dict[tuple[str, str], Traffic] = {}

    def add(kind: str, tensor: str, ops: int, elements: int, masked: int) -> None:
        new = Traffic(type=kind, tensor=tensor, ops=0, elements=0, masked=0, bytes=0)
        row = table.setdefault((kind, tensor), new)
        row["ops"] += ops
        row["elements"] += elements
        row["masked"] += masked
        row["bytes"] += elements * itemsize.get(tensor, 0)

    for record in records:
        if isinstance(record, Access):
            for tensor, ops, elements, masked in _by_tensor(record):
                add(type(record).__name__, tensor, ops, elements, masked)
    return list(table.values())


def _by_tensor(record: Access) -> Iterable[tuple[str, int, int, int]]:
    """For each tensor of a record: how many programs accessed it, and elements touched and masked off."""
    places = record.places
    lanes = record.programs.lanes
    ran = np.ones(lanes, bool) if record.programs.active is None else record.programs.active
    size = int(np.prod(places.shape, dtype=np.int64))
    touched = places.touched(lanes)
    idle = ran & (touched == 0)
    if idle.any():
        yield "", int(idle.sum()), 0, int(idle.sum()) * size
    busy = ran & (touched > 0)
    if places.which is None or places.which.ndim > 1:
        if busy.any() and places.tensors:
            if places.which is None:
                count = int(touched[busy].sum())
                yield places.tensors[0], int(busy.sum()), count, int(busy.sum()) * size - count
            else:
                which = np.broadcast_to(places.which, (lanes, *places.shape))[busy]
                for number, name in enumerate(places.tensors):
                    if count := int((which == number).sum()):
                        yield name, int(busy.sum()), count, 0
        return
    which = np.broadcast_to(places.which, (lanes,))
    for number, name in enumerate(places.tensors):
        mine = busy & (which == number)
        if mine.any():
            count = int(touched[mine].sum())
            yield name, int(mine.sum()), count, int(mine.sum()) * size - count
