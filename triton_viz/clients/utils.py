"""Helpers for clients: making a record of the current op, and keeping records by chunk."""

import threading
from typing import Any, TypeVar

from triton_viz.core.call_path import (
    Columns,
    Instruction,
    here,
    kernel_call_path,
    kernel_columns,
    kernel_instruction,
)
from triton_viz.core.data import Op, Record
from triton_viz.core.records.columns import Programs

__all__ = [
    "ChunkRecords",
    "Columns",
    "Instruction",
    "here",
    "kernel_call_path",
    "kernel_columns",
    "kernel_instruction",
    "record",
]

R = TypeVar("R", bound=Record)


def record(kind: type[R], **fields: Any) -> R:
    """A record of the op that is being executed, with its programs and its line. For use in callbacks."""
    now = here()
    path = kernel_call_path(now.kernel)
    return kind(programs=now.programs, call_path=path, iterations=now.iterations, **fields)


class ChunkRecords:
    """Keeps the records of a launch by chunk, for a vectorized client: its callbacks come from any thread."""

    def __init__(self) -> None:
        self._chunks: list[tuple[int, list[Op]]] = []
        self._mine = threading.local()

    def begin(self, programs: Programs) -> None:
        """Begin a chunk of these programs on this thread."""
        self._mine.records = []
        self._chunks.append((programs.order.at(0), self._mine.records))

    def add(self, record: Op) -> None:
        """Add a record to the chunk of this thread."""
        self._mine.records.append(record)

    def discard(self) -> None:
        """Discard the records of this thread's chunk, because its programs run again."""
        self._mine.records.clear()

    def chunks(self) -> list[list[Op]]:
        """The records of each chunk that has any, in the order of programs."""
        ordered = sorted(self._chunks, key=lambda chunk: chunk[0])
        return [records for _, records in ordered if records]
