"""Peers that leave: a peer is dropped only after all of its messages have been read.

ZeroMQ reports the end of a connection on another socket than its messages, so the report may be read first. A
client that disconnects is kept until the server has acknowledged that; a client whose connection has ended is
kept until its messages are read.
"""

from collections.abc import Iterator

_SLACK = 64
"""Messages of others that are read before a lost peer's queue counts as empty, besides two for each peer."""


class LeavingPeers:
    """The peers that are leaving, and whether some of their messages may be unread."""

    def __init__(self) -> None:
        self._lost: dict[bytes, str] = {}
        """Peers whose connection or process has ended, and why."""
        self._others: dict[bytes, int] = {}
        """For each lost peer: how many messages of others were read since its last one."""
        self._read: set[bytes] = set()
        """The lost peers whose messages are all read."""
        self._leaving: dict[bytes, None] = {}
        """Clients that are disconnecting."""

    def lost(self, identity: bytes, why: str) -> None:
        """Record that a peer's connection or process has ended."""
        if identity not in self._lost:
            self._lost[identity] = why
            self._others[identity] = 0

    def add_leaving(self, identity: bytes) -> None:
        """Record that a client has sent its last message."""
        self._leaving[identity] = None

    def message_from(self, identity: bytes, peers: int) -> None:
        """Record a message from a peer; `peers` is the number of connections.

        ZeroMQ reads connections in turn. So when two messages for each connection, and a few more, have been
        read from other peers, a lost peer has no unread messages, even if the server always has some to read.
        """
        for one in self._others:
            self._others[one] = 0 if one == identity else self._others[one] + 1
            if self._others[one] > 2 * peers + _SLACK:
                self._read.add(one)

    def all_read(self) -> None:
        """Record that no message is waiting."""
        self._read.update(self._lost)

    def read(self) -> list[tuple[bytes, str]]:
        """Lost peers whose messages are all read, and why they are lost; not clients that are
        disconnecting."""
        return [(one, self._lost[one]) for one in self._read if one not in self._leaving]

    def leaving(self) -> Iterator[bytes]:
        """Clients that are disconnecting, oldest first."""
        return iter(list(self._leaving))

    def forget(self, identity: bytes) -> None:
        """Forget a peer that was dropped."""
        self._lost.pop(identity, None)
        self._others.pop(identity, None)
        self._read.discard(identity)
        self._leaving.pop(identity, None)
