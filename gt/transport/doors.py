"""Doors: how data goes straight from a worker to a client on another host.

On one host it lies in shared memory. Otherwise a client connects to every worker's door, and shows a ticket
that the server gave to it and to the workers; what it has asked for is handed out there. The dispatcher only
learns that it was. Where a door cannot be reached, the data goes through the dispatcher.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import zmq

from gt.transport import protocol
from gt.transport.connection import configure, readable
from gt.transport.protocol import Data, Part

_decode = msgspec.msgpack.Decoder(Data).decode
Key = tuple[int, tuple[int, ...]]
"""A request, and where the part that is meant begins."""


class Door:
    """A worker's door."""

    def __init__(self, bind: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        configure(self._socket)
        self._socket.router_mandatory = True
        self._socket.router_handover = True  # whose connection broke comes back with the same ticket
        self._socket.rcvhwm = 1  # nobody has anything to say here
        self._socket.sndhwm = 100  # who does not collect what it asked for does not fill this process
        self._socket.bind(bind)
        self.address = str(self._socket.getsockopt_string(zmq.LAST_ENDPOINT))
        self.bytes_given = 0

    def give(self, ticket: str, message: Data, frame: memoryview) -> bool:
        """Hand out data to whoever has shown this ticket; False if nobody has."""
        while readable(self._socket):
            self._socket.recv_multipart()
        try:
            self._socket.send_multipart(
                [ticket.encode(), protocol.encode(message), frame], zmq.NOBLOCK, copy=False
            )
        except zmq.ZMQError:
            return False
        self.bytes_given += len(frame)
        return True

    def close(self) -> None:
        """Close it."""
        self._socket.close(linger=500)  # what was handed out still has to arrive
        self._context.term()


class Doors:
    """A client's way to the doors of all workers."""

    def __init__(self, ticket: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        configure(self._socket)
        self._socket.routing_id = ticket.encode()
        self.fd = self._socket.fileno()
        self._open: dict[str, str] = {}
        self._expected: dict[Key, tuple[str, Part | None]] = {}
        """What workers say they have handed out, and has not come yet."""
        self._early: set[Key] = set()
        """What came before that was said."""

    def meet(self, doors: Mapping[str, str], lost: Callable[[int, str, Part | None], None]) -> None:
        """These are the workers with a door from now on; what others handed out is lost."""
        for name in [name for name, address in self._open.items() if doors.get(name) != address]:
            with contextlib.suppress(zmq.ZMQError):
                self._socket.disconnect(self._open.pop(name))
            for key, (worker, part) in list(self._expected.items()):
                if worker == name:
                    del self._expected[key]
                    lost(key[0], f"{name} is gone, and its tensors with it: its data did not arrive", part)
        for name in doors.keys() - self._open.keys():
            self._socket.connect(doors[name])
            self._open[name] = doors[name]

    def receive(self) -> Iterator[tuple[Data, list[zmq.Frame]]]:
        """What has been handed out. Never waits."""
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
        """Whether a reply by way of the dispatcher says nothing new: its data comes, or came, by a door."""
        key = _key(message)
        if key in self._early:
            self._early.discard(key)
            return True
        if message.door:
            self._expected[key] = message.door, message.part
        return bool(message.door)

    def close(self) -> None:
        """Leave."""
        self._socket.close(linger=0)
        self._context.term()


def _key(message: Data) -> Key:
    return message.request, () if message.part is None else message.part.start
