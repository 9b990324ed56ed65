"""Lanes: which programs of a chunk run, and the exceptions for lanes that cannot continue together."""

import numpy as np


class Lanes:
    """The lanes of a chunk: one for each program."""

    __slots__ = ("active", "count")

    def __init__(self, count: int, active: np.ndarray | None = None):
        self.count = count
        self.active = active
        """The lanes that execute the current statement, as bools of shape (count,); None for all."""


def of_active(values: np.ndarray, lanes: Lanes) -> np.ndarray:
    """The values of shape (L, ...) of the active lanes."""
    return values if lanes.active is None or len(values) == 1 else values[lanes.active]


class Diverged(Exception):
    """Lanes differ in a condition or size that has to be equal to run them together.

    Not an error of the kernel: the executor undoes the chunk, and runs each group of lanes from the start.
    """

    def __init__(self, groups: list[np.ndarray], reason: str):
        super().__init__(f"{reason}: the lanes continue in {len(groups)} groups")
        self.groups = groups
        """Indices of lanes. Each lane of the chunk is in exactly one group."""
        self.reason = reason


class RunOneByOne(Exception):
    """The chunk's programs may wait for each other: the executor undoes it, and runs them one by one."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class RunLater(Exception):
    """A program that runs alone waits for another: the executor undoes it, and runs the others first."""


def groups_of(values: np.ndarray, lanes: Lanes, began: np.ndarray | None) -> list[np.ndarray]:
    """The groups of active lanes with equal values, and last the group of the inactive lanes."""
    present = np.ones(lanes.count, bool) if began is None else began
    active = present if lanes.active is None else lanes.active
    values = np.broadcast_to(values, lanes.count)
    groups = [np.flatnonzero(active & (values == value)) for value in np.unique(values[active])]
    return [group for group in (*groups, np.flatnonzero(present & ~active)) if len(group)]
