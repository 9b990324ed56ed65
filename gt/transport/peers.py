"""The data plane: how tensors' bytes go from worker to worker, without the dispatcher in between.

Every worker listens at an address of its own. What it is sent is sorted by exchange and sender, and taken
when the worker comes to that exchange. Sending never waits; taking waits until what is expected has come, or
until the sender is known to be gone. On one host, bytes that are many lie in shared memory, and only its name
is sent.
"""

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Collection, Mapping

import msgspec
import numpy as np
import zmq

from gt import config
from gt.errors import ProtocolError, WorkerError
from gt.transport import protocol
from gt.transport.connection import configure, endpoint
from gt.transport.protocol import Member
from gt.transport.shared_memory import SharedMemory, host

LOOK_SECONDS = 0.02
"""How often a worker that waits looks whether the one it waits for is still there."""


SHARED = 1 << 15
"""From how many bytes on shared memory is faster than a socket."""

OWED = 4
"""How many pieces of another worker's shared memory are kept until there is something else to send it."""


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    """What goes before the bytes. With an error there are none: the sender's input has failed."""

    token: str
    number: int
    """Of the exchange; -1 for none: it only gives back memory."""
    round: int
    sender: str
    error: str | None = None
    shared: str = ""
    """If not empty: the bytes are in the shared memory of this name, and there are so many."""
    size: int = 0
    returned: list[str] = []
    """The receiver's shared memory that is free again."""


_decode = msgspec.msgpack.Decoder(Parcel).decode
Arrived = tuple[str | None, memoryview]


def own_place(server: str, what: str = "peer") -> str:
    """Where a worker listens for others: beside its server, on the network that leads to it."""
    place = endpoint(server)
    if place.startswith("ipc://"):
        return f"{place}-{what}-{os.getpid()}"
    host = place.removeprefix("tcp://").rpartition(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing: it only looks up the way
        return f"tcp://{probe.getsockname()[0]}:*"


class Peers:
    """A worker's way to the others, and theirs to it."""

    def __init__(
        self, bind: str, context: zmq.Context | None = None, memory: SharedMemory | None = None
    ) -> None:
        self._memory = memory
        self._context = context or zmq.Context()
        self._own_context = context is None
        self._inbox = self._context.socket(zmq.PULL)
        configure(self._inbox)
        self._inbox.bind(bind)
        self.address = str(self._inbox.getsockopt_string(zmq.LAST_ENDPOINT))
        self.token = secrets.token_hex(16)
        """What others have to show: whoever can reach the address cannot therefore send."""
        self.name = ""
        self.epoch = 0
        self.members: Mapping[str, Member] = {}
        self._since: dict[str, int] = {}
        """The epoch in which each of them came."""
        self._near: set[str] = set()
        """Those that see the same shared memory."""
        self._outboxes: dict[str, zmq.Socket] = {}
        self._arrived: dict[tuple[int, int], dict[str, Arrived]] = {}
        self._given_up: set[tuple[int, int, str]] = set()
        """What is not waited for any more, and may still come."""
        self._sent: set[tuple[int, int, str]] = set()
        self._taken: set[tuple[int, int, str]] = set()
        """What the exchange at hand has sent, and what it was sent."""
        self.bytes_sent = 0
        self.look: Callable[[], None] = lambda: None
        """Called while waiting: takes in news of who is there."""

    @property
    def neighbours(self) -> int:
        """How many workers are known to be on this machine, this one included."""
        return max(1, len(self._near))

    def forget_all(self) -> None:
        """Start anew: the server that knew the others is gone."""
        for name in self.members:
            self._forget(name)
        self.epoch, self.members, self._near = 0, {}, set()
        self._arrived.clear()
        self._given_up.clear()
        for outbox in self._outboxes.values():
            outbox.close(linger=0)
        self._outboxes.clear()

    def meet(self, epoch: int, members: Mapping[str, Member]) -> None:
        """These are the workers from now on."""
        if epoch <= self.epoch:
            return
        self.epoch = epoch
        for name, member in members.items():
            if self.members.get(name) != member:
                self._since[name] = epoch
        for name in [name for name, member in self.members.items() if members.get(name) != member]:
            self._forget(name)
        self.members = members
        seen = host() if self._memory is not None else ""
        self._near = {name for name, member in members.items() if seen and member.host == seen}

    def _forget(self, name: str) -> None:
        """Somebody is gone: drop the way there, and the memory we shared."""
        if name in self._outboxes:
            self._outboxes.pop(name).close(linger=0)
        if self._memory is not None:
            self._memory.forget(_key(name))

    def send(
        self, to: str, number: int, round: int, array: np.ndarray | None, error: str | None = None
    ) -> None:
        """Send bytes, or that there are none. To somebody who is gone it is lost, and nobody minds."""
        size, shared, data = 0, "", memoryview(b"")
        if array is not None:
            size = array.nbytes
            if size >= SHARED and to in self._near and self._memory is not None:
                with contextlib.suppress(OSError):  # it is full: the bytes go by the socket
                    shared = self._memory.put(array, _key(to))
            if not shared:
                data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        if self._post(to, number, round, error, shared, size, data):
            self.bytes_sent += size
        self._sent.add((number, round, to))

    def has_sent(self, to: str, number: int, round: int) -> bool:
        """Whether the exchange at hand has sent this already."""
        return (number, round, to) in self._sent

    def settle(self) -> None:
        """An exchange is over. Give back shared memory that is used up: with what is sent next, or now if
        that is much."""
        self._sent.clear()
        self._taken.clear()
        if self._memory is None:
            return
        for name in self._near:
            if self._memory.owes(_key(name)) > OWED:
                self._post(name, -1, 0, None, "", 0, memoryview(b""))

    def _post(
        self, to: str, number: int, round: int, error: str | None, shared: str, size: int, data: memoryview
    ) -> bool:
        member = self.members.get(to)
        if member is None:
            return False
        outbox = self._outboxes.get(to)
        if outbox is None:
            outbox = self._outboxes[to] = self._context.socket(zmq.PUSH)
            configure(outbox)
            outbox.connect(member.address)
        returned = self._memory.done_with(_key(to)) if self._memory is not None else []
        parcel = Parcel(member.token, number, round, self.name, error, shared, size, returned)
        try:
            outbox.send_multipart([protocol.encode(parcel), data], zmq.NOBLOCK, copy=False)
        except zmq.ZMQError:
            return False
        return True

    def _is_gone(self, name: str, epoch: int) -> bool:
        """Whether the worker that had this name in that epoch is gone; another may have it now."""
        return name not in self.members or self._since[name] > epoch

    def take(self, number: int, round: int, senders: Collection[str], epoch: int) -> dict[str, Arrived]:
        """What these workers sent for an exchange. Raises if one of them is gone, or takes too long."""
        looked = time.monotonic()
        deadline = looked + config.timeout()
        place = number, round
        self._sort()
        while True:
            arrived = self._arrived.get(place, {})
            missing = [sender for sender in senders if sender not in arrived]
            if not missing:
                self._taken.update((*place, sender) for sender in senders)
                return self._arrived.pop(place, {})
            gone = [sender for sender in missing if self._is_gone(sender, epoch)]
            if gone or time.monotonic() > deadline:
                self._taken.update((*place, sender) for sender in senders)
                self._given_up.update((*place, sender) for sender in missing)
                self._arrived.pop(place, None)
                raise WorkerError(
                    f"{gone[0]} is gone, and its tensors with it: it was lost in the middle of an exchange"
                    if gone
                    else f"{missing[0]} sent nothing for {config.timeout():g} s (GT_TIMEOUT)"
                )
            if self._inbox.poll(int(LOOK_SECONDS * 1000)):
                self._sort()
            if time.monotonic() - looked > LOOK_SECONDS:
                self.look()
                looked = time.monotonic()

    def give_up(self, number: int, round: int, senders: Collection[str]) -> None:
        """Do not wait for these any more; what still comes of them is dropped."""
        arrived = self._arrived.pop((number, round), {})
        places = {(number, round, sender) for sender in senders if sender not in arrived}
        self._given_up |= places - self._taken

    def _sort(self) -> None:
        """Sort what has arrived. What shows no token, or makes no sense, is dropped."""
        while self._inbox.getsockopt(zmq.EVENTS) & zmq.POLLIN:  # type: ignore[operator] - a number
            parts = self._inbox.recv_multipart(copy=False)
            try:
                parcel = _decode(parts[0].buffer)
            except msgspec.DecodeError:
                continue
            if len(parts) != 2 or not secrets.compare_digest(parcel.token, self.token):
                continue
            if self._memory is not None:
                self._memory.take_back(parcel.returned)
            place = parcel.number, parcel.round, parcel.sender
            if parcel.number < 0:
                continue
            error, data = parcel.error, parts[1].buffer
            if parcel.shared:
                # Also if nobody waits for it any more: to have had it is how it is given back.
                error, data = self._shared(parcel)
            if place in self._given_up:
                self._given_up.discard(place)
                continue
            self._arrived.setdefault(place[:2], {})[parcel.sender] = error, data

    def _shared(self, parcel: Parcel) -> Arrived:
        try:
            if self._memory is None:
                raise ProtocolError("this worker has no shared memory")
            return None, self._memory.get(parcel.shared, parcel.size, _key(parcel.sender))
        except ProtocolError as error:
            return f"what {parcel.sender} sent cannot be read: {error}", memoryview(b"")

    def close(self) -> None:
        """Leave."""
        for outbox in self._outboxes.values():
            outbox.close(linger=0)
        self._inbox.close(linger=0)
        if self._own_context:
            self._context.term()


def _key(name: str) -> str:
    """What shared memory calls a worker; clients have names of their own there."""
    return f"peer {name}"
