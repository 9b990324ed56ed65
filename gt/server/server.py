"""The server: a dispatcher behind a socket."""

import errno
import itertools
import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import zmq
from zmq.utils.monitor import recv_monitor_message

from gt import config
from gt.dispatcher import Dispatcher
from gt.dispatcher.fair_share import Chunk
from gt.dispatcher.policy import SHARD_THRESHOLD, Policy
from gt.errors import ConnectionLost, ProtocolError
from gt.transport import protocol, shared_memory
from gt.transport.connection import configure, endpoint, readable
from gt.transport.modifiers import StreamModifier
from gt.transport.repeats import Listener, Teller

TICK_SECONDS = 0.1
ACK_EVERY = 4
"""How many batches an acknowledgement stands for, at most. Clients may have more under way (`remote.FEW`)."""

ACK_SECONDS = 0.002
"""After so long a batch is acknowledged by itself."""

MAX_QUEUED = 4096
"""How many batches of one client may wait. A client of ours stops far below; another is refused."""


class Peer:
    """Somebody on the other end of a connection: a client or a worker, once it has said hello."""

    def __init__(
        self, server: "Server", identity: bytes, hello: protocol.Hello | protocol.WorkerHello
    ) -> None:
        self._server = server
        self.identity = identity
        self.pid = hello.pid
        self.host = hello.host
        self.memory = hello.memory
        self.local = bool(hello.host) and hello.host == shared_memory.host()
        """Whether it sees our shared memory."""
        self.name = ""
        self._acked = 0.0
        self.returned: list[str] = []
        """Its shared memory that others are done with, and it does not know yet."""

    def post(self, message: Any, frames: Sequence[Any] = ()) -> None:
        """Send a message, and the arrays behind it."""
        self._server.post(self.identity, message, frames)


class ClientPeer(Peer):
    """A client; the dispatcher's link to it."""

    def __init__(self, server: "Server", identity: bytes, hello: protocol.Hello) -> None:
        super().__init__(server, identity, hello)
        self.listener = Listener()
        self.ticket = secrets.token_hex(16)
        """What it shows at the doors of workers on other hosts."""
        self._doors: dict[str, str] = {}

    def show_doors(self, workers: Iterable[Any]) -> None:
        """Tell it where workers on other hosts hand out data, if that has changed."""
        found = [one for one in workers if isinstance(one, WorkerPeer) and one.door]
        doors = {one.name: one.door for one in found if not one.is_beside(self)}
        if doors != self._doors:
            self._doors = doors
            self.post(protocol.Doors(self.ticket, doors))

    def ack(self, sequence: int) -> None:
        """Every batch up to this one is done. Said now and then: one message stands for those before."""
        now = time.monotonic()
        if sequence % ACK_EVERY == 0 or self.returned or now - self._acked > ACK_SECONDS:
            self._acked = now
            returned, self.returned = self.returned, []
            self.post(protocol.Ack(sequence, returned))

    def data(self, reply: tuple[protocol.Data, Any]) -> None:
        """Data that was asked for."""
        message, frame = reply
        self.post(message, () if frame is None else (frame,))

    def failed(self, request: int, error: str, part: protocol.Part | None = None) -> None:
        """Data that was asked for, or a part of it, and cannot be had."""
        self.post(protocol.Data(request, None, error, part))

    def refused(self, error: str) -> None:
        """It is not served any more."""
        self._server.turn_away(self.identity, error)


class WorkerPeer(Peer):
    """A worker; the dispatcher's link to it."""

    def __init__(self, server: "Server", identity: bytes, hello: protocol.WorkerHello) -> None:
        super().__init__(server, identity, hello)
        self.member = None
        if hello.address:
            self.member = protocol.Member(hello.address, hello.token, hello.host, hello.machine_memory)
        self.memory_limit = hello.memory_limit
        self._tellers: dict[str, Teller] = {}
        """By client: what this worker knows of its repeats."""
        self.door = hello.door if hello.door.startswith("tcp://") else ""

    def is_beside(self, client: Peer) -> bool:
        """Whether it sees the same shared memory as a client."""
        return bool(self.host) and client.host == self.host

    def meet(self, epoch: int, members: dict[str, protocol.Member]) -> None:
        """Tell it who the workers are from now on."""
        self.post(protocol.Mesh(epoch, members))

    def ask_specs(self, client: str) -> None:
        """Ask what it has of a client."""
        self.post(protocol.GetSpecs(client))

    def send(self, sequence: int, chunk: Chunk) -> None:
        """Have instructions carried out."""
        client = chunk.session.link
        shared = isinstance(client, ClientPeer) and self.is_beside(client)
        ticket = client.ticket if isinstance(client, ClientPeer) and not shared else ""
        name = chunk.session.name
        teller = self._tellers.get(name)
        if teller is None:
            teller = self._tellers[name] = Teller()
        instructions: Any = teller.tell(chunk.instructions)
        returned, self.returned = self.returned, []
        work = protocol.Work(sequence, name, instructions, shared, returned, ticket)
        self.post(work, chunk.frames)

    def forget(self, client: str) -> None:
        """Have everything of a client dropped."""
        self._tellers.pop(client, None)
        self.post(protocol.ForgetClient(client))


class Server:
    """Passes messages between a socket and a dispatcher, and looks after who is there."""

    def __init__(
        self,
        address: str,
        expected_workers: int = 0,
        modifiers: Sequence[StreamModifier] = (),
        report: Callable[[str], None] = config.verbose,
        owned: bool = False,
        enable_sharding: bool = True,
        shard_threshold: int = SHARD_THRESHOLD,
        policy: Policy | None = None,
    ) -> None:
        self.dispatcher = Dispatcher(modifiers, enable_sharding, shard_threshold, policy)
        self.address = address
        self._report = report
        self._owned = owned
        """Whether it was started by the one program that uses it."""
        self._expected_workers = expected_workers
        self._waiting: list[tuple[bytes, protocol.Hello]] = []
        """Clients that came before all workers were there."""
        self._peers: dict[bytes, ClientPeer | WorkerPeer] = {}
        self._by_fd: dict[int, bytes] = {}
        self._open: set[int] = set()
        self._overflowing: set[bytes] = set()
        """Who has so many messages waiting that no more fit."""
        self._refused: dict[bytes, None] = {}
        """Who was refused lately: it is said once."""
        self._unswept: set[str] = set()
        """Shared memory of peers that left, and may not have ended yet."""
        self._worker_names = (f"worker_{n}" for n in itertools.count())
        self._stats: list[_StatsQuestion] = []
        self._layouts: list[tuple[ClientPeer, int, int]] = []
        """Questions of where a tensor lies that have no answer yet."""
        self._requests = itertools.count()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        configure(self._socket)
        self._socket.router_mandatory = True
        # A peer that does not read what it asked for is cut off; ours have far less under way.
        self._socket.sndhwm = 10_000
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        try:
            self._socket.bind(endpoint(address))
        except zmq.ZMQError as error:
            self.close()
            reason = "something else listens there" if error.errno == errno.EADDRINUSE else str(error)
            raise ConnectionLost(f"cannot listen on {address}: {reason}") from None

    # --- the loop ---

    def run(self, alive: Callable[[], bool] = lambda: True) -> None:
        """Serve until interrupted, or until `alive` says no."""
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        next_tick = 0.0
        while True:
            poller.poll(int(TICK_SECONDS * 1000))
            self._drop_disconnected()
            for _ in range(64):  # then look again at who is gone
                if not readable(self._socket):
                    break
                identity, *parts = self._socket.recv_multipart(copy=False)
                self._receive(identity.bytes, parts)
            while self._overflowing:
                self._drop(self._overflowing.pop(), "it does not read what it asked for")
            if self._stats:
                self._answer_stats()
            if self._layouts:
                self._answer_layouts()
            if time.monotonic() > next_tick:
                next_tick = time.monotonic() + TICK_SECONDS
                if not alive():
                    return
                self._drop_dead_processes()
                self.dispatcher.tick()

    def post(self, identity: bytes, message: Any, frames: Sequence[Any] = ()) -> None:
        """Send a message. To somebody who is gone already it is lost, and nobody minds."""
        try:
            self._socket.send_multipart(
                [identity, protocol.encode(message), *frames], zmq.NOBLOCK, copy=False
            )
        except zmq.Again:
            self._overflowing.add(identity)
        except zmq.ZMQError:
            pass

    def turn_away(self, identity: bytes, why: str) -> None:
        """Refuse a peer whose work turned out to make no sense."""
        self._peers.pop(identity, None)  # the dispatcher is forgetting it already
        self._report(f"refused a client: {why}")
        self._refuse(identity, why)

    def close(self) -> None:
        """Stop listening."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=200)
        self._context.term()
        self.dispatcher.stream.close()

    # --- what comes in ---

    def _receive(self, identity: bytes, parts: list[zmq.Frame]) -> None:
        peer = self._peers.get(identity)
        if peer is None and parts:
            # The system gives a closed connection's number to the next one. What is known of earlier
            # connections is read first, so that their end is never taken for this one's.
            self._drop_disconnected()
            fd = _connection(parts[0])
            if fd not in self._open:
                return  # gone already, or none of ours: its end is what is said of it
            self._by_fd[fd] = identity
        try:
            if not parts or len(parts[0]) > protocol.MAX_MESSAGE:
                raise ProtocolError(f"a message of {len(parts[0]) if parts else 0} bytes")
            message = protocol.decode_by_server(parts[0].buffer)
            if isinstance(message, protocol.Hello | protocol.WorkerHello):
                self._greet(identity, message)
            elif isinstance(peer, ClientPeer):
                self._from_client(peer, message, parts[1:])
            elif isinstance(peer, WorkerPeer):
                self._from_worker(peer, message, parts[1:])
            else:
                raise ProtocolError("it does not know this peer: was the server restarted?")
        except (msgspec.DecodeError, ProtocolError, UnicodeDecodeError) as error:
            if identity not in self._refused:
                self._report(f"refused {peer.name if peer is not None else 'a stranger'}: {error}")
            self._refuse(identity, str(error))
        except Exception as error:  # noqa: BLE001 - one peer's message must not stop the others' server
            who = peer.name if peer is not None else "a stranger"
            why = f"{type(error).__name__}: {error}"
            self._report(f"a message of {who} could not be handled: {why}")
            if isinstance(peer, ClientPeer):
                self._refuse(identity, why)

    def _refuse(self, identity: bytes, why: str) -> None:
        """Tell a peer that it is not served any more, and why."""
        self._refused[identity] = None
        if len(self._refused) > 1000:
            del self._refused[next(iter(self._refused))]
        self.post(identity, protocol.Refused(why))
        self._drop(identity, f"it was refused: {why}")

    def _greet(self, identity: bytes, hello: protocol.Hello | protocol.WorkerHello) -> None:
        if hello.version != protocol.VERSION:
            raise ProtocolError(
                f"it speaks protocol version {protocol.VERSION}, and this peer speaks {hello.version}: "
                "install the same release of tapestry on both sides"
            )
        if identity in self._peers:
            raise ProtocolError("a second hello")
        if isinstance(hello, protocol.Hello):
            if len(self.dispatcher.workers) < self._expected_workers:
                self._waiting.append((identity, hello))
                return
            self._expected_workers = 0
            client = ClientPeer(self, identity, hello)
            self._peers[identity] = client
            client.name = self.dispatcher.connect(client)
            client.post(protocol.Welcome(client.name, client.local))
            client.show_doors(self.dispatcher.workers.values())
            config.verbose(f"client {client.name} connected")
            return
        name = hello.name or next(n for n in self._worker_names if n not in self.dispatcher.workers)
        if name in self.dispatcher.workers:
            raise ProtocolError(f"there is a worker called {name} already")
        worker = WorkerPeer(self, identity, hello)
        worker.name = name
        self._peers[identity] = worker
        worker.post(protocol.Welcome(name, worker.local))
        self.dispatcher.add_worker(worker)
        self._show_doors()
        self._report(f"{name} ({hello.engine}) joined; {len(self.dispatcher.workers)} in all")
        if len(self.dispatcher.workers) >= self._expected_workers:
            waiting, self._waiting = self._waiting, []
            for early, one in waiting:
                self._greet(early, one)

    def _from_client(self, peer: ClientPeer, message: Any, frames: list[zmq.Frame]) -> None:
        match message:
            case protocol.Batch(sequence, instructions, returned):
                if len(instructions) > protocol.MAX_INSTRUCTIONS:
                    raise ProtocolError(f"a batch of {len(instructions)} instructions")
                session = self.dispatcher.sessions[peer.name]
                if len(session.queue) + len(session.raw) > MAX_QUEUED:
                    raise ProtocolError("it sends without waiting for acknowledgements")
                for worker in self.dispatcher.workers.values() if returned else ():
                    if isinstance(worker, WorkerPeer) and worker.memory:
                        worker.returned += [name for name in returned if name.startswith(worker.memory)]
                self.dispatcher.receive(peer.name, sequence, peer.listener.hear(instructions), frames)
            case protocol.FollowLog(path):
                if not self._owned:
                    raise ProtocolError("only a program's own server takes its log from it")
                os.environ["GT_INSTRUCTION_LOG"] = path or ""
            case protocol.GetLayout(request, tensor):
                self._layouts.append((peer, request, tensor))
                self._answer_layouts()
            case protocol.GetTape(request, start):
                found = self.dispatcher.stream.since(start, skip=f"CLIENT {peer.name}")
                peer.post(protocol.TapeLines(request, *found))
            case protocol.GetStats(request):
                self._stats.append(_StatsQuestion(peer, request))
            case protocol.Bye():
                self._drop(peer.identity, "it said goodbye")
            case _:
                raise ProtocolError(f"a client sent a {type(message).__name__}")

    def _from_worker(self, peer: WorkerPeer, message: Any, frames: list[zmq.Frame]) -> None:
        match message:
            case protocol.Done(sequence, seconds, failed, data, returned, marks):
                client = self.dispatcher.client_of(sequence)
                if isinstance(client, ClientPeer) and returned:
                    client.returned += self.dispatcher.sessions[client.name].released(returned)
                replies = []
                for one in data:
                    frame = None
                    if one.array is not None and isinstance(one.array.data, int) and not one.array.shared:
                        frame = frames[one.array.data]
                        moved = msgspec.structs.replace(one.array, data=0)
                        one = msgspec.structs.replace(one, array=moved)
                    replies.append(_Reply(one, frame))
                self.dispatcher.done(sequence, seconds, failed, replies, marks)
            case protocol.Specs(client, tensors, failures):
                self.dispatcher.specs(client, tensors, failures)
            case protocol.WorkerStats(request, stats):
                for question in self._stats:
                    question.answer(peer.name, request, stats)
            case protocol.Bye():
                self._drop(peer.identity, "it said goodbye")
            case _:
                raise ProtocolError(f"a worker sent a {type(message).__name__}")

    # --- who goes ---

    def _drop_disconnected(self) -> None:
        while readable(self._monitor):
            event = recv_monitor_message(self._monitor)
            fd = int(event["value"])
            if event["event"] == zmq.EVENT_ACCEPTED:
                self._open.add(fd)
                continue
            self._open.discard(fd)
            identity = self._by_fd.pop(fd, None)
            if identity is not None:
                self._drop(identity, "its connection ended")
            else:
                self._report("a connection ended without a hello: something that is no GT client or worker")

    def _drop_dead_processes(self) -> None:
        """Notice the end of a process whose connection a child of its own keeps open."""
        for peer in list(self._peers.values()):
            if peer.local and not shared_memory.alive(peer.pid):
                self._drop(peer.identity, "its process ended")
        self._unswept = {memory for memory in self._unswept if not shared_memory.sweep(memory)}

    def _drop(self, identity: bytes, why: str) -> None:
        self._waiting = [one for one in self._waiting if one[0] != identity]
        peer = self._peers.pop(identity, None)
        if peer is None:
            return
        (self._report if isinstance(peer, WorkerPeer) else config.verbose)(f"{peer.name} left: {why}")
        self._stats = [question for question in self._stats if question.peer is not peer]
        if isinstance(peer, ClientPeer):
            self.dispatcher.disconnect(peer.name)
        else:
            self.dispatcher.remove_worker(peer.name, f"{peer.name} is gone, and its tensors with it: {why}")
            self._show_doors()
        if peer.local and peer.memory:
            self._unswept.add(peer.memory)

    def _show_doors(self) -> None:
        for peer in list(self._peers.values()):
            if isinstance(peer, ClientPeer):
                peer.show_doors(self.dispatcher.workers.values())

    # --- statistics ---

    def _answer_layouts(self) -> None:
        waiting, self._layouts = self._layouts, []
        for peer, request, tensor in waiting:
            if peer.identity not in self._peers:
                continue
            found = self.dispatcher.layouts(peer.name, tensor)
            if found is None:
                self._layouts.append((peer, request, tensor))
            else:
                peer.post(protocol.Layouts(request, *found))

    def _answer_stats(self) -> None:
        """Ask the workers once a client's earlier work is handed out; answer when all have answered."""
        for question in list(self._stats):
            session = self.dispatcher.sessions[question.peer.name]
            waits = not session.idle and (session.share is not None or session.sharding is not None)
            if question.asked is None and not (waits and self.dispatcher.workers):
                question.asked = next(self._requests)
                question.workers = set(self.dispatcher.workers)
                for worker in self.dispatcher.workers.values():
                    assert isinstance(worker, WorkerPeer)
                    worker.post(protocol.GetWorkerStats(question.asked))
            missing = (question.workers & self.dispatcher.workers.keys()) - question.answers.keys()
            if question.asked is not None and not missing:
                stats = protocol.Stats(question.request, question.answers, self.dispatcher.get_stats())
                question.peer.post(stats)
                self._stats.remove(question)


def _connection(frame: zmq.Frame) -> int:
    """The number of the connection that something came by; -1 if it does not even speak today's ZeroMQ."""
    try:
        return int(frame.get(zmq.SRCFD))
    except zmq.ZMQError:
        return -1


class _Reply:
    """A Data on its way through, with the bytes behind it."""

    def __init__(self, message: protocol.Data, frame: Any) -> None:
        self.message = message
        self.frame = frame
        self.request = message.request
        self.error = message.error
        self.nbytes = 0 if message.array is None else message.array.nbytes

    def __iter__(self) -> Any:
        return iter((self.message, self.frame))


class _StatsQuestion:
    """A client's question for statistics, until it is answered."""

    def __init__(self, peer: ClientPeer, request: int) -> None:
        self.peer = peer
        self.request = request
        self.asked: int | None = None
        self.workers: set[str] = set()
        self.answers: dict[str, dict[str, Any]] = {}

    def answer(self, worker: str, request: int, stats: dict[str, Any]) -> None:
        """A worker's answer."""
        if request == self.asked:
            self.answers[worker] = stats
