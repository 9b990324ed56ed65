"""The dispatcher's interfaces to clients and workers."""

from typing import Any, Protocol, runtime_checkable

from gt.dispatcher.fair_share import Chunk
from gt.stream.instructions import Part
from gt.transport.protocol import Member


class ClientLink(Protocol):
    """The dispatcher's connection to a client."""

    def ack(self, sequence: int) -> None:
        """Acknowledge all batches up to this one."""
        ...

    def data(self, reply: Any) -> None:
        """Send the reply to a read."""
        ...

    def failed(self, request: int, error: str, part: Part | None = None) -> None:
        """Send the error of a read, or of one part of it."""
        ...

    def refused(self, error: str) -> None:
        """Refuse the client, with this error."""
        ...


class WorkerLink(Protocol):
    """The dispatcher's connection to a worker."""

    @property
    def name(self) -> str:
        """Its name, unique among the workers."""
        ...

    def send(self, sequence: int, chunk: Chunk) -> None:
        """Send a chunk; `Dispatcher.done` is called with its results."""
        ...

    def forget(self, client: str) -> None:
        """Free all tensors of a client on the worker."""
        ...


@runtime_checkable
class MeshLink(WorkerLink, Protocol):
    """The connection to a worker that can exchange tensors with other workers."""

    @property
    def member(self) -> Member | None:
        """Its address for other workers; None if they cannot reach it."""
        ...

    @property
    def memory_limit(self) -> int:
        """How many bytes its tensors may take; 0 if unknown."""
        ...

    def update_members(self, epoch: int, members: dict[str, Member]) -> None:
        """Send it the current workers."""
        ...

    def request_specs(self, client: str) -> None:
        """Request the specs of a client's tensors; `Dispatcher.receive_specs` is called with them."""
        ...
