"""The tape: every instruction that passes the dispatcher, one line each.

    1.608s | #0011 | RECV  | CLIENT c1  | BinaryOp  | 117B | result=2 op=add left=0 right=1

The most recent lines are always kept in memory. `GT_INSTRUCTION_LOG=FILE` also writes them all to a
file; it may be set at any time.
"""

import sys
import time
from collections import deque
from typing import NamedTuple, TextIO

from gt import config
from gt.ops import TABLE
from gt.transport import protocol

KEPT = 10_000
"""How many lines are kept in memory."""

Message = protocol.ClientInstruction | protocol.WorkerInstruction | protocol.Reply


class Entry(NamedTuple):
    """One line of the tape."""

    elapsed: float
    sequence: int
    event: str
    """RECV, SEND, WORKER_SEND, WORKER_RECV, CONNECT or DISCONNECT."""
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


class InstructionStream:
    """Sees everything, changes nothing."""

    def __init__(self) -> None:
        self.recent: deque[Entry] = deque(maxlen=KEPT)
        self._start = time.monotonic()
        self._count = 0
        self._path: str | None = None
        self._file: TextIO | None = None

    def add(
        self, event: str, source: str, message: Message | None = None, about: Message | None = None
    ) -> None:
        """Put a message on the tape; a reply may say what it is about."""
        # The entry describes the message and lets go of it: the message may hold a tensor's data.
        command, details = _command(about or message), _details(message)
        if about is not None:
            details = f"{_details(about).split()[0]} {details}"
        elapsed = time.monotonic() - self._start
        entry = Entry(elapsed, self._count, event, source, command, protocol.size(message), details)
        self._count += 1
        self.recent.append(entry)
        if self._file is not None:
            self._file.write(f"{entry}\n")

    def follow_config(self) -> None:
        """Open, change or close the log file as GT_INSTRUCTION_LOG says now. Called once a batch."""
        path = config.instruction_log()
        if path != self._path:
            self.close()
            self._path = path
            try:
                # Line buffered: the tape is complete up to a crash, which is when it is read.
                self._file = open(path, "a", buffering=1) if path else None  # noqa: PTH123, SIM115
            except OSError as error:
                # Said once for each path: a log that cannot be written must not stop the program.
                print(
                    f"[gt] no instruction log: GT_INSTRUCTION_LOG={path}: {error.strerror}", file=sys.stderr
                )

    def close(self) -> None:
        """Close the log file."""
        if self._file is not None:
            self._file.close()
        self._file = self._path = None


def _command(message: Message | None) -> str:
    """What the tape calls a message; an op goes by its kind."""
    match message:
        case None:
            return ""
        case protocol.Op(op=op):
            return TABLE[op].kind
        case protocol.WorkerOp(op=op):
            return f"Worker{TABLE[op].kind}"
        case _:
            return type(message).__name__


def _details(message: Message | None) -> str:
    match message:
        case None:
            return ""
        case protocol.Op(result, op, inputs, attrs) | protocol.WorkerOp(result, op, inputs, attrs):
            key = "tensor_id" if TABLE[op].kind == "CreateTensor" else "result"
            names = ("left", "right") if len(inputs) == 2 else ("input",)
            fields = {key: result, "op": op, **dict(zip(names, inputs, strict=False)), **attrs}
            return " ".join(f"{name}={_field(value)}" for name, value in fields.items())
        case protocol.CreateTensor(result, array) | protocol.WorkerCreateTensor(result, array):
            return f"tensor_id={result} shape={_field(array.shape)} dtype={array.dtype}"
        case protocol.Ack(error=error) | protocol.Data(error=error):
            return "success=True" if error is None else f"FAILED {error.splitlines()[0]}"
        case _:
            return f"tensor_id={message.tensor}"


def _field(value: object) -> str:
    """A value without spaces: a shape is `128x64`, and that of a number `()`."""
    return "x".join(map(str, value)) or "()" if isinstance(value, list | tuple) else str(value)


def _bytes(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.0f}KB" if size < 1 << 20 else f"{size / (1 << 20):.1f}MB"
