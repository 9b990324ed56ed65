"""The embedded server: a dispatcher and one worker inside the user's own program.

The same classes as anywhere else, with calls instead of sockets: nothing is encoded, nothing waits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gt.dispatcher import Dispatcher
from gt.dispatcher.fair_share import Chunk
from gt.errors import ProtocolError
from gt.transport.assembly import Assembly
from gt.transport.modifiers import StreamModifier
from gt.transport.protocol import Fetched, Layouts, LocalInstruction, Member, Part, Upload
from gt.worker import Worker


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
        """Carry out instructions."""
        if self.closing and not self.worker.loaded:
            # Nobody will read the results: the tape is complete without loading an engine at exit.
            self._dispatcher.done(sequence, 0.0, [], [])
            return
        try:
            outcome = self.worker.execute(chunk.session.name, chunk.instructions)
        except BaseException as error:
            why = f"it was broken off by {type(error).__name__} {error}".rstrip()
            outcome = self.worker.abort(chunk.session.name, chunk.instructions, why)
            self._dispatcher.done(sequence, outcome.seconds, outcome.failed, outcome.data, outcome.marks)
            raise
        self._dispatcher.done(sequence, outcome.seconds, outcome.failed, outcome.data, outcome.marks)

    def meet(self, epoch: int, members: dict[str, Member]) -> None:
        """It is alone."""

    def ask_specs(self, client: str) -> None:
        """Say what it has of a client."""
        self._dispatcher.specs(client, *self.worker.specs(client))


class LocalServer:
    """A dispatcher and a worker."""

    def __init__(
        self,
        engine: str = "pytorch",
        dispatcher_modifiers: Sequence[StreamModifier] = (),
        worker_modifiers: Sequence[StreamModifier] = (),
    ) -> None:
        self.worker = Worker("auto_worker", engine, modifiers=worker_modifiers, embedded=True)
        self.dispatcher = Dispatcher(dispatcher_modifiers)
        self.link = LocalWorker(self.dispatcher, self.worker)
        self.dispatcher.add_worker(self.link)


class LocalConnection:
    """A client's way to a server in its own process."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self._replies: dict[int, Fetched] = {}
        self._assembly = Assembly()
        self.sent = 0
        self.under_way = 0
        self.name = server.dispatcher.connect(self)

    # --- what the client calls ---

    def upload(self, result: int, array: np.ndarray, owned: bool) -> LocalInstruction:
        """The instruction that makes a tensor of this array."""
        return Upload(result, np.asarray(array, order="C") if owned else np.array(array, order="C"))

    def wait_for_room(self) -> None:
        """There always is: what is sent is done at once."""

    def send(self, batch: list[LocalInstruction]) -> None:
        """Carry out instructions."""
        self.sent += 1
        self.server.dispatcher.receive(self.name, self.sent, batch)

    def wait(self, request: int) -> Fetched:
        """The answer to a GetData that was sent."""
        request, array, error, _ = self._replies.pop(request)
        # The worker's own memory: the user gets a copy.
        return Fetched(request, None if array is None else array.copy(), error)

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        return {self.server.worker.name: self.server.worker.get_stats()}

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics."""
        return self.server.dispatcher.get_stats()

    def get_layouts(self, tensor: int) -> Layouts:
        """Where a tensor lies."""
        found = self.server.dispatcher.layouts(self.name, tensor)
        return Layouts(0, *(found or ((), [], "it is not known yet")))

    def before_fork(self) -> None:
        """Let nothing be under way: a forked child has no thread that would end it."""
        self.server.worker.finish()

    def after_fork(self) -> bool:
        """In a forked child: this process has its own copy of everything, and goes on with it."""
        return False

    def condenses(self) -> None:
        """Nobody has to look again, unless the stream is changed on its way."""
        if not self.server.dispatcher.modifiers and not self.server.worker.modifiers:
            self.server.worker.condensed.add(self.name)

    def last(self) -> None:
        """What is sent from now on is the last."""
        self.server.link.closing = True

    def close(self) -> None:
        """Leave."""
        self.server.dispatcher.disconnect(self.name)
        self.server.dispatcher.stream.close()

    # --- what the dispatcher calls ---

    def ack(self, sequence: int) -> None:
        """Every batch up to this one is done."""

    def data(self, reply: Fetched) -> None:
        """Data that was asked for."""
        whole = self._assembly.add(reply)
        if whole is not None:
            self._replies[reply.request] = whole

    def failed(self, request: int, error: str, part: Part | None = None) -> None:
        """Data that was asked for, and cannot be had."""
        self.data(Fetched(request, None, error, part))

    def refused(self, error: str) -> None:
        """It is not served any more."""
        raise ProtocolError(error)
