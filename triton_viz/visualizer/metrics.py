"""Metrics: a number for each program of a launch, by which the map of the grid is coloured."""

import math
from collections.abc import Callable

import numpy as np

from triton_viz.core.data import Access, Dot, Issue, Launch, Load, Op, Record
from triton_viz.visualizer.record_columns import program_positions

Count = Callable[[Launch, Record], np.ndarray | float | None]
"""What a record adds to the metric of each of its lanes; None for nothing."""


def _ops(launch: Launch, record: Record) -> float | None:
    return 1.0 if isinstance(record, Op) else None


def _bytes(launch: Launch, record: Record) -> np.ndarray | None:
    if not isinstance(record, Access) or not record.elements.tensors:
        return None
    positions, lanes = record.elements, record.programs.lanes
    sizes = {tensor.name: tensor.itemsize for tensor in launch.tensors}
    touched = positions.touched(lanes)
    if positions.which is None or positions.which.ndim > 1:
        return touched * sizes.get(positions.tensors[0], 0)
    each = np.array([sizes.get(name, 0) for name in positions.tensors])
    return touched * each[np.broadcast_to(positions.which, (lanes,))]


def _loaded(launch: Launch, record: Record) -> np.ndarray | None:
    return _bytes(launch, record) if isinstance(record, Load) else None


def _stored(launch: Launch, record: Record) -> np.ndarray | None:
    return None if isinstance(record, Load) else _bytes(launch, record)


def _masked(launch: Launch, record: Record) -> np.ndarray | None:
    if not isinstance(record, Access):
        return None
    return math.prod(record.elements.shape) - record.elements.touched(record.programs.lanes)


def _flops(launch: Launch, record: Record) -> float | None:
    if not isinstance(record, Dot) or not record.left:
        return None
    return 2.0 * math.prod(record.result) * record.left[-1]


def _issues(launch: Launch, record: Record) -> float | None:
    return 1.0 if isinstance(record, Issue) else None


METRICS: dict[str, Count] = {
    "bytes": _bytes,
    "loaded": _loaded,
    "stored": _stored,
    "masked": _masked,
    "ops": _ops,
    "flops": _flops,
    "issues": _issues,
}
"""The metrics by name, as frontend/GLOSSARY.md describes them."""


def measure(launch: Launch, metric: str) -> np.ndarray:
    """The metric of each program, counted with x fastest."""
    count = METRICS[metric]
    result = np.zeros(math.prod(launch.grid))
    gx, gy, _ = launch.grid
    for record in launch.records:
        added = count(launch, record)
        if added is None:
            continue
        order, lanes = record.programs.order, record.programs.lanes
        if record.programs.active is not None:
            added = np.where(record.programs.active, added, 0)
        whole = order.listed is None and order.first == 0 and order.step == 1 and lanes == len(result)
        if whole and launch.grid[1] == launch.grid[2] == 1:
            result += added
        else:
            np.add.at(result, program_positions(record), np.broadcast_to(added, (lanes,)))
        if isinstance(record, Issue):
            for x, y, z in record.others:
                result[x + gx * (y + gy * z)] += 1
    return result
