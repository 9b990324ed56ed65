"""Direct reads: data goes from a worker to a client on another host, not through the dispatcher.

On one host, shared memory is used instead. A client connects to the direct address of every worker and
presents a token that the server gave to it and to the workers; the worker sends the requested data to that
connection, and reports to the dispatcher only that it was sent. If a worker cannot be reached, its data goes
through the dispatcher.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import zmq

from gt.stream.instructions import Part
from gt.transport import protocol
from gt.transport.connection import configure, readable
from gt.transport.protocol import Data

_decode = msgspec.msgpack.Decoder(Data).decode
Key = tuple[int, tuple[int, ...]]
"""A request, and the offset of the requested part."""


class DirectReadServer:
    """The worker's end: sends data to clients that have presented their token."""

    def __init__(self, bind: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        configure(self._socket)
        self._socket.router_mandatory = True
        self._socket.router_handover = True  # a client whose connection broke reconnects with the same token
        self._socket.rcvhwm = 1  # clients send nothing here
        self._socket.sndhwm = 100  # a client that does not read its data must not fill this process's memory
        self._socket.bind(bind)
        self.address = str(self._socket.getsockopt_string(zmq.LAST_ENDPOINT))
        self.bytes_sent = 0

    def send(self, token: str, message: Data, frame: memoryview) -> bool:
        """Send data to the client that presented this token; False if none has."""
        while readable(self._socket):
            self._socket.recv_multipart()
        try:
            self._socket.send_multipart(
                [token.encode(), protocol.encode(message), frame], zmq.NOBLOCK, copy=False
            )
        except zmq.ZMQError:
            return False
        self.bytes_sent += len(frame)
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close(linger=500)  # to send queued messages
        self._context.term()


class DirectReadClient:
    """The client's end: connections to the direct addresses of all workers."""

    def __init__(self, token: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        configure(self._socket)
        self._socket.routing_id = token.encode()
        self.fd = self._socket.fileno()
        self._open: dict[str, str] = {}
        self._expected: dict[Key, tuple[str, Part | None]] = {}
        """Data that workers have reported as sent, and that has not arrived."""
        self._early: set[Key] = set()
        """Data that arrived before the worker's message about it."""

    def connect(self, addresses: Mapping[str, str], lost: Callable[[int, str, Part | None], None]) -> None:
        """Connect to these workers only; data of the others that has not arrived is lost."""
        for name in [name for name, address in self._open.items() if addresses.get(name) != address]:
            with contextlib.suppress(zmq.ZMQError):
                self._socket.disconnect(self._open.pop(name))
            for key, (worker, part) in list(self._expected.items()):
                if worker == name:
                    del self._expected[key]
                    lost(key[0], f"{name} is gone, and its tensors are lost: its data did not arrive", part)
        for name in addresses.keys() - self._open.keys():
            self._socket.connect(addresses[name])
            self._open[name] = addresses[name]

    def receive(self) -> Iterator[tuple[Data, list[zmq.Frame]]]:
        """The data that has arrived. Never waits."""
        while readable(self._socket):
            payload, *frames = self._socket.recv_multipart(copy=False)
            try:
                message = _decode(payload.buffer)
            except msgspec.DecodeError:
                continue
            key = _key(message)
            if self._expected.pop(key, None) is None:
                self._early.add(key)
            yield message, frames

    def is_settled(self, message: Any) -> bool:
        """Whether the data of this reply arrives, or has arrived, by a direct read."""
        key = _key(message)
        if key in self._early:
            self._early.discard(key)
            return True
        if message.direct_address:
            self._expected[key] = message.direct_address, message.part
        return bool(message.direct_address)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close(linger=0)
        self._context.term()


def _key(message: Data) -> Key:
    return message.request, () if message.part is None else message.part.start
