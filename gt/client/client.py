"""The client's end of the stream: instructions go out in batches, data comes back when asked for."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np

from gt import config
from gt.errors import ConnectionLost, WorkerError
from gt.transport import modifiers as streams
from gt.transport import protocol
from gt.transport.describe import debug
from gt.worker.condenser import Condenser

BATCH = 256
"""How many tensors are made, at the most, before the stream is sent on."""

SEVERAL_BATCHES = 8
"""How many times as many make one message if so many are under way, and more will come."""

FLUSH_SECONDS = 0.01
"""How long an instruction waits, at the most, before it is sent on."""

HELD_TICKS = 5
"""How many times as long it waits if it is part of something that seems to be repeated, while more comes."""


FORKED = (
    "this tensor belongs to the process that this one was forked from, and so does its connection. "
    "Make tensors after the fork"
)


class Connection(Protocol):
    """What a client needs of the way to its dispatcher."""

    def upload(self, result: int, array: np.ndarray, owned: bool) -> protocol.LocalInstruction:
        """The instruction that makes a tensor of this array, which may change later unless it is `owned`."""
        ...

    sent: int
    """How many batches have gone out."""

    under_way: int
    """How many instructions have been sent and may not be done; 0 where what is sent is done at once."""

    def wait_for_room(self) -> None:
        """Wait until another batch may be sent."""
        ...

    def send(self, batch: list[protocol.LocalInstruction]) -> None:
        """Send instructions; nothing comes back. Raises if the other side is gone."""
        ...

    def wait(self, request: int) -> protocol.Fetched:
        """Wait for the answer to a GetData that was sent."""
        ...

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        ...

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics."""
        ...

    def get_layouts(self, tensor: int) -> protocol.Layouts:
        """Where a tensor lies."""
        ...

    def condenses(self) -> None:
        """What is sent from now on has been looked through for repeats."""
        ...

    def last(self) -> None:
        """What is sent from now on is the last, and nobody will ask for data."""
        ...

    def close(self) -> None:
        """Leave."""
        ...

    def before_fork(self) -> None:
        """This process is about to be forked."""
        ...

    def after_fork(self) -> bool:
        """In a forked child: whether this connection is of no use here."""
        ...


class Client:
    """One user's stream. Issuing an op returns at once; only `fetch` waits.

    Issuing takes no lock: `emit` appends to a list, which Python does in one step, from any thread, also
    from a destructor. Only `flush` takes instructions off the list, from its front, under the lock.
    """

    def __init__(self, connection: Connection, modifiers: Sequence[streams.StreamModifier] = ()) -> None:
        self.connection = connection
        self.modifiers = list(modifiers)
        self._pending: list[protocol.LocalInstruction] = []
        self.emit: Callable[[protocol.LocalInstruction], None] = self._pending.append
        """Add an instruction to the stream."""
        self.next_id = itertools.count().__next__
        self.next_flush = BATCH
        """The number of the tensor at which the stream is sent on."""
        self._requests = itertools.count()
        self.sites: dict[tuple[int, int], int] = {}
        self._code: list[Any] = []
        self.on_behalf_of: tuple[int, int] | None = None
        """While a thread goes backward: its ident, and the line of the op it is at."""
        self.at_node = -1
        """While a thread goes backward: the tensor whose op it is at."""
        self.backward_signals: dict[int, Any] = {}
        """The signals for the gradients of ops, by the tensor that an op made: see signals.py."""
        # What modifiers have changed cannot be taken back if sending fails, as `_send` has to.
        self._condenser = Condenser(patient=True) if config.auto_compile() and not self.modifiers else None
        if self._condenser is not None:
            connection.condenses()
        self._waits = False
        """Whether somebody waits for room to send, and will."""
        self._lock = threading.RLock()
        self._trouble: Exception | None = None
        """What went wrong in the background."""
        self._closed = threading.Event()
        threading.Thread(target=self._flush_regularly, name="gt-flush", daemon=True).start()

    def create(self, array: np.ndarray, owned: bool = False) -> int:
        """Upload data; the result is the new tensor's id."""
        result = self.next_id()
        self.emit(self.connection.upload(result, array, owned))
        return result

    def fetch(self, tensor: int) -> np.ndarray:
        """A tensor's data. Sends what is pending, and waits."""
        self._raise_trouble()
        self._wait_for_room()
        with self._lock:
            request = next(self._requests)
            self.emit(protocol.GetData(request, tensor))
            self._send()
        reply = self.connection.wait(request)
        if reply.array is None:
            raise WorkerError(reply.error)
        return reply.array

    def flush(self, whole: bool = True) -> None:
        """Send what is pending; unless `whole`, what seems to become a repeat may wait for its end."""
        self._raise_trouble()
        # Here, before anything is taken off the list: this is where a fast client waits, and is interrupted.
        self._wait_for_room()
        with self._lock:
            if self._pending or self._held:
                self._send(whole)

    def _wait_for_room(self) -> None:
        self._waits = True
        try:
            self.connection.wait_for_room()
        finally:
            self._waits = False

    def pass_on(self) -> int:
        """Send what need not wait; the result is after how many more ops to do so again."""
        self.flush(whole=False)
        left, sequence = self._condenser.detector.expected if self._condenser is not None else (0, None)
        if sequence is None:
            return BATCH
        # Just when what is expected has come whole: it can run while the next is issued. As long as there is
        # enough to do, several go together, because every message takes its time; so does always what is done
        # sooner than sent.
        most = SEVERAL_BATCHES * BATCH
        wanted = BATCH if sequence.little else min(self.connection.under_way, most)
        while left < wanted:
            left += len(sequence)
        return min(left + 1, 2 * most)

    @property
    def _held(self) -> list[protocol.LocalInstruction]:
        """What waits for the end of a repeat."""
        return (self._condenser.held if self._condenser is not None else None) or []

    def _raise_trouble(self) -> None:
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble

    @property
    def _busy(self) -> bool:
        """Whether somebody is sending just now."""
        if not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False

    def _send(self, whole: bool = True) -> None:
        # The list stays the same object, and others only append to it: no instruction can slip away.
        pending = self._pending[: protocol.MAX_INSTRUCTIONS]
        del self._pending[: len(pending)]
        held, sent = self._held, self.connection.sent
        try:
            batch = streams.through(self.modifiers, pending) if self.modifiers else pending
            debug("client", batch)
            if self._condenser is not None:
                batch = self._condenser.condense(batch)
                if whole:
                    batch += self._condenser.release()
            if batch:
                self.connection.send(batch)
        except BaseException:
            if self.connection.sent == sent:
                if self._condenser is not None:
                    self._condenser.release()
                self._pending[:0] = held + pending
            raise
        if self._pending and len(pending) == protocol.MAX_INSTRUCTIONS:
            self._send(whole)

    def _flush_regularly(self) -> None:
        """Send what has waited too long, so that work starts, and memory is freed, while the user thinks."""
        seen, waited = (-1, 0, 0), 0
        while not self._closed.wait(FLUSH_SECONDS):
            # While batches go out anyway, this thread keeps out of the way of the one that fills them.
            seen, before = (self.connection.sent, len(self._pending), len(self._held)), seen
            waited = waited + 1 if seen[0] == before[0] else 0
            if waited and (self._pending or self._held) and not self._busy and not self._waits:
                try:
                    # A repeat that is on its way gets a little longer to come to its end.
                    self.flush(whole=seen == before or waited > HELD_TICKS)
                except Exception as error:  # noqa: BLE001 - raised by the next call from the user's own code
                    self._trouble = error

    def site(self, frame: FrameType | None) -> int:
        """The number of the line of the user's code that called into GT: the first one outside of it."""
        if self.on_behalf_of is not None and self.on_behalf_of[0] == threading.get_ident():
            return self.on_behalf_of[1]
        while frame is not None:
            code, place = frame.f_code, frame.f_lasti
            number = self.sites.get((id(code), place))
            if number is None:
                number = self._new_site(frame)
            if number >= 0:
                return number
            frame = frame.f_back
        return 0

    def _new_site(self, frame: FrameType) -> int:
        code = frame.f_code
        number = -1
        if not code.co_filename.startswith(_PACKAGE):
            number = len(self._code)
            self.emit(protocol.Site(number, f"{code.co_filename}:{frame.f_lineno}"))
        self._code.append(code)  # keeps it alive: its id must not come to mean another
        self.sites[id(code), frame.f_lasti] = number
        return number

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name, once everything issued so far is done."""
        self.flush()
        with self._lock:
            return self.connection.get_stats()

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics, once everything issued so far is done."""
        self.flush()
        return self.connection.get_dispatcher_stats()

    def get_layouts(self, tensor: int) -> protocol.Layouts:
        """Where a tensor lies."""
        self.flush()
        return self.connection.get_layouts(tensor)

    def hold(self) -> None:
        """Let nothing be sent until `release`."""
        self._lock.acquire()

    def release(self) -> None:
        """Go on."""
        self._lock.release()

    def after_fork(self) -> bool:
        """In a forked child: go on alone if the server is in this process too, or else give up.

        The result is whether it gave up: what belongs to the parent's connection is an error to use here.
        """
        self._lock = threading.RLock()
        if self.connection.after_fork():
            self.emit = _refuse_after_fork
            return True
        threading.Thread(target=self._flush_regularly, name="gt-flush", daemon=True).start()
        return False

    def close(self) -> None:
        """Send what is pending, and leave."""
        if not self._closed.is_set():
            self._closed.set()
            self.connection.last()
            try:
                # If the server is gone, so is everything that mattered.
                with contextlib.suppress(ConnectionLost):
                    self.flush()
            finally:
                self.connection.close()
                self.emit = _refuse_after_close
                self._pending.clear()


def _refuse_after_close(instruction: protocol.LocalInstruction) -> None:
    if type(instruction) is not int:
        raise ConnectionLost(
            "this tensor belongs to a connection that was closed, by close(), connect() or init(). "
            "Make it anew"
        )


def _refuse_after_fork(instruction: protocol.LocalInstruction) -> None:
    if type(instruction) is not int:  # the parent frees what is its own
        raise ConnectionLost(FORKED)


_PACKAGE = str(Path(__file__).parents[1])
