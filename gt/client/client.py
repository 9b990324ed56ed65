"""The client's end of the stream: instructions go out in batches, data comes back when asked for."""

import atexit
import itertools
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from gt.config import debug
from gt.errors import WorkerError
from gt.server import local
from gt.transport import protocol
from gt.transport.connection import LocalConnection

BATCH = 128
"""How many instructions wait, at the most, before they are sent."""

_PACKAGE = str(Path(__file__).parents[1])


class Client:
    """One user's stream. Issuing an op returns at once; only `fetch` waits."""

    def __init__(self, connection: LocalConnection):
        self.connection = connection
        self._ids = itertools.count()
        self._requests = itertools.count()
        self._pending: list[protocol.ClientInstruction] = []
        # Tensors are freed by the garbage collector, at any moment, also while the lock is held by this
        # very thread. Appending to a deque needs no lock; the ids join the stream with the next batch.
        self._freed: deque[int] = deque()
        self._lock = threading.RLock()

    def create(self, array: np.ndarray) -> int:
        """Upload data; the result is the new tensor's id."""
        result = next(self._ids)
        self._issue(protocol.CreateTensor(result, protocol.ArrayData.of(array)))
        return result

    def apply(self, op: str, inputs: tuple[int, ...], attrs: dict[str, Any]) -> int:
        """Apply a row of the op table; the result is the new tensor's id."""
        result = next(self._ids)
        self._issue(protocol.Op(result, op, inputs, attrs, caller()))
        return result

    def _issue(self, instruction: protocol.ClientInstruction) -> None:
        with self._lock:
            self._pending.append(instruction)
            if len(self._pending) >= BATCH:
                self.flush()

    def free(self, tensor: int) -> None:
        """Say that a tensor will not be used again. Safe to call from a destructor."""
        self._freed.append(tensor)

    def fetch(self, tensor: int) -> np.ndarray:
        """A tensor's data. Sends what is pending, and waits."""
        with self._lock:
            request = next(self._requests)
            reply = self.connection.request([*self._take_pending(), protocol.GetData(request, tensor)])
        assert isinstance(reply, protocol.Data)
        assert reply.request == request
        if reply.array is None:
            raise WorkerError(reply.error)
        return reply.array.unpack()

    def flush(self) -> None:
        """Send what is pending."""
        with self._lock:
            batch = self._take_pending()
            if batch:
                self.connection.send(batch)

    def _take_pending(self) -> list[protocol.ClientInstruction]:
        # Frees go last: a tensor may be freed while an instruction that reads it is still pending.
        batch, self._pending = self._pending, []
        while self._freed:
            batch.append(protocol.FreeTensor(self._freed.popleft()))
        debug("client", batch)
        return batch

    def close(self) -> None:
        """Send what is pending, and leave."""
        self.flush()
        self.connection.close()


def caller() -> str:
    """The line of the user's code that called into GT, for error messages."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


_current: Client | None = None
_starting = threading.Lock()


def current() -> Client:
    """The program's client. The first call starts a server inside the program."""
    global _current
    with _starting:
        if _current is None:
            _current = Client(LocalConnection(local.start()))
            atexit.register(_current.close)
        return _current
