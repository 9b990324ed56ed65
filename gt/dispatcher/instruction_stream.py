"""The tape: every instruction that passes the dispatcher, one line each.

    1.608s | #0011 | RECV  | CLIENT c1  | BinaryOp  | 117B | result=2 op=add left=0 right=1

The most recent lines are always kept in memory; they are formatted as text only when they are read.
`GT_INSTRUCTION_LOG=FILE` also writes them all to a file; it may be set at any time. A file that exists is
appended to, and an APPEND line says where that begins: several servers may share one file.

A size is that of the data that an instruction, or the reply to it, carries, or else its own when encoded.
"""

import contextlib
import itertools
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gt import config, logs
from gt.dispatcher.log_file import LogFile
from gt.stream.describe import Described, LayoutEvent, RepeatedLayoutEvents, describe, size_of, tensor_of
from gt.stream.instructions import (
    GetData,
    Injected,
    LocalInstruction,
    Mark,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.stream.repeats import Repeat, flat, weight
from gt.transport.protocol import Ack, Done, encode

KEPT = 10_000
"""How many lines are kept in memory."""
AT_ONCE = 1 << 20
"""Characters of the tape in one piece, for those who watch."""
_REPLY_BYTES = {"SEND": len(encode(Ack(0))), "WORKER_RECV": len(encode(Done(0, 0.0, [], [])))}
"""Size of a reply that says success and nothing else, by the event it is."""


class Note(NamedTuple):
    """Text for a line that is about no instruction."""

    text: str


class Reply(NamedTuple):
    """What came back for a GetData."""

    nbytes: int
    error: str | None = None


class Entry(NamedTuple):
    """One line of the tape."""

    elapsed: float
    sequence: int
    event: str
    """RECV, SEND, WORKER_SEND, WORKER_RUN, WORKER_RECV, LAYOUT, CONNECT, DISCONNECT or APPEND. WORKER_RUN is
    what a worker's modifiers put into the stream."""
    source: str
    """Who: `CLIENT name`, `WORKER name` or, of APPEND, `SERVER pid`."""
    command: str
    size: int
    details: str

    def __str__(self) -> str:
        return (
            f"{self.elapsed:8.3f}s | #{self.sequence:04d} | {self.event:<12} | {self.source:<24} | "
            f"{self.command:<18} | {_bytes(self.size):>8} | {self.details}"
        )


class _Passage(NamedTuple):
    """Instructions that passed together."""

    elapsed: float
    first: int
    lines: int
    """How many lines it takes: a repeat is shown as what it stands for."""
    event: str
    source: str
    client: str
    instructions: Sequence[
        LocalInstruction | Described | LayoutEvent | RepeatedLayoutEvents | Injected | Note | None
    ]
    failed: Mapping[int, str]
    replies: Mapping[int, Reply]
    marks: Sequence[tuple[int, Mark]]

    def rows(self) -> Iterator[tuple[int, str, int, str]]:
        """Sequence number, command, size and details of each line."""
        reply = _REPLY_BYTES.get(self.event)
        physical = f"{self.client}_" if self.event.startswith("WORKER") else ""
        prefix = "Worker" if physical else ""
        for number, instruction in enumerate(self._shown(bool(physical)), self.first):
            if instruction is None or type(instruction) is Note:
                yield number, "", 0, instruction.text if instruction is not None else ""
                continue
            command, subject, rest = describe(instruction, physical)
            if reply is not None:
                size, ended = self._ended(instruction, reply)
                yield number, prefix + command, size, f"{subject} {ended}"
            else:
                details = f"{subject} {rest}" if rest else subject
                yield number, prefix + command, size_of(instruction), details

    def _shown(self, of_worker: bool) -> Iterator[Any]:
        """Each instruction by itself; where a worker runs several as a hot path, between marks."""
        if not of_worker:
            yield from flat(self.instructions)
            return
        marks = deque(self.marks)
        index = 0
        for one in self.instructions:
            repeat = type(one) is Repeat
            if repeat:
                yield WorkerHotPathStart(one.sequence.id)
            for each in flat((one,)):
                while marks and marks[0][0] <= index:
                    yield marks.popleft()[1]
                yield each
                index += 1
            if repeat:
                yield WorkerHotPathEnd(one.sequence.id, True)
        for _, mark in marks:
            yield mark

    def entries(self) -> Iterator[Entry]:
        """Each line by itself."""
        for number, command, size, details in self.rows():
            yield Entry(self.elapsed, number, self.event, self.source, command, size, details)

    def text(self) -> str:
        """All lines, as `str` of each entry would write them, in a third of the time."""
        start, middle = f"{self.elapsed:8.3f}s | #", f" | {self.event:<12} | {self.source:<24} | "
        lines = [
            f"{start}{number:04d}{middle}{command:<18} | {_bytes(size):>8} | {details}"
            for number, command, size, details in self.rows()
        ]
        if "".join(lines).isprintable():
            return "\n".join(lines) + "\n"
        # What a client sends must not be able to forge a line.
        return "".join(["".join(c if c.isprintable() else " " for c in line) + "\n" for line in lines])

    def _ended(
        self, instruction: LocalInstruction | Described | LayoutEvent | Injected, size: int
    ) -> tuple[int, str]:
        """How many bytes the reply to an instruction has (`size` if it only says success), and its text."""
        error = None
        if type(instruction) is GetData and instruction.request in self.replies:
            size, error = self.replies[instruction.request]
        elif isinstance(instruction, WorkerHotPathStart | WorkerHotPathEnd):
            size = 0
        if self.failed and error is None:
            error = self.failed.get(tensor_of(instruction))
        return (size, "success=True") if error is None else (len(error.encode()), f"FAILED {error}")


class InstructionStream:
    """Sees everything, changes nothing."""

    def __init__(self) -> None:
        self._passages: deque[_Passage] = deque()
        self._kept = 0
        self._start = time.monotonic()
        self._count = 0
        self._path: str | None = None
        self._file: LogFile | None = None
        self._logs: set[str] = set()
        """Files that it has written to."""

    def add(
        self,
        event: str,
        source: str,
        client: str = "",
        instructions: Sequence[
            LocalInstruction | Described | LayoutEvent | RepeatedLayoutEvents | Injected | Note
        ] = (),
        failed: Mapping[int, str] | None = None,
        replies: Mapping[int, Reply] | None = None,
        marks: Sequence[tuple[int, Mark]] = (),
    ) -> None:
        """Put what passed on the tape: instructions (without data), or replies to them, or neither.

        Of replies: `failed` has the errors by tensor, `replies` what came back by request. `marks` are the
        hot paths that a worker found by itself, each with the index of the instruction it stands before.
        """
        lines = instructions or (None,)
        count = weight(lines)
        if event.startswith("WORKER"):
            if count > len(lines):
                count += 2 * sum([type(one) is Repeat for one in lines])
            count += len(marks)
        elapsed = time.monotonic() - self._start
        passage = _Passage(
            elapsed, self._count, count, event, source, client, lines, failed or {}, replies or {}, marks
        )
        self._count += count
        self._kept += count
        self._passages.append(passage)
        while self._kept - self._passages[0].lines >= KEPT:
            self._kept -= self._passages.popleft().lines
        if self._file is not None:
            self._write(self._file, passage)

    def _write(self, file: LogFile, passage: _Passage) -> None:
        try:
            file.write(passage.text())
        except OSError as error:
            self._file = None  # the path stays: it is said once
            self._complain(error)
            with contextlib.suppress(OSError):
                file.close()

    def _complain(self, error: OSError) -> None:
        # A log that cannot be written must not stop the program.
        logs.error(f"no instruction log: GT_INSTRUCTION_LOG={self._path}: {error.strerror}")

    @property
    def has_file(self) -> bool:
        """Whether lines are written to a log file."""
        return self._file is not None

    @property
    def recent(self) -> list[Entry]:
        """The most recent lines, oldest first."""
        entries = itertools.chain.from_iterable(passage.entries() for passage in list(self._passages))
        return list(deque(entries, maxlen=KEPT))

    def since(self, start: int, skip: str = "", most: int = AT_ONCE) -> tuple[str, int, int]:
        """Lines from number `start` on, as far as they are kept: the text, its first number, the next one.

        A piece is about `most` characters; `skip` is a source whose lines are left out.
        """
        passages = list(self._passages)
        ends = [*(passage.first for passage in passages[1:]), self._count]
        parts: list[str] = []
        first = end = min(start, self._count)
        for passage, after in zip(passages, ends, strict=True):
            if after <= start:
                continue
            if not parts:
                first = passage.first
            parts.append("" if passage.source == skip else passage.text())
            end = after
            if sum(map(len, parts)) >= most:
                break
        return "".join(parts), first, end

    def follow_config(self) -> None:
        """Open, change or close the log file as GT_INSTRUCTION_LOG says now. Called once a batch."""
        path = config.instruction_log()
        if path != self._path:
            self.close()
            self._path = path
            try:
                self._file = LogFile(path) if path else None
            except OSError as error:
                self._complain(error)
            if path and self._file is not None and path not in self._logs:
                self._logs.add(path)
                if self._file.appends:
                    text = "a server's first line in this file: those above are of earlier ones, or of others"
                    self.add("APPEND", f"SERVER {os.getpid()}", instructions=[Note(text)])

    def close(self) -> None:
        """Close the log file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = self._path = None


def _bytes(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.0f}KB" if size < 1 << 20 else f"{size / (1 << 20):.1f}MB"
