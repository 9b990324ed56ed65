"""The connection that a client needs: over a socket (`connection.py`) or to a server in the same process."""

from typing import Any, Protocol

import numpy as np

from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import LocalInstruction
from gt.transport import protocol


class Connection(Protocol):
    """The connection of a client to its dispatcher."""

    def upload(self, result: int, array: np.ndarray, owned: bool) -> LocalInstruction:
        """The instruction that uploads an array. Unless `owned`, the caller may change the array later."""
        ...

    sent: int
    """How many batches have been sent."""

    unacknowledged: int
    """The number of instructions that were sent and not acknowledged; 0 if `send` executes them."""

    tiny_batch: int
    """How many ops to send together, at least, if they are of a loop of a few ops."""

    def wait_for_room(self) -> None:
        """Wait until another batch may be sent."""
        ...

    def send(self, batch: list[LocalInstruction]) -> None:
        """Send instructions. Raises ConnectionLost if the server has gone."""
        ...

    def wait(self, request: int) -> protocol.Fetched:
        """Wait for the reply to a GetData."""
        ...

    def abandon(self, request: int) -> None:
        """Drop the reply to a request, also if it has not arrived yet."""
        ...

    def drop_abandoned(self) -> None:
        """Drop abandoned replies that have arrived. Never waits."""
        ...

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        ...

    def get_dispatcher_stats(self) -> dict[str, Any]:
        """The dispatcher's statistics."""
        ...

    def get_layouts(self, tensor: int) -> protocol.Layouts:
        """A tensor's placements."""
        ...

    def get_tape(self, start: int = 0, own: bool = False) -> protocol.TapeLines:
        """A page of the tape, from this line number on; lines about this client only with `own`."""
        ...

    def sends_repeats(self, detector: HotPathDetector) -> None:
        """Report that this detector processes the stream before it is sent, so that the worker needs none."""
        ...

    def before_close(self) -> None:
        """Report that the client is about to close, and that no reads follow."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...

    def before_fork(self) -> None:
        """Prepare for a fork of this process."""
        ...

    def after_fork(self) -> bool:
        """In a forked child: whether this connection cannot be used there."""
        ...
