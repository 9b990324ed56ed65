"""What the dispatcher needs of the ways to clients and workers."""

from typing import Any, Protocol, runtime_checkable

from gt.dispatcher.fair_share import Chunk
from gt.stream.instructions import Part
from gt.transport.protocol import Member


class ClientLink(Protocol):
    """The way to a client."""

    def ack(self, sequence: int) -> None:
        """Every batch up to this one is done."""
        ...

    def data(self, reply: Any) -> None:
        """Data that was asked for."""
        ...

    def failed(self, request: int, error: str, part: Part | None = None) -> None:
        """Data that was asked for, or a part of it, and cannot be had."""
        ...

    def refused(self, error: str) -> None:
        """It is not served any more."""
        ...


class WorkerLink(Protocol):
    """The way to a worker."""

    @property
    def name(self) -> str:
        """What the tape calls it."""
        ...

    def send(self, sequence: int, chunk: Chunk) -> None:
        """Have instructions carried out; `Dispatcher.done` is called with what came of them."""
        ...

    def forget(self, client: str) -> None:
        """Have everything of a client dropped."""
        ...


@runtime_checkable
class MeshLink(WorkerLink, Protocol):
    """The way to a worker that can be one of several which share a client's tensors."""

    @property
    def member(self) -> Member | None:
        """How other workers reach it; None if they cannot."""
        ...

    @property
    def memory_limit(self) -> int:
        """How many bytes its tensors may take; 0 if it does not say."""
        ...

    def meet(self, epoch: int, members: dict[str, Member]) -> None:
        """Tell it who the workers are from now on."""
        ...

    def ask_specs(self, client: str) -> None:
        """Ask for the specs of a client's tensors; `Dispatcher.specs` is called with them."""
        ...
