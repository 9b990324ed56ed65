"""Peers: sends the bytes of tensors from worker to worker, without the dispatcher in between.

Every worker listens at an address of its own. Received bytes are stored by exchange and sender, until the
worker executes that exchange. Sending never waits. Receiving waits until all bytes have arrived, or the
sender has left. On one host, large arrays are in shared memory, and only its name is sent. Over sockets,
arrays are sent in pieces, each of which is used as soon as it arrives: so computation overlaps with transfer,
and a worker never holds a received array twice.
"""

import contextlib
import errno
import os
import secrets
import socket
import time
from collections.abc import Callable, Collection, Mapping

import msgspec
import numpy as np
import zmq
from zmq.utils.monitor import recv_monitor_message

from gt import config
from gt.errors import ProtocolError, WorkerError
from gt.transport import protocol
from gt.transport.connection import configure, endpoint
from gt.transport.protocol import Member
from gt.transport.receive_buffer import Piece, ReceiveBuffer
from gt.transport.shared_memory import SharedMemory, host

CONNECTION_POLL_SECONDS = 0.02
"""How often a waiting worker checks whether the other one is still connected, in seconds."""

MIN_SHARED_BYTES = 1 << 15
"""From this size on, shared memory is faster than a socket."""

PIECE = 1 << 22
"""How many bytes a message over a socket has at most."""

MAX_QUEUED_MESSAGES = 16
"""The receiver queues this many messages of each sender; further ones wait at the sender. A piece is two
messages."""

RECONNECT_SECONDS = 3.0
"""How long to wait for a worker whose connection broke: ZeroMQ reconnects, but bytes may have been lost."""

MAX_COPIED_BYTES = 1 << 16
"""Up to this size, copying an array is cheaper than keeping it alive until it is sent."""

MAX_UNRETURNED = 4
"""Up to this many released segments of another worker are reported with the next message to it; more are
reported at once."""


class PeerMessage(msgspec.Struct, frozen=True, array_like=True):
    """The header of a piece. With an error there are no bytes: the sender's input has failed."""

    token: str
    number: int
    """The number of the exchange; -1 for a message that only returns shared memory."""
    round: int
    sender: str
    error: str | None = None
    shared: str = ""
    """If not empty: the name of the shared memory that has the bytes; `size` is their number."""
    size: int = 0
    returned: list[str] = []
    """The receiver's segments of shared memory that the sender has released."""
    offset: int = 0
    """The offset of these bytes, by which the receiver notices lost pieces."""
    last: bool = True


_decode = msgspec.msgpack.Decoder(PeerMessage).decode
TransferKey = tuple[int, int, str]
"""A transfer: the number of the exchange, its round, and the other worker."""


def own_address(server: str, what: str = "peer") -> str:
    """The address on which a worker listens: on the network interface that leads to its server."""
    address = endpoint(server)
    if address.startswith("ipc://"):
        return f"{address}-{what}-{os.getpid()}"
    host = address.removeprefix("tcp://").rpartition(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing: it only finds the route
        return f"tcp://{probe.getsockname()[0]}:*"


class Peers:
    """A worker's connections to the other workers."""

    def __init__(
        self, bind: str, context: zmq.Context | None = None, memory: SharedMemory | None = None
    ) -> None:
        self._memory = memory
        self._context = context or zmq.Context()
        self._own_context = context is None
        self._inbox = self._context.socket(zmq.PULL)
        _configure(self._inbox)
        self._inbox.rcvhwm = MAX_QUEUED_MESSAGES
        self._inbox.rcvtimeo = int(CONNECTION_POLL_SECONDS * 1000)
        # ZeroMQ drops a connection, and messages that have arrived on it, when memory is exhausted.
        in_process = bind.startswith("inproc:")
        if not in_process:
            _start_threads(self._context)
        self._monitor = None if in_process else self._inbox.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._connections: dict[int, tuple[str, int]] = {}
        """By descriptor of a connection: the worker, and the epoch in which it joined."""
        self._broken: dict[str, tuple[int, float]] = {}
        """Workers whose connection has ended, although they have not left: the descriptor, and the time."""
        self._inbox.bind(bind)
        self.address = str(self._inbox.getsockopt_string(zmq.LAST_ENDPOINT))
        self.token = secrets.token_hex(16)
        """The token that other workers must present."""
        self.name = ""
        self.epoch = 0
        self.members: Mapping[str, Member] = {}
        self._since: dict[str, int] = {}
        """By worker: the epoch in which it joined."""
        self._on_host: set[str] = set()
        """The workers that can use the same shared memory, this one included."""
        self._outboxes: dict[str, zmq.Socket] = {}
        self._arrived: dict[TransferKey, list[Piece]] = {}
        """Pieces that arrived before their exchange was executed here."""
        self._buffers: dict[TransferKey, ReceiveBuffer] = {}
        """The buffers of the current exchange that are incomplete."""
        self._given_up: set[TransferKey] = set()
        """Transfers whose pieces are dropped if they still arrive."""
        self._sent: dict[TransferKey, int] = {}
        """By transfer of the current exchange: how many bytes were sent; -1 for all."""
        self._complete: set[TransferKey] = set()
        """The transfers of the current exchange that have arrived completely."""
        self.bytes_sent = 0
        self.on_wait: Callable[[], None] = lambda: None
        """Called while waiting. It handles messages of the server about workers that join or leave."""

    @property
    def workers_on_host(self) -> int:
        """The number of workers that are known to be on this host, this one included."""
        return max(1, len(self._on_host))

    def forget_all(self) -> None:
        """Drop all connections, because the server has gone."""
        for name in self.members:
            self._forget(name)
        self.epoch, self.members, self._on_host = 0, {}, set()
        self._arrived.clear()
        self._given_up.clear()
        for outbox in self._outboxes.values():
            outbox.close(linger=0)
        self._outboxes.clear()

    def update_members(self, epoch: int, members: Mapping[str, Member]) -> None:
        """Use these workers from now on, and drop the connections to others."""
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
        self._on_host = {name for name, member in members.items() if seen and member.host == seen}

    def _forget(self, name: str) -> None:
        """Drop the connection to a worker that has left, and the memory shared with it."""
        self._broken.pop(name, None)
        if name in self._outboxes:
            self._outboxes.pop(name).close(linger=0)
        if self._memory is not None:
            self._memory.forget(_memory_owner(name))

    def send(
        self,
        to: str,
        number: int,
        round: int,
        array: np.ndarray | None,
        error: str | None = None,
        last: bool = True,
    ) -> None:
        """Send bytes, or an error instead; unless they are the last, more will follow.

        A message to a worker that has left is dropped.
        """
        key = number, round, to
        if array is None:
            self._post(key, error, "", 0, memoryview(b""), 0, True)
            self._sent[key] = -1
        else:
            offset = self._sent.get(key, 0)
            self._send(key, array, offset, last)
            self._sent[key] = -1 if last else offset + array.nbytes

    def _send(self, key: TransferKey, array: np.ndarray, offset: int, last: bool) -> None:
        to, size = key[2], array.nbytes
        self.bytes_sent += size if to in self.members else 0
        if size >= MIN_SHARED_BYTES and to in self._on_host and self._memory is not None:
            with contextlib.suppress(OSError):  # it is full: the bytes are sent over the socket
                shared = self._memory.put(array, _memory_owner(to))
                self._post(key, None, shared, size, memoryview(b""), offset, last)
                return
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for start in range(0, max(1, size), PIECE):
            stop = min(size, start + PIECE)
            self._post(key, None, "", 0, data[start:stop], offset + start, last and stop == size)

    def has_sent(self, to: str, number: int, round: int) -> bool:
        """Whether the current exchange has sent everything to this worker already."""
        return self._sent.get((number, round, to)) == -1

    def finish_exchange(self) -> None:
        """End an exchange. Released shared memory is returned with the next message, or now if it is much."""
        self._sent.clear()
        self._complete.clear()
        self._buffers.clear()
        if self._memory is None:
            return
        for name in self._on_host:
            if self._memory.count_released(_memory_owner(name)) > MAX_UNRETURNED:
                self._post((-1, 0, name), None, "", 0, memoryview(b""), 0, True)

    def _post(
        self,
        key: TransferKey,
        error: str | None,
        shared: str,
        size: int,
        data: memoryview,
        offset: int,
        last: bool,
    ) -> None:
        number, round, to = key
        member = self.members.get(to)
        if member is None:
            return
        outbox = self._outboxes.get(to)
        if outbox is None:
            outbox = self._outboxes[to] = self._context.socket(zmq.PUSH)
            _configure(outbox)
            outbox.connect(member.address)
            if number >= 0:
                # Identifies the sender, in case the connection is lost before the next message.
                self._post((-1, 0, to), None, "", 0, memoryview(b""), 0, True)
        returned = self._memory.take_released(_memory_owner(to)) if self._memory is not None else []
        message = PeerMessage(
            member.token, number, round, self.name, error, shared, size, returned, offset, last
        )
        try:
            outbox.send(protocol.encode(message), zmq.NOBLOCK | zmq.SNDMORE)
            try:
                outbox.send(data, zmq.NOBLOCK, copy=len(data) < MAX_COPIED_BYTES)
            except BaseException:
                outbox.send(
                    b"", zmq.NOBLOCK
                )  # ends the message, so that the next one is not taken for its bytes
                raise
        except zmq.ZMQError as failed:
            if failed.errno == errno.ENOMEM:
                raise MemoryError(f"not enough memory to send data to {to}") from None

    def _is_gone(self, name: str, epoch: int) -> bool:
        """Whether the worker that had this name in that epoch is gone; another may have it now."""
        return name not in self.members or self._since[name] > epoch

    def receive(self, number: int, buffers: Mapping[tuple[int, str], ReceiveBuffer], epoch: int) -> None:
        """Receive the bytes of an exchange into these buffers, by round and sender.

        Raises WorkerError if a sender sends an error, has left, or takes too long.
        """
        begun = polled = time.monotonic()
        deadline = begun + config.timeout()
        self._buffers = {(number, *key): buffer for key, buffer in buffers.items()}
        for key in list(self._buffers):
            pieces = self._arrived.pop(key, [])
            if pieces and pieces[-1].last:
                self._complete.add(key)
            for piece in pieces:
                self._add_piece(key, piece)
        self._assign_pieces()
        while self._buffers:
            gone = [sender for _, _, sender in self._buffers if self._is_gone(sender, epoch)]
            if gone:
                raise WorkerError(f"{gone[0]} is gone, and its tensors are lost: it left during an exchange")
            if time.monotonic() > deadline:
                missing = next(iter(self._buffers))[2]
                raise WorkerError(f"{missing} sent nothing for {config.timeout():g} s (GT_TIMEOUT)")
            self._assign_pieces(wait=True)
            if time.monotonic() - polled > CONNECTION_POLL_SECONDS:
                self.on_wait()
                polled = time.monotonic()
                self._check_for_lost_pieces(begun)

    def _check_for_lost_pieces(self, begun: float) -> None:
        """Raise WorkerError if a missing piece was lost with a connection."""
        now = time.monotonic()
        while self._monitor is not None and self._monitor.poll(0):
            connection = int(recv_monitor_message(self._monitor)["value"])
            name, since = self._connections.pop(connection, ("", 0))
            if name in self.members and self._since[name] == since:
                self._broken[name] = connection, now
        for _, _, sender in self._buffers:
            if sender in self._broken and now - max(begun, self._broken[sender][1]) > RECONNECT_SECONDS:
                raise WorkerError(
                    f"some of the bytes that {sender} sent to {self.name} were lost: the connection broke. "
                    f"{self.name} may have had too little memory for it. Free tensors, or use more workers"
                )

    def _add_piece(self, key: TransferKey, piece: Piece) -> None:
        buffer = self._buffers[key]
        if piece.last:
            self._complete.add(key)
        buffer.add(piece, key[2])
        if buffer.done:
            del self._buffers[key]

    def give_up(self, number: int, round: int, senders: Collection[str]) -> None:
        """Stop waiting for these senders, and drop their pieces if they still arrive."""
        for sender in senders:
            key = number, round, sender
            self._buffers.pop(key, None)
            arrived = self._arrived.pop(key, [])
            if key not in self._complete and not (arrived and arrived[-1].last):
                self._given_up.add(key)

    def _assign_pieces(self, wait: bool = False) -> None:
        """Assign received pieces to their exchanges; drop invalid messages and those without a token."""
        while True:
            try:
                # Waits for at most CONNECTION_POLL_SECONDS.
                parts = self._inbox.recv_multipart(0 if wait else zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            wait = False
            try:
                message = _decode(parts[0].buffer)
            except msgspec.DecodeError:
                continue
            if len(parts) != 2 or not secrets.compare_digest(message.token, self.token):
                continue
            if self._memory is not None:
                self._memory.reclaim(message.returned)
            connection = _connection(parts[0])
            self._connections[connection] = message.sender, self._since.get(message.sender, 0)
            key = message.number, message.round, message.sender
            if message.number < 0:
                continue
            error, data = message.error, parts[1].buffer
            if message.shared:
                # Also for a transfer that was given up: reading the memory releases it.
                error, data = self._shared(message)
            if key in self._given_up:
                if message.last or error is not None:
                    self._given_up.discard(key)
                continue
            piece = Piece(error, data, message.offset, message.last)
            if key in self._buffers:
                self._add_piece(key, piece)
                if (
                    piece.last
                    and self._broken
                    and connection != self._broken.get(message.sender, (connection,))[0]
                ):
                    del self._broken[message.sender]  # everything arrived over a new connection
            else:
                self._arrived.setdefault(key, []).append(piece)

    def _shared(self, message: PeerMessage) -> tuple[str | None, memoryview]:
        try:
            if self._memory is None:
                raise ProtocolError("this worker has no shared memory")
            return None, self._memory.get(message.shared, message.size, _memory_owner(message.sender))
        except ProtocolError as error:
            return f"the data that {message.sender} sent cannot be read: {error}", memoryview(b"")

    def close(self) -> None:
        """Close all connections."""
        for outbox in self._outboxes.values():
            outbox.close(linger=0)
        if self._monitor is not None:
            self._inbox.disable_monitor()
            self._monitor.close(linger=0)
        self._inbox.close(linger=0)
        if self._own_context:
            self._context.term()


def _start_threads(context: zmq.Context) -> None:
    """Send a message, so that ZeroMQ starts all its threads now.

    If it cannot start one later, for lack of memory, it ends the process.
    """
    with context.socket(zmq.PULL) as inbox, context.socket(zmq.PUSH) as outbox:
        inbox.bind("inproc://start")
        outbox.connect("inproc://start")
        outbox.send(bytearray(MAX_COPIED_BYTES), copy=False, track=True)
        inbox.recv(copy=False)


def _connection(frame: zmq.Frame) -> int:
    """The descriptor of the connection that a frame arrived on; -1 within a process."""
    try:
        return int(frame.get(zmq.SRCFD))
    except (zmq.ZMQError, ValueError, TypeError):
        return -1


def _configure(socket: zmq.Socket) -> None:
    configure(socket)
    # A worker that computes for long does not read heartbeats; the dispatcher reports workers that have left.
    socket.heartbeat_ivl = 0
    socket.tcp_keepalive = 1


def _memory_owner(name: str) -> str:
    """The owner's name of a worker in SharedMemory, which has clients as owners, too."""
    return f"peer {name}"
