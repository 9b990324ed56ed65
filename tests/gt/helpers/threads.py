"""Several workers inside the user's own program, each on a thread of its own.

The same dispatcher, workers and data plane as with processes, without their start-up time: for tests, and for
looking at how a program is spread without a cluster. Python runs one thread at a time, so nothing is faster.
"""

import itertools
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import zmq

from gt import config
from gt.dispatcher import Dispatcher
from gt.dispatcher.fair_share import Chunk
from gt.dispatcher.sharding.policy import SHARD_THRESHOLD, Policy
from gt.errors import ConnectionLost, WorkerError
from gt.server.embedded import LocalConnection
from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import LocalInstruction
from gt.stream.modifiers import ModifierLike
from gt.transport.peers import Peers
from gt.transport.protocol import Fetched, Layouts, Member, TapeLines
from gt.worker import Worker

_numbers = itertools.count()


class ThreadWorker:
    """A worker on a thread; the dispatcher's link to it."""

    def __init__(self, server: "ThreadServer", worker: Worker) -> None:
        self._server = server
        self.worker = worker
        self.name = worker.name
        self.memory_limit = worker.memory_limit
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._news: queue.SimpleQueue[tuple[int, dict[str, Member]]] = queue.SimpleQueue()
        address = f"inproc://gt-worker-{next(_numbers)}"
        peers = worker.peers = Peers(address, server.context)
        peers.name = worker.name
        peers.on_wait = self._check_while_waiting
        self._stopped = False
        self.member: Member | None = Member(address, peers.token)
        self._thread = threading.Thread(target=self._run, name=worker.name, daemon=True)
        self._thread.start()

    # --- what the dispatcher calls ---

    def send(self, sequence: int, chunk: Chunk) -> None:
        """Have instructions carried out."""
        self._queue.put((sequence, chunk))

    def forget(self, client: str) -> None:
        """Have everything of a client dropped."""
        self._queue.put(client)

    def update_members(self, epoch: int, members: dict[str, Member]) -> None:
        """Tell it who the workers are from now on."""
        self._news.put((epoch, members))

    def request_specs(self, client: str) -> None:
        """Ask what it has of a client."""
        self._queue.put(
            lambda: self._server.tell(lambda d: d.receive_specs(client, *self.worker.specs(client)))
        )

    def stop(self) -> None:
        """End it, without a word to anybody."""
        self._stopped = True
        self._queue.put(None)

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join(5)

    # --- its own thread ---

    def _check_while_waiting(self) -> None:
        """While waiting for another worker: is there any use in that?"""
        if self._stopped:
            raise WorkerError(f"{self.name} was stopped")
        self._apply_news()

    def _apply_news(self) -> None:
        while not self._news.empty():
            assert self.worker.peers is not None
            self.worker.peers.update_members(*self._news.get())

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            self._apply_news()
            if isinstance(work, str):
                self.worker.forget(work)
            elif callable(work):
                work()
            else:
                self._work(*work)
        assert self.worker.peers is not None
        self.worker.peers.close()

    def _work(self, sequence: int, chunk: Chunk) -> None:
        name = chunk.session.name
        try:
            outcome = self.worker.execute(name, chunk.instructions)
        except Exception as error:  # noqa: BLE001 - one client's work must not end everybody's worker
            why = f"{self.name} could not execute this: {type(error).__name__}: {error}"
            outcome = self.worker.abort(name, chunk.instructions, why)
        failed, data, seconds, marks, injected = outcome
        self._server.tell(
            lambda dispatcher: dispatcher.done(sequence, seconds, failed, data, marks, injected)
        )


class ThreadServer:
    """A dispatcher and workers on threads."""

    def __init__(
        self,
        workers: int = 2,
        engine: str = "pytorch",
        modifiers: Sequence[ModifierLike] = (),
        enable_sharding: bool = True,
        shard_threshold: int = SHARD_THRESHOLD,
        policy: Policy | None = None,
        memory: Mapping[int, int] | None = None,
    ) -> None:
        self.context = zmq.Context()
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.dispatcher = Dispatcher(modifiers, enable_sharding, shard_threshold, policy)
        self.links: list[ThreadWorker] = []
        self.engine = engine
        for number in range(workers):
            self.add_worker((memory or {}).get(number, 0))

    def add_worker(self, memory_limit: int = 0, engine: str | None = None) -> ThreadWorker:
        """Start another worker."""
        name = f"worker_{len(self.links)}"
        worker = Worker(name, engine or self.engine, memory_limit=memory_limit)
        link = ThreadWorker(self, worker)
        self.links.append(link)
        self.tell(lambda dispatcher: dispatcher.add_worker(link))
        return link

    def lose_worker(self, number: int, why: str = "its process ended") -> None:
        """A worker is gone."""
        link = self.links[number]
        link.stop()
        text = f"{link.name} is gone, and its tensors are lost: {why}"
        self.tell(lambda dispatcher: dispatcher.remove_worker(link.name, text))

    def tell(self, what: Any) -> Any:
        """Call the dispatcher, one thread at a time."""
        with self.changed:
            result = what(self.dispatcher)
            self.changed.notify_all()
            return result

    def close(self) -> None:
        """End all workers. The first client that leaves ends them for all."""
        if self.context.closed:
            return
        for link in self.links:
            link.stop()
        for link in self.links:
            link.join()
        self.context.destroy(linger=0)
        self.dispatcher.stream.close()


class ThreadConnection(LocalConnection):
    """A client's way to a server whose workers are threads of its own program."""

    def __init__(self, server: ThreadServer) -> None:
        self._threads = server
        with server.lock:
            super().__init__(server)  # type: ignore[arg-type] - it has what a connection needs: a dispatcher

    def send(self, batch: list[LocalInstruction]) -> None:
        """Hand over instructions."""
        with self._threads.lock:
            super().send(batch)

    def wait(self, request: int) -> Fetched:
        """The answer to a GetData that was sent."""
        deadline = time.monotonic() + config.timeout()
        with self._threads.changed:
            while request not in self._replies:
                if time.monotonic() > deadline:
                    raise ConnectionLost(f"no answer within {config.timeout():g} s (GT_TIMEOUT)")
                self._threads.changed.wait(1)
                self._threads.dispatcher.tick()
            return super().wait(request)

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        return {link.name: link.worker.get_stats(self.name) for link in self._threads.links}

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics."""
        return self._threads.tell(lambda dispatcher: dispatcher.get_stats(self.name))

    def get_layouts(self, tensor: int) -> Layouts:
        """A tensor's layout."""
        with self._threads.changed:
            while self._threads.dispatcher.layouts(self.name, tensor) is None:
                self._threads.changed.wait(1)
            return super().get_layouts(tensor)

    def get_tape(self, start: int = 0, own: bool = False) -> TapeLines:
        """Lines of the tape from this number on, as far as they are kept."""
        with self._threads.lock:
            return super().get_tape(start, own)

    def sends_repeats(self, detector: HotPathDetector) -> None:
        """Workers check for messages again: each may get a part of what is sent."""

    def before_close(self) -> None:
        """Record that no reads follow."""

    def close(self) -> None:
        """Leave, and end the workers; with a log, once they have carried out what is queued."""
        threads, deadline = self._threads, time.monotonic() + config.timeout()
        with threads.changed:
            while not threads.context.closed and threads.dispatcher.unfinished(self.name):
                if not threads.changed.wait(deadline - time.monotonic()):
                    break
            super().close()
        self._threads.close()
