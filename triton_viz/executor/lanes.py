"""Lanes: which programs of a chunk run, and the exceptions for lanes that cannot continue together."""

import numpy as np


class Lanes:
    """The lanes of a chunk, one program each."""

    __slots__ = ("active", "count")

    def __init__(self, count: int, active: np.ndarray | None = None):
        self.count = count
        self.active = active
        """Which lanes run the current statement, (count,) bools; None means all. Side effects are theirs."""


def of_active(values: np.ndarray, lanes: Lanes) -> np.ndarray:
    """The values of shape (L, ...) of the active lanes."""
    return values if lanes.active is None or len(values) == 1 else values[lanes.active]


class Diverged(Exception):
    """Lanes disagree about something that cannot be computed for all of them at once.

    It is not an error of the kernel: undo the chunk, and run each group of lanes from the start.
    """

    def __init__(self, groups: list[np.ndarray], reason: str):
        super().__init__(f"{reason}: the lanes continue in {len(groups)} groups")
        self.groups = groups
        """Indices of lanes. Every lane that the chunk began with is in exactly one group."""
        self.reason = reason


class RunOneByOne(Exception):
    """This chunk's programs may wait for each other: undo the chunk, and run them one at a time."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class RunLater(Exception):
    """A program that runs alone waits for one that has not run: undo it, and run the others first."""


def groups_of(values: np.ndarray, lanes: Lanes, began: np.ndarray | None) -> list[np.ndarray]:
    """The active lanes by value, and after them those that the chunk began with and that are not active."""
    present = np.ones(lanes.count, bool) if began is None else began
    active = present if lanes.active is None else lanes.active
    values = np.broadcast_to(values, lanes.count)
    groups = [np.flatnonzero(active & (values == value)) for value in np.unique(values[active])]
    return [group for group in (*groups, np.flatnonzero(present & ~active)) if len(group)]
