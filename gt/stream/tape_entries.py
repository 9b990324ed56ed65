"""Entries of the tape that are not instructions: descriptions of instructions, and layout events."""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from gt.stream.instruction_table import EntryText, field, its_result, not_sent, row
from gt.stream.layouts import Placement, Sharded


@row(makes=its_result, size=attrgetter("nbytes"))
class UploadEntry(NamedTuple):
    """A CreateTensor or an Upload without its data, which the tape must not keep alive."""

    result: int
    shape: tuple[int, ...]
    dtype: str
    nbytes: int

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        rest = f"shape={field(self.shape)} dtype={self.dtype}"
        return "CreateTensor", f"tensor_id={prefix}{self.result}", rest


@row(makes=its_result, size=not_sent)
class LayoutEvent(NamedTuple):
    """The layout that the dispatcher chose for a new tensor."""

    result: int
    shape: tuple[int, ...]
    dtype: str
    placement: Placement

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        placement = self.placement
        rest = f"shape={field(self.shape)} dtype={self.dtype} layout={placement}"
        if isinstance(placement.layout, Sharded) and placement.layout.sizes:
            rest += f" parts={','.join(map(str, placement.layout.sizes))}"
        return "Layout", f"tensor_id={prefix}{self.result}", rest


@row(size=not_sent)
class Injected(msgspec.Struct, frozen=True, array_like=True):
    """The description of an instruction that a worker's modifier added to the stream."""

    command: str
    subject: str
    """The tensor it is about."""
    details: str

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        return self.command, self.subject, self.details


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
