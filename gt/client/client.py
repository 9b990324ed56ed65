"""The client: collects instructions, sends them in batches, and reads data back."""

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from gt import config, logs
from gt.client.link import Connection
from gt.errors import ConnectionLost, WorkerError
from gt.interrupts import deferred
from gt.stream import modifiers as streams
from gt.stream.describe import debug
from gt.stream.instructions import GetData, LocalInstruction, Site
from gt.stream.repeat_builder import RepeatBuilder
from gt.stream.repeats import Repeat, cut_after, weight
from gt.stream.sequences import HotSequence
from gt.stream.tensor_ids import client_id
from gt.transport import protocol

BATCH = 256
"""Pending instructions are sent when this many tensors have been created."""

MAX_BATCHES_PER_MESSAGE = 8
"""The largest number of batches of repeated instructions in one message, while workers have as many to
execute."""

FLUSH_SECONDS = 0.01
"""The longest time that an instruction waits before it is sent."""

HELD_TICKS = 5
"""How many times `FLUSH_SECONDS` an instruction of a predicted sequence waits, while the sequence grows."""

MAX_TAPE_PAGES = 64
"""The largest number of pages that one read of the tape requests: the tape may grow faster than it is
read."""

FORKED = (
    "this tensor belongs to the process that this one was forked from, and so does its connection. "
    "Create tensors after the fork"
)
CLOSED = (
    "this tensor belongs to a connection that was closed, by close(), connect() or init(). Create it again"
)

Listener = Callable[[LocalInstruction], None]


class BackwardPosition(threading.local):
    """The op whose gradient a thread is computing. Each thread has its own."""

    site: int | None = None
    """The site of the op, to which the instructions of its gradient are attributed."""
    tensor = -1
    """The result of the op."""


class Client:
    """One user's stream. Issuing an op returns at once; only `fetch` waits.

    Issuing takes no lock: `emit` appends to a list, which is atomic, from any thread and from destructors.
    Only `flush` removes instructions, from the front of the list, under the lock.
    Listeners (`add_listener`) are called with every instruction before it is appended.
    """

    def __init__(
        self, connection: Connection, modifiers: Sequence[streams.ModifierLike] | streams.Installed = ()
    ) -> None:
        self.connection = connection
        self.modifiers = streams.Installed(modifiers).for_client("client", client_id)
        self._pending: list[LocalInstruction] = []
        self.emit: Listener = self._pending.append
        """Add an instruction to the stream. Only `_update_emit` assigns it: without listeners it is the
        list's own `append`, since a Python function in between would cost every op and every free 40 ns."""
        self.listeners: tuple[Listener, ...] = ()
        """The functions that are called with every instruction, in this order."""
        self._refusal: str | None = None
        """The error of every further instruction, once the client is closed or forked."""
        self._emit_lock = threading.RLock()
        self.next_id = itertools.count().__next__
        self.next_flush = BATCH
        """The id of the tensor at which pending instructions are sent."""
        self._requests = itertools.count()
        self.sites: dict[tuple[Any, ...], int] = {}
        """The numbers of sites, by the `id()` of a code object and the offset in it; -1 for code of gt, whose
        ops have the site of its caller. `gt.torch.sites` uses other keys."""
        self._code: dict[int, CodeType] = {}
        """These code objects, kept alive so that their `id()` stays unique."""
        self._site_numbers: dict[tuple[str, str, str], int] = {}
        self.site_texts: dict[int, str] = {}
        """The sites as the tape shows them, by number."""
        self.backward_position = BackwardPosition()
        """The op whose gradient each thread is computing."""
        self.backward_signals: dict[int, Any] = {}
        """By result of an op: the signal for the gradients of the op (see signals.py)."""
        self.uses_signals = False
        """Whether a signal was ever used: then `emit` has a listener that issues them."""
        # Not with modifiers: their changes cannot be undone if sending fails, as `_send` has to.
        self._repeat_builder = (
            RepeatBuilder(hold_complete=True) if config.auto_compile() and not self.modifiers else None
        )
        if self._repeat_builder is not None:
            connection.sends_repeats(self._repeat_builder.detector)
        self._expected: tuple[int, HotSequence | None] = 0, None
        """After the last batch: the predicted sequence, and how many of its ops have not been issued yet."""
        self._waits = False
        """Whether a thread waits until another batch may be sent, and will send one."""
        self._lock = threading.RLock()
        self._flush_error: Exception | None = None
        """An error of the flush thread, which the next call raises."""
        self._closed = threading.Event()
        threading.Thread(target=self._flush_regularly, name="gt-flush", daemon=True).start()

    # --- listeners ---

    def add_listener(self, listener: Listener) -> None:
        """Call a function with every instruction from now on, on the issuing thread, before it is added.

        It may emit instructions, which precede that one and for which all listeners are called, too. If it
        raises, the instruction is not added. Adding a listener twice has no effect.
        """
        with self._emit_lock:
            if listener not in self.listeners:
                self.listeners = (*self.listeners, listener)
                self._update_emit()

    def remove_listener(self, listener: Listener) -> None:
        """Remove a listener. Removing one that was not added has no effect."""
        with self._emit_lock:
            self.listeners = tuple([one for one in self.listeners if one != listener])
            self._update_emit()

    def _refuse(self, why: str) -> None:
        """Raise ConnectionLost with this text for every instruction from now on."""
        with self._emit_lock:
            self._refusal = why
            self._update_emit()

    def _update_emit(self) -> None:
        if self._refusal is None and not self.listeners:
            self.emit = self._pending.append
        else:
            self.emit = _checked_emit(self._pending.append, self.listeners, self._refusal)

    # --- issuing and reading ---

    def create(self, array: np.ndarray, owned: bool = False) -> int:
        """Upload an array; returns the new tensor's id."""
        result = self.next_id()
        self.emit(self.connection.upload(result, array, owned))
        return result

    def repeat(self, repeat: Repeat) -> None:
        """Add an occurrence of a known sequence to the stream; with listeners or modifiers, its ops one by
        one."""
        if self._repeat_builder is None or self.listeners or self._refusal is not None:
            for instruction in repeat.expanded():
                self.emit(instruction)
        else:
            self._repeat_builder.detector.count(repeat)
            self.emit(repeat)  # type: ignore[arg-type] - `_send` takes it

    def fetch(self, tensor: int) -> np.ndarray:
        """A tensor's data: sends pending instructions, and waits. Raises WorkerError if it could not be
        computed."""
        self._raise_flush_error()
        self._wait_for_room()
        read = GetData(next(self._requests), tensor)
        sent = self.connection.sent
        try:
            with self._lock:
                self.emit(read)
                self._send()
            reply = self.connection.wait(read.request)
        except BaseException:  # a timeout, or KeyboardInterrupt: the reply may still arrive
            self._withdraw(read, sent)
            raise
        if logs.wants("client"):
            outcome = "failed" if reply.array is None else f"{reply.array.nbytes} bytes"
            logs.debug("client", f"the data of tensor {tensor}: {outcome}")
        if reply.array is None:
            raise WorkerError(reply.error)
        return reply.array

    def _withdraw(self, read: GetData, sent: int) -> None:
        """Remove a read from the pending instructions or, if it was sent, drop its reply.

        `sent` is the number of batches sent before: if it is unchanged, the read was not sent.
        """
        with self._lock:
            if read in self._pending:
                self._pending.remove(read)
            elif self.connection.sent != sent:
                self.connection.abandon(read.request)

    def flush(self, whole: bool = True) -> None:
        """Send pending instructions. Unless `whole`, those of a predicted sequence may wait for its end."""
        self._raise_flush_error()
        # Before anything is removed from the list, because the wait may be interrupted.
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

    def flush_ready(self) -> int:
        """Send the instructions that are not held; returns the number of ops after which to call it again."""
        self.flush(whole=False)
        left, sequence = self._expected  # read once: another thread may send meanwhile
        if sequence is None:
            return BATCH
        # Send when the predicted sequence is complete: workers execute it while the next one is issued. While
        # they have enough instructions, send several sequences together, because each message has a fixed
        # cost; always do so for loops of a few ops, which take less time to execute than to send.
        most = MAX_BATCHES_PER_MESSAGE * BATCH
        wanted = self.connection.tiny_batch if sequence.is_tiny else min(self.connection.unacknowledged, most)
        while left < wanted:
            left += len(sequence)
        return min(left + 1, 2 * most)

    @property
    def _held(self) -> list[LocalInstruction]:
        """The instructions that wait for the end of a predicted sequence."""
        return (self._repeat_builder.held if self._repeat_builder is not None else None) or []

    def _raise_flush_error(self) -> None:
        if self._flush_error is not None:
            error, self._flush_error = self._flush_error, None
            raise error

    @property
    def _busy(self) -> bool:
        """Whether a thread is sending."""
        if not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False

    def _send(self, whole: bool = True) -> None:
        with deferred:
            more = True
            while more:
                more = self._send_some(whole)

    def _send_some(self, whole: bool) -> bool:
        """Send pending instructions, as many as a message may have; returns whether there are more."""
        # The list stays the same object, and other threads only append to it: no instruction is lost.
        pending = self._pending[: cut_after(self._pending, 0, protocol.MAX_INSTRUCTIONS)]
        del self._pending[: len(pending)]
        held, sent = self._held, self.connection.sent
        try:
            batch = self.modifiers.process(pending) if self.modifiers else pending
            debug("client", batch, sites=self.site_texts)
            if self._repeat_builder is not None:
                batch = self._repeat_builder.build(batch)
                if whole:
                    batch += self._repeat_builder.release()
                self._expected = self._repeat_builder.detector.expected
            if batch:
                self.connection.send(batch)
        except BaseException:
            if self.connection.sent == sent:
                if self._repeat_builder is not None:
                    self._repeat_builder.release()
                    self._expected = 0, None
                self._pending[:0] = held + pending
            raise
        return bool(self._pending) and weight(pending) >= protocol.MAX_INSTRUCTIONS

    def _flush_regularly(self) -> None:
        """Send instructions that have waited too long, so that workers start while the program does not issue
        any."""
        seen, waited = (-1, 0, 0), 0
        while not self._closed.wait(FLUSH_SECONDS):
            # While batches are sent anyway, this thread does not compete with the one that issues them.
            seen, before = (self.connection.sent, len(self._pending), len(self._held)), seen
            waited = waited + 1 if seen[0] == before[0] else 0
            try:
                self.connection.drop_abandoned()
            except Exception as error:  # noqa: BLE001 - as below
                self._flush_error = error
            if waited and (self._pending or self._held) and not self._busy and not self._waits:
                try:
                    # A predicted sequence that still grows is held longer, so that it can become complete.
                    self.flush(whole=seen == before or waited > HELD_TICKS)
                except Exception as error:  # noqa: BLE001 - raised by the next call from the user's code
                    self._flush_error = error

    def site(self, frame: FrameType | None) -> int:
        """The number of the line of the user's code that called gt: that of the innermost frame outside of
        gt."""
        site = self.backward_position.site
        if site is not None:
            return site
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
        if not code.co_filename.startswith(PACKAGE):
            number = self.site_number(f"{code.co_filename}:{frame.f_lineno}")
        self.keep_site(code, (id(code), frame.f_lasti), number)
        return number

    def site_number(self, where: str, module: str = "", phase: str = "") -> int:
        """The number of a site, whose definition is issued if it is new. The arguments are a Site's
        fields."""
        with self._emit_lock:
            number = self._site_numbers.get((where, module, phase))
            if number is None:
                text = where.encode(errors="replace").decode()  # the name of a file need not be Unicode
                site = Site(len(self._site_numbers), text, module, phase)
                self.emit(site)
                number = self._site_numbers[where, module, phase] = site.number
                self.site_texts[number] = site.fields
        return number

    def keep_site(self, code: CodeType, key: tuple[Any, ...], number: int) -> None:
        """Remember the number of a site under a key that has the `id()` of this code."""
        self._code[id(code)] = code
        self.sites[key] = number

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name, once everything issued so far is done."""
        self.flush()
        with self._lock:
            return self.connection.get_stats()

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics, once everything issued so far is done."""
        self.flush()
        return self.connection.get_dispatcher_stats()

    def get_client_stats(self) -> dict[str, Any]:
        """This client's statistics and its modifiers', once everything issued so far is sent."""
        self.flush()
        stats: dict[str, Any] = {"pid": os.getpid(), "batches_sent": self.connection.sent}
        if self.modifiers:
            stats["modifiers"] = self.modifiers.get_stats()
        return stats

    def get_instruction_tape(self) -> list[str]:
        """The lines of the tape that the dispatcher keeps, once everything issued so far is done."""
        self.get_stats()  # a worker answers when it has executed everything before
        lines: list[str] = []
        start, end = -1, 0
        for _ in range(MAX_TAPE_PAGES):  # other clients may keep writing
            if end <= start:
                break
            start = end
            page = self.connection.get_tape(start, own=True)
            lines += page.text.splitlines()
            end = page.next
        return lines

    def get_layouts(self, tensor: int) -> protocol.Layouts:
        """A tensor's placements."""
        self.flush()
        return self.connection.get_layouts(tensor)

    def hold(self) -> None:
        """Block sending until `release`, before a fork."""
        self._lock.acquire()

    def release(self) -> None:
        """Allow sending again."""
        self._lock.release()

    def after_fork(self) -> bool:
        """In a forked child: go on if the server is in this process, too; else refuse instructions.

        Returns whether it refuses them: then using a tensor of the parent's connection raises ConnectionLost.
        """
        self._lock = threading.RLock()
        self._emit_lock = threading.RLock()
        if self.connection.after_fork():
            self._refuse(FORKED)
            return True
        threading.Thread(target=self._flush_regularly, name="gt-flush", daemon=True).start()
        return False

    def close(self) -> None:
        """Send pending instructions, and disconnect."""
        if not self._closed.is_set():
            self._closed.set()
            self.connection.before_close()
            try:
                # If the server has ended, there is nothing left to send to.
                with contextlib.suppress(ConnectionLost):
                    self.flush()
            finally:
                self.connection.close()
                self._refuse(CLOSED)
                self._pending.clear()


def _checked_emit(append: Listener, listeners: tuple[Listener, ...], refusal: str | None) -> Listener:
    """`emit` for a client that has listeners, or that refuses instructions."""

    def emit(instruction: LocalInstruction) -> None:
        if refusal is not None:
            if type(instruction) is int:
                return  # a free: the server frees a closed connection's tensors, and the parent its own
            raise ConnectionLost(refusal)
        for listener in listeners:
            listener(instruction)
        append(instruction)

    return emit


PACKAGE = str(Path(__file__).parents[1])
"""The folder of gt's sources: lines of code in it are not the user's."""
