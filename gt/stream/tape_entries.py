"""Entries of the tape that are not instructions: uploads without their data, and layout events."""

from collections.abc import Sequence
from typing import NamedTuple

from gt.stream.layouts import Placement


class UploadEntry(NamedTuple):
    """A CreateTensor or an Upload without its data, which the tape must not keep alive."""

    result: int
    shape: tuple[int, ...]
    dtype: str
    nbytes: int


class LayoutEvent(NamedTuple):
    """The layout that the dispatcher chose for a new tensor."""

    result: int
    shape: tuple[int, ...]
    dtype: str
    placement: Placement


class RepeatedLayoutEvents(NamedTuple):
    """The layout events of a repeat whose placement was replayed: a LayoutEvent for each of its tensors."""

    events: Sequence[tuple[int, tuple[int, ...], str, Placement]]
    """For each tensor: the index of its id in `ids`, its shape, its dtype and its placement."""
    ids: Sequence[int]

    @property
    def size(self) -> int:
        """The number of events."""
        return len(self.events)

    def expanded(self) -> list[LayoutEvent]:
        """The events one by one."""
        return [
            LayoutEvent(self.ids[n], shape, dtype, placement) for n, shape, dtype, placement in self.events
        ]
