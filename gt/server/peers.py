"""The clients and workers that are connected to a server, as the dispatcher's links."""

import secrets
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from gt.dispatcher.fair_share import Chunk
from gt.errors import ProtocolError
from gt.stream.instructions import Part
from gt.stream.repeats import RepeatDecoder, RepeatEncoder, weight
from gt.transport import protocol, shared_memory

ACK_EVERY = 4
"""One acknowledgement covers up to this many batches. A client may send more without waiting for one."""

MAX_QUEUED = 4096
"""How many batches of one client may be queued. gt's client stays far below; one that exceeds it is
refused."""

MAX_QUEUED_INSTRUCTIONS = 1 << 20
"""How many instructions these may have, with repeats expanded, before another batch is received."""

ACK_SECONDS = 0.002
"""If the last acknowledgement was longer ago than this, a batch is acknowledged at once."""


class MessageServer(Protocol):
    """The server, as its peers use it."""

    def post(self, identity: bytes, message: Any, frames: Sequence[Any] = ()) -> None:
        """Send a message to a peer."""
        ...

    def refuse_client(self, identity: bytes, why: str) -> None:
        """Refuse a peer."""
        ...


class Peer:
    """A client or a worker that has sent its Hello."""

    def __init__(
        self, server: MessageServer, identity: bytes, hello: protocol.Hello | protocol.WorkerHello
    ) -> None:
        self._server = server
        self.identity = identity
        self.pid = hello.pid
        self.host = hello.host
        self.memory = hello.memory
        self.local = bool(hello.host) and hello.host == shared_memory.host()
        """Whether it can use this host's shared memory."""
        self.name = ""
        self._acked = 0.0
        self.returned: list[str] = []
        """Segments of its shared memory that were released, and whose names have not been sent back yet."""

    def post(self, message: Any, frames: Sequence[Any] = ()) -> None:
        """Send a message, followed by the bytes of its arrays."""
        self._server.post(self.identity, message, frames)


class ClientPeer(Peer):
    """A client; the dispatcher's link to it."""

    def __init__(self, server: MessageServer, identity: bytes, hello: protocol.Hello) -> None:
        super().__init__(server, identity, hello)
        self.decoder = RepeatDecoder(protocol.MAX_REPEATED)
        self._last = 0
        """The number of its last batch."""
        self._open: deque[tuple[int, int]] = deque()
        """Its batches that are not done: their numbers, and how many instructions they have with repeats
        expanded."""
        self.queued = 0
        """The number of these instructions."""
        self.token = secrets.token_hex(16)
        """The token that it presents for direct reads from workers on other hosts."""
        self._direct_reads: dict[str, str] = {}

    def send_direct_addresses(self, workers: Iterable[Any]) -> None:
        """Send it the direct addresses of workers on other hosts, if these have changed."""
        found = [one for one in workers if isinstance(one, WorkerPeer) and one.direct_address]
        addresses = {one.name: one.direct_address for one in found if not one.is_beside(self)}
        if addresses != self._direct_reads:
            self._direct_reads = addresses
            self.post(protocol.DirectReads(self.token, addresses))

    def receive(self, message: protocol.Batch) -> Sequence[Any]:
        """The instructions of a batch, with repeats decoded. Raises ProtocolError if it is invalid."""
        if len(message.instructions) > protocol.MAX_INSTRUCTIONS:
            raise ProtocolError(f"a batch of {len(message.instructions)} instructions")
        if message.sequence <= self._last:
            raise ProtocolError(f"batch {message.sequence} after batch {self._last}")
        if len(self._open) > MAX_QUEUED or self.queued > MAX_QUEUED_INSTRUCTIONS:
            raise ProtocolError("the client sends without waiting for acknowledgements")
        instructions = self.decoder.decode(message.instructions)
        self._last = message.sequence
        self._open.append((self._last, weight(instructions)))
        self.queued += self._open[-1][1]
        return instructions

    def ack(self, sequence: int) -> None:
        """Acknowledge all batches up to this one. Not every call sends a message: one covers those before
        it."""
        while self._open and self._open[0][0] <= sequence:
            self.queued -= self._open.popleft()[1]
        now = time.monotonic()
        if sequence % ACK_EVERY == 0 or self.returned or now - self._acked > ACK_SECONDS:
            self._acked = now
            returned, self.returned = self.returned, []
            self.post(protocol.Ack(sequence, returned))

    def data(self, reply: tuple[protocol.Data, Any]) -> None:
        """Send the reply to a read."""
        message, frame = reply
        self.post(message, () if frame is None else (frame,))

    def failed(self, request: int, error: str, part: Part | None = None) -> None:
        """Send the error of a read, or of one part of it."""
        self.post(protocol.Data(request, None, error, part))

    def refused(self, error: str) -> None:
        """Refuse the client, with this error."""
        self._server.refuse_client(self.identity, error)


class WorkerPeer(Peer):
    """A worker; the dispatcher's link to it."""

    def __init__(self, server: MessageServer, identity: bytes, hello: protocol.WorkerHello) -> None:
        super().__init__(server, identity, hello)
        self.member = None
        if hello.address:
            self.member = protocol.Member(hello.address, hello.token, hello.host, hello.machine_memory)
        self.memory_limit = hello.memory_limit
        self._encoders: dict[str, RepeatEncoder] = {}
        """By client: the encoder of the repeats that are sent to this worker."""
        self.direct_address = hello.direct_address if hello.direct_address.startswith("tcp://") else ""

    def is_beside(self, client: Peer) -> bool:
        """Whether it can use the same shared memory as a client."""
        return bool(self.host) and client.host == self.host

    def update_members(self, epoch: int, members: dict[str, protocol.Member]) -> None:
        """Send it the current workers."""
        self.post(protocol.Members(epoch, members))

    def request_specs(self, client: str) -> None:
        """Request the specs of a client's tensors."""
        self.post(protocol.GetSpecs(client))

    def send(self, sequence: int, chunk: Chunk) -> None:
        """Send it a chunk."""
        client = chunk.session.link
        shared = isinstance(client, ClientPeer) and self.is_beside(client)
        token = client.token if isinstance(client, ClientPeer) and not shared else ""
        name = chunk.session.name
        encoder = self._encoders.get(name)
        if encoder is None:
            encoder = self._encoders[name] = RepeatEncoder()
        instructions: Any = encoder.encode(chunk.instructions)
        returned, self.returned = self.returned, []
        work = protocol.Work(sequence, name, instructions, shared, returned, token)
        self.post(work, chunk.frames)

    def forget(self, client: str) -> None:
        """Free all tensors of a client on the worker."""
        self._encoders.pop(client, None)
        self.post(protocol.ForgetClient(client))
