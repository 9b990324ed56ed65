"""The embedded server: a dispatcher and one worker inside the user's program.

It uses the same classes as other servers, with calls instead of sockets: nothing is encoded.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gt import logs
from gt.dispatcher import Dispatcher
from gt.dispatcher.fair_share import Chunk
from gt.errors import ProtocolError
from gt.interrupts import deferred
from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import LocalInstruction, Part, Upload
from gt.stream.modifiers import ModifierLike
from gt.transport.assembly import Replies
from gt.transport.protocol import Fetched, Layouts, Member, TapeLines
from gt.worker import Worker
from gt.worker.worker import Outcome

TINY_LOOP_SEND_OPS = 2048
"""How many ops of a loop of a few ops one call of `send` executes. More than over processes, where workers
execute a batch while the program issues the next one: here a larger batch only costs less per op."""


class LocalWorker:
    """A worker in the dispatcher's own process: it answers before `send` returns."""

    def __init__(self, dispatcher: Dispatcher, worker: Worker) -> None:
        self._dispatcher = dispatcher
        self.worker = worker
        self.name = worker.name
        self.forget = worker.forget
        self.closing = False
        self.member: Member | None = None
        self.memory_limit = 0

    def send(self, sequence: int, chunk: Chunk) -> None:
        """Execute a chunk."""
        if self.closing and not self.worker.loaded:
            # No read follows: the tape is complete without loading an engine at exit.
            self._dispatcher.done(sequence, 0.0, [], [])
            return
        try:
            outcome = self.worker.execute(chunk.session.name, chunk.instructions)
        except BaseException as error:
            why = f"it was interrupted by {type(error).__name__} {error}".rstrip()
            outcome = self.worker.abort(chunk.session.name, chunk.instructions, why)
            self._done(sequence, outcome)
            raise
        self._done(sequence, outcome)

    def _done(self, sequence: int, outcome: Outcome) -> None:
        failed, data, seconds, marks, injected = outcome
        self._dispatcher.done(sequence, seconds, failed, data, marks, injected)

    def update_members(self, epoch: int, members: dict[str, Member]) -> None:
        """Nothing to do: it is the only worker."""

    def request_specs(self, client: str) -> None:
        """Report the specs of a client's tensors."""
        self._dispatcher.receive_specs(client, *self.worker.specs(client))


class LocalServer:
    """A dispatcher and a worker."""

    def __init__(
        self,
        engine: str = "pytorch",
        dispatcher_modifiers: Sequence[ModifierLike] = (),
        worker_modifiers: Sequence[ModifierLike] = (),
    ) -> None:
        self.worker = Worker("auto_worker", engine, modifiers=worker_modifiers, embedded=True)
        self.dispatcher = Dispatcher(dispatcher_modifiers)
        self.link = LocalWorker(self.dispatcher, self.worker)
        self.dispatcher.add_worker(self.link)
        logs.debug("worker", f"{self.worker.name} ({engine}) registered with a server in this program")


class LocalConnection:
    """The connection of a client to a server in the same process."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self._replies = Replies()
        self.sent = 0
        self.unacknowledged = 0
        self.tiny_batch = TINY_LOOP_SEND_OPS
        self.name = server.dispatcher.connect(self)
        logs.debug("client", f"connected as {self.name} to a server in this program")

    # --- called by the client ---

    def upload(self, result: int, array: np.ndarray, owned: bool) -> LocalInstruction:
        """The instruction that uploads an array."""
        return Upload(result, np.asarray(array, order="C") if owned else np.array(array, order="C"))

    def wait_for_room(self) -> None:
        """Return at once: `send` executes the batch."""

    def send(self, batch: list[LocalInstruction]) -> None:
        """Execute a batch."""
        self.sent += 1
        self.server.dispatcher.receive(self.name, self.sent, batch)

    def wait(self, request: int) -> Fetched:
        """The reply to a GetData."""
        request, array, error, _ = self._replies.take(request)
        # The array is in the worker's memory, so the user gets a copy.
        return Fetched(request, None if array is None else array.copy(), error)

    def abandon(self, request: int) -> None:
        """Drop the reply to a request, also if it has not arrived yet."""
        self._replies.abandon(request)

    def drop_abandoned(self) -> None:
        """Nothing to do: replies arrive before `send` returns."""

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        with deferred:
            return {self.server.worker.name: self.server.worker.get_stats(self.name)}

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics."""
        return self.server.dispatcher.get_stats(self.name)

    def get_layouts(self, tensor: int) -> Layouts:
        """A tensor's placements."""
        found = self.server.dispatcher.layouts(self.name, tensor)
        return Layouts(0, *(found or ((), [], "not known yet")))

    def get_tape(self, start: int = 0, own: bool = False) -> TapeLines:
        """Lines of the tape from this number on, as far as they are kept."""
        skip = "" if own else f"CLIENT {self.name}"
        return TapeLines(0, *self.server.dispatcher.stream.since(start, skip))

    def before_fork(self) -> None:
        """Wait for background calls: a forked child does not have their thread."""
        with deferred:
            self.server.worker.finish()

    def after_fork(self) -> bool:
        """In a forked child: this process has its own copy of the server, and continues with it."""
        return False

    def sends_repeats(self, detector: HotPathDetector) -> None:
        """Let the worker detect no repeats itself, unless a modifier changes the stream."""
        if not self.server.dispatcher.modifiers and not self.server.worker.modifiers:
            self.server.worker.sends_repeats[self.name] = detector

    def before_close(self) -> None:
        """Record that no reads follow, so that no engine is loaded only to end."""
        self.server.link.closing = True

    def close(self) -> None:
        """Disconnect."""
        logs.debug("client", f"{self.name} disconnects from the server in this program")
        with deferred:
            self.server.dispatcher.disconnect(self.name)
            self.server.dispatcher.stream.close()

    # --- called by the dispatcher ---

    def ack(self, sequence: int) -> None:
        """Nothing to do: the client does not wait for acknowledgements."""

    def data(self, reply: Fetched) -> None:
        """Receive the reply to a read."""
        self._replies.add_data(reply)

    def failed(self, request: int, error: str, part: Part | None = None) -> None:
        """Receive the error of a read, or of one part of it."""
        self.data(Fetched(request, None, error, part))

    def refused(self, error: str) -> None:
        """Raise the error with which the dispatcher refuses this client."""
        raise ProtocolError(error)
