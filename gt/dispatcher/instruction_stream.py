"""The tape: every instruction that passes the dispatcher, one line each.

    1.608s | #0011 | RECV  | CLIENT c1  | BinaryOp  | 117B | result=2 op=add left=0 right=1 at=train.py:12

An op's line ends with the module (of a PyTorch program) and the line of the user's code that issued it.

The most recent lines are always kept in memory; they are formatted as text only when they are read.
`GT_INSTRUCTION_LOG=FILE` also writes them all to a file; it may be set at any time. A file that exists is
appended to, with an APPEND line first: several servers may share one file.

The size is that of the data in the instruction or in the reply to it; without data, that of the encoded
instruction.
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
from gt.stream.describe import (
    LayoutEvent,
    RepeatedLayoutEvents,
    UploadEntry,
    describe,
    site_of,
    size_of,
    tensor_of,
)
from gt.stream.instructions import (
    GetData,
    LocalInstruction,
    Mark,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.stream.repeats import Repeat, flat, weight
from gt.stream.tape_entries import Injected
from gt.transport.protocol import Ack, Done, encode

MAX_KEPT_LINES = 10_000
"""How many lines are kept in memory."""
PAGE_CHARACTERS = 1 << 20
"""How many characters one page of the tape has, about."""
_REPLY_BYTES = {"SEND": len(encode(Ack(0))), "WORKER_RECV": len(encode(Done(0, 0.0, [], [])))}
"""By event: the size of a reply without data, in bytes."""


class PlainText(NamedTuple):
    """The text of a line that is not about an instruction."""

    text: str


class Reply(NamedTuple):
    """The size and the error of the reply to a GetData."""

    nbytes: int
    error: str | None = None


class Entry(NamedTuple):
    """One line of the tape."""

    elapsed: float
    sequence: int
    event: str
    """RECV, SEND, WORKER_SEND, WORKER_RUN, WORKER_RECV, LAYOUT, CONNECT, DISCONNECT or APPEND. WORKER_RUN
    shows instructions that a worker's modifiers added."""
    source: str
    """`CLIENT name`, `WORKER name` or, for APPEND, `SERVER pid`."""
    command: str
    size: int
    details: str

    def __str__(self) -> str:
        return (
            f"{self.elapsed:8.3f}s | #{self.sequence:04d} | {self.event:<12} | {self.source:<24} | "
            f"{self.command:<18} | {_bytes(self.size):>8} | {self.details}"
        )


class _Event(NamedTuple):
    """Instructions that were received or sent together; one line of the tape for each."""

    elapsed: float
    first: int
    lines: int
    """The number of lines, with repeats expanded."""
    event: str
    source: str
    client: str
    instructions: Sequence[
        LocalInstruction | UploadEntry | LayoutEvent | RepeatedLayoutEvents | Injected | PlainText | None
    ]
    failed: Mapping[int, str]
    replies: Mapping[int, Reply]
    marks: Sequence[tuple[int, Mark]]
    sites: Mapping[int, str]
    """The client's sites as text, by number."""

    def rows(self) -> Iterator[tuple[int, str, int, str]]:
        """Sequence number, command, size and details of each line."""
        reply = _REPLY_BYTES.get(self.event)
        physical = f"{self.client}_" if self.event.startswith("WORKER") else ""
        prefix = "Worker" if physical else ""
        for number, instruction in enumerate(self._shown(bool(physical)), self.first):
            if instruction is None or type(instruction) is PlainText:
                yield number, "", 0, instruction.text if instruction is not None else ""
                continue
            command, subject, rest = describe(instruction, physical)
            if reply is not None:
                size, outcome = self._outcome(instruction, reply)
                yield number, prefix + command, size, f"{subject} {outcome}"
            else:
                parts = subject, rest, site_of(instruction, self.sites)
                details = " ".join([part for part in parts if part])
                yield number, prefix + command, size_of(instruction), details

    def _shown(self, of_worker: bool) -> Iterator[Any]:
        """The instructions one by one, and the markers around the hot paths of a worker."""
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
        """All lines as text: the same as `str` of each entry, in a third of the time."""
        start, middle = f"{self.elapsed:8.3f}s | #", f" | {self.event:<12} | {self.source:<24} | "
        lines = [
            f"{start}{number:04d}{middle}{command:<18} | {_bytes(size):>8} | {details}"
            for number, command, size, details in self.rows()
        ]
        if "".join(lines).isprintable():
            return "\n".join(lines) + "\n"
        # Text from a client must not be able to forge a line.
        return "".join(["".join(c if c.isprintable() else " " for c in line) + "\n" for line in lines])

    def _outcome(
        self, instruction: LocalInstruction | UploadEntry | LayoutEvent | Injected, size: int
    ) -> tuple[int, str]:
        """How many bytes the reply to an instruction has (`size` if it has no data), and its text."""
        error = None
        if type(instruction) is GetData and instruction.request in self.replies:
            size, error = self.replies[instruction.request]
        elif isinstance(instruction, WorkerHotPathStart | WorkerHotPathEnd):
            size = 0
        if self.failed and error is None:
            error = self.failed.get(tensor_of(instruction))
        return (size, "success=True") if error is None else (len(error.encode()), f"FAILED {error}")


class InstructionStream:
    """The instruction tape: keeps the most recent lines, and writes the log file."""

    def __init__(self) -> None:
        self._events: deque[_Event] = deque()
        self._kept = 0
        self._start = time.monotonic()
        self._count = 0
        self._path: str | None = None
        self._file: LogFile | None = None
        self._logs: set[str] = set()
        """The paths of all log files written so far."""

    def add(
        self,
        event: str,
        source: str,
        client: str = "",
        instructions: Sequence[
            LocalInstruction | UploadEntry | LayoutEvent | RepeatedLayoutEvents | Injected | PlainText
        ] = (),
        failed: Mapping[int, str] | None = None,
        replies: Mapping[int, Reply] | None = None,
        marks: Sequence[tuple[int, Mark]] = (),
        sites: Mapping[int, str] = {},
    ) -> None:
        """Add an event: instructions (without data), or the replies to them, or neither.

        For replies, `failed` has the errors by tensor, and `replies` those to reads by request. `marks` are
        the markers of hot paths that a worker detected, each with the index of the instruction it precedes;
        `sites` are the client's sites as text, by number.
        """
        lines = instructions or (None,)
        count = weight(lines)
        if event.startswith("WORKER"):
            if count > len(lines):
                count += 2 * sum([type(one) is Repeat for one in lines])
            count += len(marks)
        elapsed = time.monotonic() - self._start
        added = _Event(
            elapsed,
            self._count,
            count,
            event,
            source,
            client,
            lines,
            failed or {},
            replies or {},
            marks,
            sites,
        )
        self._count += count
        self._kept += count
        self._events.append(added)
        while self._kept - self._events[0].lines >= MAX_KEPT_LINES:
            self._kept -= self._events.popleft().lines
        if self._file is not None:
            self._write(self._file, added)

    def _write(self, file: LogFile, event: _Event) -> None:
        try:
            file.write(event.text())
        except OSError as error:
            self._file = None  # the path stays, so that the error is reported once
            self._report(error)
            with contextlib.suppress(OSError):
                file.close()

    def _report(self, error: OSError) -> None:
        # A log that cannot be written must not stop the program.
        logs.error(f"cannot write the instruction log GT_INSTRUCTION_LOG={self._path}: {error.strerror}")

    @property
    def has_file(self) -> bool:
        """Whether lines are written to a log file."""
        return self._file is not None

    @property
    def recent(self) -> list[Entry]:
        """The most recent lines, oldest first."""
        entries = itertools.chain.from_iterable(event.entries() for event in list(self._events))
        return list(deque(entries, maxlen=MAX_KEPT_LINES))

    def since(self, start: int, skip: str = "", most: int = PAGE_CHARACTERS) -> tuple[str, int, int]:
        """The kept lines from number `start` on: the text, the number of its first line, and the next number.

        The text has about `most` characters; lines of the source `skip` are left out.
        """
        events = list(self._events)
        ends = [*(event.first for event in events[1:]), self._count]
        parts: list[str] = []
        first = end = min(start, self._count)
        for event, after in zip(events, ends, strict=True):
            if after <= start:
                continue
            if not parts:
                first = event.first
            parts.append("" if event.source == skip else event.text())
            end = after
            if sum(map(len, parts)) >= most:
                break
        return "".join(parts), first, end

    def follow_config(self) -> None:
        """Open, change or close the log file if GT_INSTRUCTION_LOG has changed. Called once a batch."""
        path = config.instruction_log()
        if path != self._path:
            self.close()
            self._path = path
            try:
                self._file = LogFile(path) if path else None
            except OSError as error:
                self._report(error)
            if path and self._file is not None and path not in self._logs:
                self._logs.add(path)
                if self._file.appends:
                    text = "this server starts to write here: the lines above are from other servers"
                    self.add("APPEND", f"SERVER {os.getpid()}", instructions=[PlainText(text)])

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
