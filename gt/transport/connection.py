"""The connection of a client or a worker to a dispatcher: a ZeroMQ socket, tcp across hosts, ipc on one.

ZeroMQ's heartbeats, which run outside Python, detect a peer that has ended or hangs; a monitor socket reports
it. A link must not be used by two threads at once: its user holds `lock`.
"""

import select
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from gt.errors import ConnectionLost, ProtocolError
from gt.stream.instructions import MAX_ARRAY
from gt.transport import protocol

HEARTBEAT_SECONDS = 1.0
DEAD_SECONDS = 5.0
"""A peer that is silent for this long counts as gone. A closed connection is detected at once."""


def endpoint(address: str) -> str:
    """The ZeroMQ endpoint of an address: `tcp://localhost:12345` for `localhost:12345`."""
    if "://" in address:
        return address
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"an address must be host:port, such as localhost:12345, but got {address!r}")
    # ZeroMQ may resolve localhost to ::1, where servers rarely listen.
    return f"tcp://{'127.0.0.1' if host == 'localhost' else host}:{port}"


def configure(socket: zmq.Socket) -> None:
    """Set the options that all sockets share."""
    socket.linger = 0
    socket.sndhwm = socket.rcvhwm = 0  # no limit: acknowledgements bound the messages in flight
    socket.heartbeat_ivl = int(HEARTBEAT_SECONDS * 1000)
    socket.heartbeat_timeout = int(DEAD_SECONDS * 1000)
    socket.maxmsgsize = MAX_ARRAY


def readable(socket: zmq.Socket) -> bool:
    """Whether a message has arrived. Reading the socket's events is faster than polling it."""
    return bool(socket.getsockopt(zmq.EVENTS) & zmq.POLLIN)  # type: ignore[operator] - a number


class Link:
    """A connection to a dispatcher."""

    def __init__(self, address: str) -> None:
        place = endpoint(address)
        self.address = address
        self.lock = threading.RLock()
        self.lost: str | None = None
        """The reason why the connection ended; None while it is open."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        configure(self._socket)
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._fds = [self._socket.fileno(), self._monitor.fileno()]
        self._socket.connect(place)

    def send(self, message: Any, frames: Iterable[Any] = ()) -> None:
        """Send a message and the arrays behind it. Raises ConnectionLost if the connection has ended."""
        payload = protocol.encode(message)
        if len(payload) > protocol.MAX_MESSAGE:
            raise ProtocolError(
                f"a message of {len(payload)} bytes is over the limit of {protocol.MAX_MESSAGE}"
            )
        with self.lock:
            self.check()
            self._socket.send_multipart([payload, *frames], copy=False)

    def receive(self) -> Iterable[tuple[bytes, list[zmq.Frame]]]:
        """The messages that have arrived, still encoded, and the arrays behind them. Never waits."""
        with self.lock:
            while self.lost is None and readable(self._socket):
                payload, *frames = self._socket.recv_multipart(copy=False)
                yield payload.bytes, frames
            if self.lost is None and readable(self._monitor):
                recv_monitor_message(self._monitor)
                self.lost = f"the server at {self.address} went away"

    def check(self) -> None:
        """Raise ConnectionLost if the connection has ended."""
        if self.lost is not None:
            raise ConnectionLost(self.lost)

    def wait(self, seconds: float) -> None:
        """Wait until something may have arrived. Holds no lock: others may send meanwhile."""
        poll = select.poll()
        for fd in self._fds:
            poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)

    def watch(self, fd: int) -> None:
        """Let `wait` return also when this descriptor becomes readable."""
        self._fds = [*self._fds, fd]

    def until(self, done: Callable[[], Any], seconds: float, why: Callable[[], str]) -> Any:
        """Call `done` whenever something may have arrived, until it returns a value that is not None."""
        deadline = time.monotonic() + seconds
        while True:
            result = done()
            if result is not None:
                return result
            left = deadline - time.monotonic()
            if left <= 0:
                raise ConnectionLost(why())
            # Another thread may have received the message that this one waits for, so it checks again soon.
            self.wait(min(left, 0.05))

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            if self.lost is None or not self._socket.closed:
                self.lost = self.lost or f"the connection to {self.address} was closed"
                self._socket.disable_monitor()
                self._monitor.close(linger=0)
                self._socket.close(linger=500)  # to send queued messages
                self._context.term()

    def abandon(self, why: str) -> None:
        """Forget the socket without touching it: after a fork it is the parent's."""
        self.lock = threading.RLock()
        self.lost = why
