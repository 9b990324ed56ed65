"""Peers on their way out: none is dropped before what it had sent is read.

ZeroMQ reports the end of a connection on another socket than its messages come by, so the report may be seen
first. A client that says goodbye stays until the server answers; one whose connection ends stays until its
messages are read.
"""

from collections.abc import Iterator

_SLACK = 64
"""Messages of others that are read before a lost peer's queue counts as empty, besides two for each peer."""


class Departures:
    """Who leaves, and whether messages of theirs may still be unread."""

    def __init__(self) -> None:
        self._lost: dict[bytes, str] = {}
        """Peers whose connection or process has ended, and why."""
        self._others: dict[bytes, int] = {}
        """For each of these: how many messages of others were read since its last one."""
        self._read: set[bytes] = set()
        """Those of them whose messages are all read."""
        self._leaving: dict[bytes, None] = {}
        """Clients that said goodbye."""

    def lost(self, identity: bytes, why: str) -> None:
        """A peer's connection or process has ended."""
        if identity not in self._lost:
            self._lost[identity] = why
            self._others[identity] = 0

    def said_goodbye(self, identity: bytes) -> None:
        """A client leaves: this was its last message."""
        self._leaving[identity] = None

    def message_from(self, identity: bytes, peers: int) -> None:
        """A message is being handled; there are so many connections.

        They take turns, so after that many messages of others a peer had none left: a server that never
        runs out of messages drops peers too.
        """
        for one in self._others:
            self._others[one] = 0 if one == identity else self._others[one] + 1
            if self._others[one] > 2 * peers + _SLACK:
                self._read.add(one)

    def all_read(self) -> None:
        """No message is waiting."""
        self._read.update(self._lost)

    def read(self) -> list[tuple[bytes, str]]:
        """Lost peers whose messages are all read, and why they are lost; not those that said goodbye."""
        return [(one, self._lost[one]) for one in self._read if one not in self._leaving]

    def leaving(self) -> Iterator[bytes]:
        """Clients that said goodbye, oldest first."""
        return iter(list(self._leaving))

    def forget(self, identity: bytes) -> None:
        """A peer was dropped."""
        self._lost.pop(identity, None)
        self._others.pop(identity, None)
        self._read.discard(identity)
        self._leaving.pop(identity, None)
