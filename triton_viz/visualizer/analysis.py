"""Simple measures over a launch's records."""

from collections.abc import Iterable
from typing import TypedDict

from triton_viz.core.data import Access, Launch, Record


class Traffic(TypedDict):
    """What all programs together moved between one tensor and the kernel."""

    type: str
    tensor: str
    ops: int
    elements: int
    masked: int
    bytes: int


def analyze_records(launch: Launch, records: Iterable[Record]) -> list[Traffic]:
    """The traffic of each tensor, each kind of access apart, in order of first use."""
    itemsize = {tensor.name: tensor.itemsize for tensor in launch.tensors}
    table: dict[tuple[str, str], Traffic] = {}
    for record in records:
        if not isinstance(record, Access):
            continue
        kind, tensor = type(record).__name__, record.tensor
        row = table.setdefault(
            (kind, tensor), Traffic(type=kind, tensor=tensor, ops=0, elements=0, masked=0, bytes=0)
        )
        active = int(record.mask.sum())
        row["ops"] += 1
        row["elements"] += active
        row["masked"] += record.mask.size - active
        row["bytes"] += active * itemsize.get(tensor, 0)
    return list(table.values())
