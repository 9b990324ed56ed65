"""The tape: every instruction that passes the dispatcher, one line each.

    1.608s | #0011 | RECV  | CLIENT c1  | BinaryOp  | 117B | result=2 op=add left=0 right=1

The most recent lines are always kept in memory; they are written out as text only when somebody looks.
`GT_INSTRUCTION_LOG=FILE` also writes them all to a file; it may be set at any time.
"""

import contextlib
import itertools
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TextIO

from gt import config
from gt.transport.describe import Described, Laid, LaidAgain, describe, size_of, tensor_of
from gt.transport.protocol import LocalInstruction
from gt.transport.repeats import flat, weight

KEPT = 10_000
"""How many lines are kept in memory."""
AT_ONCE = 1 << 20
"""Characters of the tape in one piece, for those who watch."""


class Entry(NamedTuple):
    """One line of the tape."""

    elapsed: float
    sequence: int
    event: str
    """RECV, SEND, WORKER_SEND, WORKER_RECV, LAYOUT, CONNECT or DISCONNECT."""
    source: str
    """Who: `CLIENT name` or `WORKER name`."""
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
    instructions: Sequence[LocalInstruction | Described | Laid | LaidAgain | None]
    failed: Mapping[int, str]

    def rows(self) -> Iterator[tuple[int, str, int, str]]:
        """Sequence number, command, size and details of each line."""
        reply = self.event in ("WORKER_RECV", "SEND")
        physical = f"{self.client}_" if self.event.startswith("WORKER") else ""
        prefix = "Worker" if physical else ""
        for number, instruction in enumerate(flat(self.instructions), self.first):
            if instruction is None:
                yield number, "", 0, ""
                continue
            command, subject, rest = describe(instruction, physical)
            if reply:
                yield number, prefix + command, 0, f"{subject} {self._ended(instruction)}"
            else:
                details = f"{subject} {rest}" if rest else subject
                yield number, prefix + command, size_of(instruction), details

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

    def _ended(self, instruction: LocalInstruction | Described | Laid) -> str:
        if not self.failed:
            return "success=True"
        error = self.failed.get(tensor_of(instruction))
        return "success=True" if error is None else f"FAILED {error}"


class InstructionStream:
    """Sees everything, changes nothing."""

    def __init__(self) -> None:
        self._passages: deque[_Passage] = deque()
        self._kept = 0
        self._start = time.monotonic()
        self._count = 0
        self._path: str | None = None
        self._file: TextIO | None = None

    def add(
        self,
        event: str,
        source: str,
        client: str = "",
        instructions: Sequence[LocalInstruction | Described | Laid | LaidAgain] = (),
        failed: Mapping[int, str] | None = None,
        count: int = 0,
    ) -> None:
        """Put what passed on the tape: instructions (without data), or replies to them, or neither.

        `count` is how many lines they take, if that is known already.
        """
        lines = instructions or (None,)
        count = count or weight(lines)
        elapsed = time.monotonic() - self._start
        passage = _Passage(elapsed, self._count, count, event, source, client, lines, failed or {})
        self._count += count
        self._kept += count
        self._passages.append(passage)
        while self._kept - self._passages[0].lines >= KEPT:
            self._kept -= self._passages.popleft().lines
        if self._file is not None:
            self._write(self._file, passage)

    def _write(self, file: TextIO, passage: _Passage) -> None:
        try:
            file.write(passage.text())
            file.flush()  # the tape is complete up to a crash, which is when it is read
        except OSError as error:
            self._file = None  # the path stays: it is said once
            self._complain(error)
            with contextlib.suppress(OSError):
                file.close()

    def _complain(self, error: OSError) -> None:
        # A log that cannot be written must not stop the program.
        print(f"[gt] no instruction log: GT_INSTRUCTION_LOG={self._path}: {error.strerror}", file=sys.stderr)

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
                self._file = open(path, "a") if path else None  # noqa: PTH123, SIM115
            except OSError as error:
                self._complain(error)

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
