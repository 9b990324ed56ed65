"""The connection of a client to a server in another process."""

import itertools
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zmq

from gt import config, logs
from gt.client.client import FORKED
from gt.errors import ConnectionLost, ProtocolError
from gt.interrupts import deferred
from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import MAX_ARRAY, CreateTensor, LocalInstruction, Part, Upload
from gt.stream.repeats import RepeatEncoder, weight
from gt.transport import arrays, protocol
from gt.transport.assembly import Replies
from gt.transport.connection import Link
from gt.transport.direct_reads import DirectReadClient
from gt.transport.protocol import Fetched
from gt.transport.shared_memory import SharedMemory, host

if TYPE_CHECKING:
    from gt.server.local import LocalProcesses

MAX_UNACKNOWLEDGED_INSTRUCTIONS = 8192
"""Sending waits while this many instructions are not acknowledged. This bounds the server's queues, and keeps
a client from competing with a worker on the same machine."""

MIN_BATCHES_IN_FLIGHT = 4
"""This many batches may always be sent. Not every one is acknowledged: see `ACK_EVERY` in
gt/server/peers.py."""

TINY_LOOP_MESSAGE_OPS = 256
"""How many ops of a loop of a few ops one message holds: workers execute it while more are issued."""


class RemoteConnection:
    """A client's connection over a socket."""

    def __init__(
        self,
        address: str,
        timeout: float,
        processes: "LocalProcesses | None" = None,
    ) -> None:
        self.address = address
        self._processes = processes
        """The server and workers that were started for this connection, if any: they end with it."""
        self._log = config.instruction_log()
        self._replies = Replies()
        self.sent = 0
        self._batches: deque[tuple[int, int]] = deque()
        """Unacknowledged batches: their numbers, and how many instructions they have with repeats
        expanded."""
        self.tiny_batch = TINY_LOOP_MESSAGE_OPS
        self.unacknowledged = 0
        """The number of these instructions."""
        self._stats_requests = itertools.count(-1, -1)
        self._welcome: protocol.Welcome | None = None
        self._disconnected = False
        """Whether the server has acknowledged the disconnect."""
        self._memory = SharedMemory()
        self._encoder = RepeatEncoder()
        self._direct_reads: DirectReadClient | None = None
        """Direct reads from workers on other hosts, if there are any."""
        logs.debug("client", f"connecting to {address}")
        self._link = Link(address)
        try:
            self._link.send(protocol.Hello(protocol.VERSION, host(), os.getpid(), self._memory.prefix))
            self._link.until(self._accepted, timeout, self._unanswered)
        except BaseException:
            self._link.close()
            self._memory.close()
            raise
        assert self._welcome is not None
        self.name = self._welcome.name
        self._shared = self._welcome.shared_memory
        logs.verbose(f"connected to {address} as {self.name}")
        logs.debug("client", f"connected to {address} as {self.name}")

    def _unanswered(self) -> str:
        port = self.address.rpartition(":")[2]
        return (
            f"no server answers at {self.address}. Is one running there? "
            f"Start one: python -m gt.server -p {port}"
        )

    def _accepted(self) -> protocol.Welcome | None:
        self._receive()
        why = self._processes.failed() if self._processes is not None else None
        if why is not None:
            raise ConnectionLost(why)
        return self._welcome

    # --- called by the client ---

    def upload(self, result: int, array: np.ndarray, owned: bool) -> LocalInstruction:
        """The instruction that uploads an array. Raises ProtocolError if it is too large."""
        if array.nbytes > MAX_ARRAY:
            raise ProtocolError(f"an array of {array.nbytes} bytes is over the limit of {MAX_ARRAY}")
        frames: list[memoryview] = []
        packed = arrays.pack(array, frames, self._memory if self._shared else None, "worker")
        if not frames:
            return CreateTensor(result, packed)
        # It is sent later, without another copy: the caller may change the array meanwhile.
        return Upload(result, np.asarray(array, order="C") if owned else np.array(array, order="C"))

    def send(self, batch: list[LocalInstruction]) -> None:
        """Send instructions."""
        frames: list[memoryview] = []
        wire: list[Any] = list(self._encoder.encode(batch))
        for place, instruction in enumerate(wire):
            if type(instruction) is Upload:
                wire[place] = CreateTensor(
                    instruction.result, arrays.pack(instruction.array, frames, None, "worker")
                )
        with self._link.lock:
            self._receive()
            if self._processes is not None and config.instruction_log() != self._log:
                self._log = config.instruction_log()
                self._link.send(protocol.FollowLog(self._log and str(Path(self._log).absolute())))
            returned = self._memory.take_released("worker")
            try:
                self._link.send(protocol.Batch(self.sent + 1, wire, returned), frames)
            except BaseException:
                self._encoder.forget()
                raise
            self.sent += 1
            self._batches.append((self.sent, weight(batch)))
            self.unacknowledged += self._batches[-1][1]

    @property
    def _has_room(self) -> bool:
        return (
            self.unacknowledged < MAX_UNACKNOWLEDGED_INSTRUCTIONS
            or len(self._batches) < MIN_BATCHES_IN_FLIGHT
        )

    def wait_for_room(self) -> None:
        """Wait until another batch may be sent. Holds no lock: other threads may read meanwhile."""
        if self._has_room:
            return

        def room() -> bool | None:
            self._receive()
            self._link.check()
            return True if self._has_room else None

        self._link.until(
            room, config.timeout(), lambda: self._no_answer("has not executed earlier instructions")
        )

    def wait(self, request: int) -> Fetched:
        """Wait for the reply to a GetData."""
        reply = self._wait(request)
        assert isinstance(reply, Fetched)
        return reply

    def _wait(self, request: int) -> Any:
        def answer() -> Any:
            self._receive()
            reply = self._replies.take(request)
            if reply is None:
                self._link.check()
            return reply

        return self._link.until(answer, config.timeout(), lambda: self._no_answer("has not answered"))

    def abandon(self, request: int) -> None:
        """Drop the reply to a request, also if it has not arrived yet."""
        with self._link.lock:
            self._replies.abandon(request)

    def drop_abandoned(self) -> None:
        """Drop abandoned replies that have arrived."""
        if self._replies.abandoned:
            self._receive()

    def _no_answer(self, what: str) -> str:
        return (
            f"the server at {self.address} {what} within {config.timeout():g} s, though it is connected. "
            "For work that takes longer, set GT_TIMEOUT (in seconds)"
        )

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        return self._get_stats().workers

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics."""
        return self._get_stats().dispatcher

    def _request(self, request: protocol.GetStats | protocol.GetLayout | protocol.GetTape) -> Any:
        """Send a request that is not part of the stream, and wait for its reply."""
        self._link.send(request)
        try:
            return self._wait(request.request)
        except BaseException:  # a timeout, or KeyboardInterrupt: the reply may still arrive
            self.abandon(request.request)
            raise

    def _get_stats(self) -> protocol.Stats:
        reply = self._request(protocol.GetStats(next(self._stats_requests)))
        assert isinstance(reply, protocol.Stats)
        return reply

    def get_layouts(self, tensor: int) -> protocol.Layouts:
        """A tensor's placements."""
        reply = self._request(protocol.GetLayout(next(self._stats_requests), tensor))
        assert isinstance(reply, protocol.Layouts)
        return reply

    def get_tape(self, start: int = 0, own: bool = False) -> protocol.TapeLines:
        """Lines of the tape from this number on, as far as the server keeps them; unless `own`, without
        those that are from or to this client."""
        reply = self._request(protocol.GetTape(next(self._stats_requests), start, own))
        assert isinstance(reply, protocol.TapeLines)
        return reply

    def sends_repeats(self, detector: HotPathDetector) -> None:
        """Nothing to do: workers detect repeats themselves, since each may get a part of the stream."""

    def before_close(self) -> None:
        """Nothing to do: `close` waits for the server."""

    def close(self) -> None:
        """Disconnect, and end the server and workers that were started for this connection."""
        try:
            self._disconnect()
        finally:
            if self._processes is not None:
                self._processes.stop()

    def _disconnect(self) -> None:
        """Disconnect, once the server has read everything that was sent."""
        try:
            logs.debug("client", f"{self.name} disconnects from {self.address}")
            self._link.send(protocol.Bye())
            self._link.until(
                self._is_disconnected,
                config.timeout(),
                lambda: self._no_answer("has not confirmed that this program disconnects"),
            )
        except ConnectionLost:
            pass  # it is disconnected already
        finally:
            with self._link.lock:
                if self._direct_reads is not None:
                    self._direct_reads.close()
                    self._direct_reads = None
                self._link.close()
            self._memory.close()

    def _is_disconnected(self) -> bool | None:
        self._receive()
        if not self._disconnected:
            self._link.check()
        return self._disconnected or None

    def before_fork(self) -> None:
        """Nothing to do: the server is another process."""

    def after_fork(self) -> bool:
        """In a forked child: the socket, the shared memory and the processes are the parent's."""
        self._link.abandon(FORKED)
        self._processes = None
        self._parents_direct_reads, self._direct_reads = self._direct_reads, None
        self._memory = SharedMemory()
        return True

    # --- incoming messages ---

    def _receive(self) -> None:
        """Handle the messages that have arrived. Each reply has the number of its request."""
        with deferred, self._link.lock:
            for payload, frames in self._link.receive():
                self._handle(protocol.decode_by_client(payload), frames)
            self._collect()

    def _collect(self) -> None:
        for message, frames in self._direct_reads.receive() if self._direct_reads is not None else ():
            self._data(message, frames)

    def _data(self, message: protocol.Data, frames: list[zmq.Frame]) -> None:
        array = None
        if message.array is not None:
            buffers = [frame.buffer for frame in frames]
            array = arrays.unpack(message.array, buffers, self._memory, "worker")
            if not array.flags.writeable and message.part is None:
                array = array.copy()
        self._answer(Fetched(message.request, array, message.error, message.part))

    def _lost(self, request: int, error: str, part: Part | None) -> None:
        self._answer(Fetched(request, None, error, part))

    def _answer(self, reply: Fetched) -> None:
        self._replies.add_data(reply)

    def _handle(self, message: protocol.ToClient, frames: list[zmq.Frame]) -> None:
        match message:
            case protocol.Data():
                if self._direct_reads is None or not self._direct_reads.is_settled(message):
                    self._data(message, frames)
            case protocol.DirectReads(token, addresses):
                if self._direct_reads is None:
                    self._direct_reads = DirectReadClient(token)
                    self._link.watch(self._direct_reads.fd)
                self._collect()
                self._direct_reads.connect(addresses, self._lost)
            case protocol.Ack(sequence, returned):
                while self._batches and self._batches[0][0] <= sequence:
                    self.unacknowledged -= self._batches.popleft()[1]
                self._memory.reclaim(returned)
            case protocol.Stats(request) | protocol.Layouts(request) | protocol.TapeLines(request):
                self._replies.add(request, message)
            case protocol.Welcome():
                self._welcome = message
            case protocol.ByeAck():
                self._disconnected = True
            case protocol.Refused(error):
                self._link.lost = f"the server at {self.address} refused this client: {error}"
                self._link.check()
