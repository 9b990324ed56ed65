"""A client's way to a dispatcher in another process."""

import itertools
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zmq

from gt import config
from gt.client.client import FORKED
from gt.errors import ConnectionLost, ProtocolError
from gt.transport import arrays, protocol
from gt.transport.assembly import Assembly
from gt.transport.connection import Link
from gt.transport.doors import Doors
from gt.transport.protocol import CreateTensor, Fetched, LocalInstruction, Upload
from gt.transport.repeats import Teller, weight
from gt.transport.shared_memory import SharedMemory, host

WINDOW = 8192
"""How many instructions may be under way; then sending waits, so that a fast client cannot flood a server.
Nor should it be far ahead: while it is at work, a worker on the same machine may have to wait."""

FEW = 4
"""So many batches may always be. Not every one is acknowledged: see `server.ACK_EVERY`."""


class RemoteConnection:
    """Speaks to a dispatcher over a socket."""

    def __init__(
        self,
        address: str,
        timeout: float,
        own_server: bool = False,
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.address = address
        self._own_server = own_server
        self._log = config.instruction_log()
        self._trouble = trouble
        """Says why nobody will ever answer, if that is known."""
        self._replies: dict[int, Fetched | protocol.Stats | protocol.Layouts | protocol.TapeLines] = {}
        self._assembly = Assembly()
        self.sent = 0
        self._batches: deque[tuple[int, int]] = deque()
        """Batches that are not done: their numbers, and how many instructions they stand for."""
        self.under_way = 0
        """All of these instructions."""
        self._stats_requests = itertools.count(-1, -1)
        self._welcome: protocol.Welcome | None = None
        self._memory = SharedMemory()
        self._teller = Teller()
        self._doors: Doors | None = None
        """The way to workers on other hosts, if there are any."""
        self._link = Link(address)
        try:
            self._link.send(protocol.Hello(protocol.VERSION, host(), os.getpid(), self._memory.prefix))
            self._link.until(self._admitted, timeout, self._nobody)
        except BaseException:
            self._link.close()
            raise
        assert self._welcome is not None
        self.name = self._welcome.name
        self._shared = self._welcome.shared_memory
        config.verbose(f"connected to {address} as {self.name}")

    def _nobody(self) -> str:
        port = self.address.rpartition(":")[2]
        return (
            f"no server answers at {self.address}. Is one running there? "
            f"Start one: python -m gt.server -p {port}"
        )

    def _admitted(self) -> protocol.Welcome | None:
        self._take_in()
        why = self._trouble()
        if why is not None:
            raise ConnectionLost(why)
        return self._welcome

    # --- what the client calls ---

    def upload(self, result: int, array: np.ndarray, owned: bool) -> LocalInstruction:
        """The instruction that makes a tensor of this array."""
        if array.nbytes > protocol.MAX_ARRAY:
            raise ProtocolError(f"an array of {array.nbytes} bytes is over the limit of {protocol.MAX_ARRAY}")
        frames: list[memoryview] = []
        packed = arrays.pack(array, frames, self._memory if self._shared else None, "worker")
        if not frames:
            return CreateTensor(result, packed)
        # It goes behind its message, uncopied, which may be sent later than the array changes.
        return Upload(result, np.asarray(array, order="C") if owned else np.array(array, order="C"))

    def send(self, batch: list[LocalInstruction]) -> None:
        """Send instructions."""
        frames: list[memoryview] = []
        wire: list[Any] = list(self._teller.tell(batch))
        for place, instruction in enumerate(wire):
            if type(instruction) is Upload:
                wire[place] = CreateTensor(
                    instruction.result, arrays.pack(instruction.array, frames, None, "worker")
                )
        with self._link.lock:
            self._take_in()
            if self._own_server and config.instruction_log() != self._log:
                self._log = config.instruction_log()
                self._link.send(protocol.FollowLog(self._log and str(Path(self._log).absolute())))
            returned = self._memory.done_with("worker")
            try:
                self._link.send(protocol.Batch(self.sent + 1, wire, returned), frames)
            except BaseException:
                self._teller.forget()
                raise
            self.sent += 1
            self._batches.append((self.sent, weight(batch)))
            self.under_way += self._batches[-1][1]

    @property
    def _has_room(self) -> bool:
        return self.under_way < WINDOW or len(self._batches) < FEW

    def wait_for_room(self) -> None:
        """Wait until another batch may be sent. Holds no lock: others may read meanwhile."""
        if self._has_room:
            return

        def room() -> bool | None:
            self._take_in()
            self._link.check()
            return True if self._has_room else None

        self._link.until(room, config.timeout(), lambda: self._no_answer("has not finished earlier work"))

    def wait(self, request: int) -> Fetched:
        """The answer to a GetData that was sent."""
        reply = self._wait(request)
        assert isinstance(reply, Fetched)
        return reply

    def _wait(self, request: int) -> Any:
        def answer() -> Any:
            self._take_in()
            reply = self._replies.pop(request, None)
            if reply is None:
                self._link.check()
            return reply

        return self._link.until(answer, config.timeout(), lambda: self._no_answer("has not answered"))

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

    def _get_stats(self) -> protocol.Stats:
        request = next(self._stats_requests)
        self._link.send(protocol.GetStats(request))
        reply = self._wait(request)
        assert isinstance(reply, protocol.Stats)
        return reply

    def get_layouts(self, tensor: int) -> protocol.Layouts:
        """Where a tensor lies."""
        request = next(self._stats_requests)
        self._link.send(protocol.GetLayout(request, tensor))
        reply = self._wait(request)
        assert isinstance(reply, protocol.Layouts)
        return reply

    def get_tape(self, start: int = 0) -> protocol.TapeLines:
        """Lines of the tape from this number on, as far as the server keeps them, but for this client's."""
        request = next(self._stats_requests)
        self._link.send(protocol.GetTape(request, start))
        reply = self._wait(request)
        assert isinstance(reply, protocol.TapeLines)
        return reply

    def condenses(self) -> None:
        """Workers look again: each may get a part of what is sent."""

    def last(self) -> None:
        """What is sent from now on is the last."""

    def close(self) -> None:
        """Leave."""
        try:
            self._link.send(protocol.Bye())
        except ConnectionLost:
            pass  # gone already, which is what we wanted
        finally:
            with self._link.lock:
                if self._doors is not None:
                    self._doors.close()
                    self._doors = None
                self._link.close()
            self._memory.close()

    def before_fork(self) -> None:
        """What is under way is so elsewhere."""

    def after_fork(self) -> bool:
        """In a forked child: the socket and the shared memory are the parent's."""
        self._link.abandon(FORKED)
        self._parents_doors, self._doors = self._doors, None
        self._memory = SharedMemory()
        return True

    # --- what the dispatcher sent ---

    def _take_in(self) -> None:
        """Sort what has arrived. No reply can reach the wrong caller: each carries its request's number."""
        with self._link.lock:
            for payload, frames in self._link.receive():
                self._sort(protocol.decode_by_client(payload), frames)
            self._collect()

    def _collect(self) -> None:
        for message, frames in self._doors.receive() if self._doors is not None else ():
            self._data(message, frames)

    def _data(self, message: protocol.Data, frames: list[zmq.Frame]) -> None:
        array = None
        if message.array is not None:
            buffers = [frame.buffer for frame in frames]
            array = arrays.unpack(message.array, buffers, self._memory, "worker")
            if not array.flags.writeable and message.part is None:
                array = array.copy()
        self._answer(Fetched(message.request, array, message.error, message.part))

    def _lost(self, request: int, error: str, part: protocol.Part | None) -> None:
        self._answer(Fetched(request, None, error, part))

    def _answer(self, reply: Fetched) -> None:
        whole = self._assembly.add(reply)
        if whole is not None:
            self._replies[reply.request] = whole

    def _sort(self, message: protocol.ToClient, frames: list[zmq.Frame]) -> None:
        match message:
            case protocol.Data():
                if self._doors is None or not self._doors.is_settled(message):
                    self._data(message, frames)
            case protocol.Doors(ticket, addresses):
                if self._doors is None:
                    self._doors = Doors(ticket)
                    self._link.watch(self._doors.fd)
                self._collect()
                self._doors.meet(addresses, self._lost)
            case protocol.Ack(sequence, returned):
                while self._batches and self._batches[0][0] <= sequence:
                    self.under_way -= self._batches.popleft()[1]
                self._memory.take_back(returned)
            case protocol.Stats(request) | protocol.Layouts(request) | protocol.TapeLines(request):
                self._replies[request] = message
            case protocol.Welcome():
                self._welcome = message
            case protocol.Refused(error):
                self._link.lost = f"the server at {self.address} refused this client: {error}"
                self._link.check()
