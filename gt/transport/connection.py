"""How a client reaches a dispatcher.

Today there is one way: both in one process. Messages are still encoded and decoded, so what works
embedded is exactly what can be sent.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from gt.transport import protocol


class Server(Protocol):
    """What a connection needs of the other side."""

    def connect(self) -> str:
        """Admit a client; the result is its name."""
        ...

    def receive(self, client: str, batch: bytes) -> bytes | None:
        """Carry out a batch of instructions; the result is the reply to a GetData at its end, if any."""
        ...

    def disconnect(self, client: str) -> None:
        """Forget a client and free all its tensors."""
        ...

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        ...


class LocalConnection:
    """A client and a server in one process: a call instead of a socket."""

    def __init__(self, server: Server):
        self._server = server
        self.client_name = server.connect()

    def send(self, batch: Sequence[protocol.ClientInstruction]) -> None:
        """Send instructions; nothing comes back."""
        self._server.receive(self.client_name, protocol.encode(batch))

    def request(self, batch: Sequence[protocol.ClientInstruction]) -> protocol.Reply:
        """Send instructions, the last of them a GetData, and wait for its answer."""
        reply = self._server.receive(self.client_name, protocol.encode(batch))
        assert reply is not None, "the last instruction of a request is a GetData"
        return protocol.decode_reply(reply)

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        return self._server.get_stats()

    def close(self) -> None:
        """Leave; the server frees what this client still holds."""
        self._server.disconnect(self.client_name)
