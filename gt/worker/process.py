"""A worker process: registers with a server, again after a restart of the server, and executes chunks."""

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gt import logs
from gt.errors import ConnectionLost, WorkerError
from gt.stream.instructions import ArrayData, CreateTensor, Lost, Upload
from gt.stream.repeats import RepeatDecoder
from gt.stream.tensor_ids import worker_ids
from gt.transport import arrays, protocol
from gt.transport.connection import Link
from gt.transport.direct_reads import DirectReadServer
from gt.transport.peers import Peers, own_address
from gt.transport.shared_memory import SharedMemory, host
from gt.worker.limits import machine
from gt.worker.limits.guard import Guard
from gt.worker.worker import Worker


class Refused(Exception):
    """The server refused this worker."""


class WorkerProcess:
    """Receives messages from a server, and passes them to a worker."""

    def __init__(self, worker: Worker, address: str, timeout: float, report: Callable[[str], None]) -> None:
        self.worker = worker
        self.address = address
        self._asked_name = worker.name
        self._timeout = timeout
        self._report = report
        self._memory = SharedMemory()
        self._decoders: dict[str, RepeatDecoder] = {}
        """By client: the decoder of its repeats."""
        self._welcome: protocol.Welcome | None = None
        self._peers = worker.peers = Peers(own_address(address), memory=self._memory)
        self._direct_reads = DirectReadServer(own_address(address, "direct_address"))
        self._backlog: deque[tuple[protocol.ToWorker, list[Any]]] = deque()
        """Messages that have arrived and are not handled: more arrive while it waits for other workers."""

    def run(self, alive: Callable[[], bool]) -> None:
        """Serve until interrupted, until `alive` returns False, or until no server has answered for `timeout`
        s."""
        try:
            deadline = time.monotonic() + self._timeout
            again = False
            while alive():
                link = Link(self.address)
                try:
                    if self._join(link, alive, deadline, again):
                        try:
                            self._serve(link, alive)
                        except Refused as error:
                            self._report(f"the server at {self.address} refused this worker: {error}")
                        self._report(f"{link.lost or 'stopped'}; reconnecting")
                        logs.debug("worker", f"{self.worker.name} is not registered any more: {link.lost}")
                        deadline, again = time.monotonic() + self._timeout, True
                finally:
                    link.close()
                    self._backlog.clear()
                    self._peers.forget_all()
                    for client in list(self.worker.clients):
                        self._forget(client)
        finally:
            self._peers.close()
            self._direct_reads.close()
            self._memory.close()

    def _join(self, link: Link, alive: Callable[[], bool], deadline: float, again: bool) -> bool:
        """Register with the server. Returns False if it should connect again."""
        self._welcome = None
        engine = self.worker.engine_name
        logs.debug("worker", f"process {os.getpid()} ({engine}) requests registration with {self.address}")
        self._peers.on_wait = lambda: self._check_while_waiting(link)
        link.send(
            protocol.WorkerHello(
                protocol.VERSION,
                host(),
                os.getpid(),
                self._memory.prefix,
                self._asked_name,
                self.worker.engine_name,
                self._peers.address,
                self._peers.token,
                self.worker.memory_limit,
                machine.total(),
                self._direct_reads.address,
            )
        )

        def admitted() -> bool | None:
            self._handle_messages(link)
            if link.lost is not None or not alive():
                return False
            return True if self._welcome is not None else None

        unanswered = f"no server answers at {self.address} within {self._timeout:g} s"
        try:
            left = max(0.0, deadline - time.monotonic())
            if not link.until(admitted, left, lambda: unanswered):
                return False
        except Refused as error:
            # The server may not have noticed yet that the earlier connection under this name has ended.
            if again and time.monotonic() < deadline:
                time.sleep(0.2)
                return False
            raise ConnectionLost(f"the server at {self.address} refused this worker: {error}") from None
        self._report(f"{self.worker.name} ({engine}) is ready, working for {self.address}")
        logs.debug("worker", f"{self.worker.name} ({engine}) registered with {self.address}")
        # Loads the engine now, so that the first op does not wait for it.
        if self.worker.engine.on_host:
            self.worker.guard = Guard()
            self.worker.guard.share_with(self._peers.workers_on_host)
        return True

    def _serve(self, link: Link, alive: Callable[[], bool]) -> None:
        polled = time.monotonic()
        while link.lost is None:
            self._handle_messages(link)
            link.wait(0.25)
            if time.monotonic() - polled > 0.25:
                self.worker.execute_held()
                polled = time.monotonic()
                if not alive():
                    return

    def _receive(self, link: Link) -> None:
        """Receive messages: a change of the workers is applied at once, all others are queued."""
        for payload, frames in link.receive():
            message = protocol.decode_by_worker(payload)
            if isinstance(message, protocol.Members):
                self._peers.update_members(message.epoch, message.members)
                if self.worker.guard is not None:
                    self.worker.guard.share_with(self._peers.workers_on_host)
            else:
                self._backlog.append((message, frames))

    def _check_while_waiting(self, link: Link) -> None:
        """While waiting for another worker: receive messages. Raises WorkerError if the server has gone."""
        self._receive(link)
        if link.lost is not None:
            raise WorkerError(f"an exchange between workers was interrupted: {link.lost}")

    def _handle_messages(self, link: Link) -> None:
        self._receive(link)
        while self._backlog:
            message, frames = self._backlog.popleft()
            match message:
                case protocol.Work() as work:
                    self._work(link, work, [frame.buffer for frame in frames])
                case protocol.ForgetClient(client):
                    self._forget(client)
                case protocol.GetWorkerStats(request, client):
                    link.send(protocol.WorkerStats(request, self._get_stats(client)))
                case protocol.GetSpecs(client):
                    link.send(protocol.Specs(client, *self.worker.specs(client)))
                case protocol.Welcome() as welcome:
                    # At once: the next message may be work, whose exchanges use the name.
                    self._welcome = welcome
                    self.worker.name = self._peers.name = welcome.name
                    self.worker.ids = worker_ids(welcome.number)
                case protocol.Refused(error):
                    raise Refused(error)
            self._receive(link)

    def _get_stats(self, client: str) -> dict[str, Any]:
        try:
            return self.worker.get_stats(client) | {"direct_bytes_sent": self._direct_reads.bytes_sent}
        except Exception as error:  # noqa: BLE001 - one client's request must not end the worker
            return {"error": f"statistics are not available: {type(error).__name__}: {error}"}

    def _work(self, link: Link, work: protocol.Work, buffers: list[memoryview]) -> None:
        self._memory.reclaim(work.returned)
        decoder = self._decoders.get(work.client)
        if decoder is None:
            decoder = self._decoders[work.client] = RepeatDecoder()
        instructions: list[Any] = list(decoder.decode(work.instructions))
        for place, instruction in enumerate(instructions):
            if type(instruction) is CreateTensor:
                instructions[place] = self._unpack(instruction, buffers, work.client)
        try:
            outcome = self.worker.execute(work.client, instructions)
        except Exception as error:  # noqa: BLE001 - as above: one client's work must not end the worker
            why = f"{self.worker.name} could not execute this: {type(error).__name__}: {error}"
            outcome = self.worker.abort(work.client, instructions, why)
        frames: list[memoryview] = []
        memory = self._memory if work.shared_memory else None
        data = [
            self._send_directly(work.token, fetched)
            or protocol.Data(
                fetched.request,
                None if fetched.array is None else arrays.pack(fetched.array, frames, memory, work.client),
                fetched.error,
                fetched.part,
            )
            for fetched in outcome.data
        ]
        returned = self._memory.take_released(work.client)
        link.send(
            protocol.Done(
                work.sequence,
                outcome.seconds,
                outcome.failed,
                data,
                returned,
                list(outcome.marks),
                list(outcome.injected),
            ),
            frames,
        )

    def _send_directly(self, token: str, fetched: protocol.Fetched) -> protocol.Data | None:
        """Send data by a direct read; the result is the message to the dispatcher, None if it failed."""
        request, array, _, part = fetched
        if not token or array is None or array.nbytes <= arrays.MAX_INLINE_BYTES:
            return None
        frames: list[memoryview] = []
        packed = arrays.pack(array, frames, None, "")
        if not self._direct_reads.send(token, protocol.Data(request, packed, None, part), frames[0]):
            return None
        without_bytes = ArrayData(packed.shape, packed.dtype, b"")
        return protocol.Data(request, without_bytes, None, part, self.worker.name)

    def _unpack(self, instruction: CreateTensor, buffers: list[memoryview], client: str) -> Any:
        try:
            array = arrays.unpack(instruction.array, buffers, self._memory, client)
            if instruction.part is not None:
                array = np.array(array[instruction.part.slices])  # a copy: others use the rest
            return Upload(instruction.result, array)
        except Exception as error:  # noqa: BLE001 - untrusted: an invalid message fails this tensor
            return Lost([instruction.result], f"an upload failed on {self.worker.name}: {error}")

    def _forget(self, client: str) -> None:
        logs.debug("worker", f"{self.worker.name}: {client}: disconnected, its tensors are freed")
        self._decoders.pop(client, None)
        self.worker.forget(client)
        self._memory.forget(client)
