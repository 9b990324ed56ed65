"""The server: a dispatcher behind a socket."""

import errno
import itertools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import zmq
from zmq.utils.monitor import recv_monitor_message

from gt import logs
from gt.dispatcher import Dispatcher
from gt.dispatcher.sharding.policy import SHARD_THRESHOLD, Policy
from gt.errors import ConnectionLost, ProtocolError
from gt.server.leaving_peers import LeavingPeers
from gt.server.peers import MAX_QUEUED, ClientPeer, WorkerPeer
from gt.stream.modifiers import Installed, ModifierLike
from gt.transport import protocol, shared_memory
from gt.transport.connection import configure, endpoint, readable

TICK_SECONDS = 0.1
"""How often the server checks for dead processes and for work that waits too long."""

MAX_REQUESTS = 256
"""The largest number of unanswered requests for statistics or layouts of one client."""


class Server:
    """Passes messages between a socket and a dispatcher, and keeps track of connections."""

    def __init__(
        self,
        address: str,
        expected_workers: int = 0,
        modifiers: Sequence[ModifierLike] | Installed = (),
        report: Callable[[str], None] = logs.verbose,
        owned: bool = False,
        enable_sharding: bool = True,
        shard_threshold: int = SHARD_THRESHOLD,
        policy: Policy | None = None,
    ) -> None:
        self.dispatcher = Dispatcher(modifiers, enable_sharding, shard_threshold, policy)
        self.address = address
        self._report = report
        self._owned = owned
        """Whether a program started the server for its own use."""
        self._expected_workers = expected_workers
        self._waiting: list[tuple[bytes, protocol.Hello]] = []
        """Clients that connected before all expected workers had joined."""
        self._peers: dict[bytes, ClientPeer | WorkerPeer] = {}
        self._by_fd: dict[int, bytes] = {}
        self._open: set[int] = set()
        self._overflowing: set[bytes] = set()
        """Peers whose queue of outgoing messages is full."""
        self._refused: dict[bytes, None] = {}
        """Peers that were refused recently, each of which is logged once."""
        self._leaving_peers = LeavingPeers()
        self._dead: set[bytes] = set()
        """Peers whose process had ended at the last tick."""
        self._unswept: set[str] = set()
        """Prefixes of the shared memory of peers that have left, whose process may still run."""
        self._worker_names = (f"worker_{n}" for n in itertools.count())
        self._stats: list[_StatsRequest] = []
        self._layouts: list[tuple[ClientPeer, int, int]] = []
        """Requests for placements that have no answer yet: peer, request and tensor."""
        self._requests = itertools.count()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        configure(self._socket)
        self._socket.router_mandatory = True
        # A peer that does not read its messages is dropped; gt's clients and workers never have this many in
        # flight.
        self._socket.sndhwm = 10_000
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        try:
            self._socket.bind(endpoint(address))
        except zmq.ZMQError as error:
            self.close()
            reason = "the address is in use" if error.errno == errno.EADDRINUSE else str(error)
            raise ConnectionLost(f"cannot listen on {address}: {reason}") from None

    # --- the loop ---

    def run(self, alive: Callable[[], bool] = lambda: True) -> None:
        """Serve until interrupted, or until `alive` returns False."""
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        next_tick = 0.0
        while True:
            poller.poll(int(TICK_SECONDS * 1000))
            self._handle_disconnects()
            self._read(64)  # then check again for peers that have left
            self._drop_departed()
            while self._overflowing:
                self._drop(self._overflowing.pop(), "it does not read its messages")
            if self._stats:
                self._answer_stats()
            if self._layouts:
                self._answer_layouts()
            if time.monotonic() > next_tick:
                next_tick = time.monotonic() + TICK_SECONDS
                if not alive():
                    # The program that started it has ended; the tape must have the messages that it sent.
                    self._read(MAX_QUEUED)
                    return
                self._detect_dead_processes()
                self.dispatcher.tick()

    def _read(self, most: int) -> None:
        """Handle up to `most` messages that have arrived."""
        for _ in range(most):
            if not readable(self._socket):
                self._leaving_peers.all_read()
                return
            identity, *parts = self._socket.recv_multipart(copy=False)
            self._leaving_peers.message_from(identity.bytes, len(self._open))
            self._receive(identity.bytes, parts)

    def post(self, identity: bytes, message: Any, frames: Sequence[Any] = ()) -> None:
        """Send a message. One to a peer that has left is dropped."""
        try:
            self._socket.send_multipart(
                [identity, protocol.encode(message), *frames], zmq.NOBLOCK, copy=False
            )
        except zmq.Again:
            self._overflowing.add(identity)
        except zmq.ZMQError:
            pass

    def refuse_client(self, identity: bytes, why: str) -> None:
        """Refuse a peer whose instructions turned out to be invalid."""
        self._report(f"refused a client: {why}")
        self._refuse(identity, why)

    def close(self) -> None:
        """Stop listening."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=200)
        self._context.term()
        self.dispatcher.stream.close()

    # --- incoming messages ---

    def _receive(self, identity: bytes, parts: list[zmq.Frame]) -> None:
        peer = self._peers.get(identity)
        if peer is None and parts:
            # The system reuses the descriptors of closed connections. The events of earlier connections are
            # handled first, so that their end is not taken for the end of this one.
            self._handle_disconnects()
            fd = _connection(parts[0])
            if fd not in self._open:
                return  # it has been closed already
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
                raise ProtocolError("this peer is unknown: was the server restarted?")
        except (msgspec.DecodeError, ProtocolError, UnicodeDecodeError) as error:
            if identity not in self._refused:
                self._report(f"refused {peer.name if peer is not None else 'an unknown peer'}: {error}")
            self._refuse(identity, str(error))
        except Exception as error:  # noqa: BLE001 - one peer's message must not stop the others' server
            who = peer.name if peer is not None else "an unknown peer"
            why = f"{type(error).__name__}: {error}"
            self._report(f"a message of {who} could not be handled: {why}")
            if isinstance(peer, ClientPeer):
                self._refuse(identity, why)

    def _refuse(self, identity: bytes, why: str) -> None:
        """Send a peer the reason why it is refused, and drop it."""
        self._refused[identity] = None
        if len(self._refused) > 1000:
            del self._refused[next(iter(self._refused))]
        self.post(identity, protocol.Refused(why))
        self._drop(identity, f"it was refused: {why}")

    def _greet(self, identity: bytes, hello: protocol.Hello | protocol.WorkerHello) -> None:
        if hello.version != protocol.VERSION:
            raise ProtocolError(
                f"the server has protocol version {protocol.VERSION}, but this peer has {hello.version}: "
                "install the same release of tapestry on both sides"
            )
        if identity in self._peers or any(early == identity for early, _ in self._waiting):
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
            client.send_direct_addresses(self.dispatcher.workers.values())
            logs.verbose(f"client {client.name} connected")
            return
        name = hello.name or next(n for n in self._worker_names if n not in self.dispatcher.workers)
        if name in self.dispatcher.workers:
            raise ProtocolError(f"a worker called {name} is connected already")
        worker = WorkerPeer(self, identity, hello)
        worker.name = name
        self._peers[identity] = worker
        worker.post(protocol.Welcome(name, worker.local, self.dispatcher.pool.next_number()))
        self.dispatcher.add_worker(worker)
        self._send_direct_addresses()
        self._report(f"{name} ({hello.engine}) joined; {len(self.dispatcher.workers)} in all")
        if len(self.dispatcher.workers) >= self._expected_workers:
            waiting, self._waiting = self._waiting, []
            for early, one in waiting:
                self._greet(early, one)

    def _from_client(self, peer: ClientPeer, message: Any, frames: list[zmq.Frame]) -> None:
        match message:
            case protocol.Batch(sequence, _, returned):
                instructions = peer.receive(message)
                for worker in self.dispatcher.workers.values() if returned else ():
                    if isinstance(worker, WorkerPeer) and worker.memory:
                        worker.returned += [name for name in returned if name.startswith(worker.memory)]
                self.dispatcher.receive(peer.name, sequence, instructions, frames)
            case protocol.FollowLog(path):
                if not self._owned:
                    raise ProtocolError("only the program that started a server may set its log")
                os.environ["GT_INSTRUCTION_LOG"] = path or ""
            case protocol.GetLayout(request, tensor):
                self._check_requests(peer)
                self._layouts.append((peer, request, tensor))
                self._answer_layouts()
            case protocol.GetTape(request, start, own):
                found = self.dispatcher.stream.since(start, skip="" if own else f"CLIENT {peer.name}")
                peer.post(protocol.TapeLines(request, *found))
            case protocol.GetStats(request):
                self._check_requests(peer)
                self._stats.append(_StatsRequest(peer, request))
            case protocol.Bye():
                self._leaving_peers.add_leaving(peer.identity)
            case _:
                raise ProtocolError(f"a client sent a {type(message).__name__}")

    def _from_worker(self, peer: WorkerPeer, message: Any, frames: list[zmq.Frame]) -> None:
        match message:
            case protocol.Done(sequence, seconds, failed, data, returned, marks, injected):
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
                self.dispatcher.done(sequence, seconds, failed, replies, marks, injected)
            case protocol.Specs(client, tensors, failures):
                self.dispatcher.receive_specs(client, tensors, failures)
            case protocol.WorkerStats(number, stats):
                for request in self._stats:
                    request.answer(peer.name, number, stats)
            case protocol.Bye():
                self._drop(peer.identity, "it disconnected")
            case _:
                raise ProtocolError(f"a worker sent a {type(message).__name__}")

    # --- peers that leave ---

    def _handle_disconnects(self) -> None:
        while readable(self._monitor):
            event = recv_monitor_message(self._monitor)
            fd = int(event["value"])
            if event["event"] == zmq.EVENT_ACCEPTED:
                self._open.add(fd)
                continue
            self._open.discard(fd)
            identity = self._by_fd.pop(fd, None)
            if identity is not None:
                self._leaving_peers.lost(identity, "its connection ended")
            else:
                self._report("a connection ended without a hello: not a gt client or worker")

    def _detect_dead_processes(self) -> None:
        """Drop processes that have ended although a child process keeps their connection open."""
        dead = {
            peer.identity for peer in self._peers.values() if peer.local and not shared_memory.alive(peer.pid)
        }
        for identity in dead & self._dead:  # a tick later, when its last messages have arrived
            self._leaving_peers.lost(identity, "its process ended")
        self._dead = dead
        self._unswept = {memory for memory in self._unswept if not shared_memory.sweep(memory)}

    def _drop_departed(self) -> None:
        """Drop peers that have left, once their messages are read and, with a log file, executed."""
        for identity, why in self._leaving_peers.read():
            self._drop(identity, why)
        for identity in self._leaving_peers.leaving():
            peer = self._peers.get(identity)
            if peer is None or not self.dispatcher.unfinished(peer.name):
                self._drop(identity, "it disconnected")
                self.post(identity, protocol.ByeAck())

    def _drop(self, identity: bytes, why: str) -> None:
        self._leaving_peers.forget(identity)
        self._waiting = [one for one in self._waiting if one[0] != identity]
        peer = self._peers.pop(identity, None)
        if peer is None:
            return
        (self._report if isinstance(peer, WorkerPeer) else logs.verbose)(f"{peer.name} left: {why}")
        self._stats = [request for request in self._stats if request.peer is not peer]
        if isinstance(peer, ClientPeer):
            self.dispatcher.disconnect(peer.name)
        else:
            self.dispatcher.remove_worker(peer.name, f"{peer.name} is gone, and its tensors are lost: {why}")
            self._send_direct_addresses()
        if peer.local and peer.memory:
            self._unswept.add(peer.memory)

    def _send_direct_addresses(self) -> None:
        for peer in list(self._peers.values()):
            if isinstance(peer, ClientPeer):
                peer.send_direct_addresses(self.dispatcher.workers.values())

    # --- requests that may have to wait ---

    def _check_requests(self, peer: ClientPeer) -> None:
        """Raise ProtocolError if a client has too many open requests."""
        stats = sum(request.peer is peer for request in self._stats)
        if stats + sum(one[0] is peer for one in self._layouts) >= MAX_REQUESTS:
            raise ProtocolError(f"more than {MAX_REQUESTS} open requests")

    def _answer_layouts(self) -> None:
        waiting, self._layouts = self._layouts, []
        for peer, request, tensor in waiting:
            if self._peers.get(peer.identity) is not peer:
                continue  # it has left; another may have connected with the same identity
            found = self.dispatcher.layouts(peer.name, tensor)
            if found is None:
                self._layouts.append((peer, request, tensor))
            else:
                peer.post(protocol.Layouts(request, *found))

    def _answer_stats(self) -> None:
        """Answer the requests for statistics that can be answered now."""
        waiting, self._stats = self._stats, []
        for request in waiting:
            try:
                answered = self._answer(request)
            except Exception as error:  # noqa: BLE001 - one client's request must not stop the others' server
                answered = True
                why = f"statistics are not available: {type(error).__name__}: {error}"
                self._report(f"{request.peer.name}: {why}")
                request.peer.post(protocol.Stats(request.number, request.answers, {"error": why}))
            if not answered:
                self._stats.append(request)

    def _answer(self, request: "_StatsRequest") -> bool:
        """Request statistics once the client's earlier instructions are sent; reply when all have arrived.

        Returns whether the request is done.
        """
        peer, workers = request.peer, self.dispatcher.workers
        if self._peers.get(peer.identity) is not peer:
            return True  # it has left
        session = self.dispatcher.sessions[peer.name]
        waits = not session.idle and (session.share is not None or session.sharding is not None)
        if request.worker_request is None and not (waits and workers):
            request.worker_request = next(self._requests)
            request.workers = set(workers)
            for worker in workers.values():
                assert isinstance(worker, WorkerPeer)
                worker.post(protocol.GetWorkerStats(request.worker_request, peer.name))
        missing = (request.workers & workers.keys()) - request.answers.keys()
        if request.worker_request is None or missing:
            return False
        stats = self.dispatcher.get_stats(peer.name)
        peer.post(protocol.Stats(request.number, request.answers, stats))
        return True


def _connection(frame: zmq.Frame) -> int:
    """The descriptor of the connection that a frame was received on; -1 if the peer's ZeroMQ is too old."""
    try:
        return int(frame.get(zmq.SRCFD))
    except zmq.ZMQError:
        return -1


class _Reply:
    """A Data message that is forwarded, and the bytes behind it."""

    def __init__(self, message: protocol.Data, frame: Any) -> None:
        self.message = message
        self.frame = frame
        self.request = message.request
        self.error = message.error
        self.nbytes = 0 if message.array is None else message.array.nbytes

    def __iter__(self) -> Any:
        return iter((self.message, self.frame))


class _StatsRequest:
    """A client's request for statistics, until it is answered."""

    def __init__(self, peer: ClientPeer, number: int) -> None:
        self.peer = peer
        self.number = number
        self.worker_request: int | None = None
        """The number of the requests that were sent to the workers for it; None before that."""
        self.workers: set[str] = set()
        self.answers: dict[str, dict[str, Any]] = {}

    def answer(self, worker: str, number: int, stats: dict[str, Any]) -> None:
        """Add a worker's answer."""
        if number == self.worker_request:
            self.answers[worker] = stats
