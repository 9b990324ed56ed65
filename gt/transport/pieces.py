"""Receive buffers: the bytes of an exchange arrive in pieces, and each is used as it arrives."""

from collections.abc import Callable
from typing import NamedTuple

from gt.errors import WorkerError


class Piece(NamedTuple):
    """Some of the bytes that one worker sends another for an exchange, or why there are none."""

    error: str | None
    data: memoryview
    offset: int
    last: bool


class ReceiveBuffer:
    """Receives the bytes of one sender, in order, and passes them on as they arrive."""

    def __init__(self, size: int, land: Callable[[memoryview], None]) -> None:
        self._left = size
        self._at = 0
        self._land = land
        self.done = False

    def take(self, piece: Piece, sender: str) -> None:
        """Use what has arrived. Raises if it is an error, or not what was to come."""
        if piece.error is not None:
            raise WorkerError(piece.error)
        size = len(piece.data)
        if piece.offset != self._at or size > self._left or (piece.last and size != self._left):
            raise WorkerError(f"some of what {sender} sent was lost on the way")
        self._at += size
        self._left -= size
        self.done = piece.last
        if size:
            self._land(piece.data)
