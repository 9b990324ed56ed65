"""Receive buffers: the bytes of an exchange arrive in pieces, each of which is used when it arrives."""

from collections.abc import Callable
from typing import NamedTuple

from gt.errors import WorkerError


class Piece(NamedTuple):
    """A part of the bytes that one worker sends another for an exchange, or the error that it sends
    instead."""

    error: str | None
    data: memoryview
    offset: int
    last: bool


class ReceiveBuffer:
    """Receives the bytes of one sender, in order, and passes them on as they arrive."""

    def __init__(self, size: int, use: Callable[[memoryview], None]) -> None:
        self._left = size
        self._offset = 0
        self._use = use
        """Called with the bytes of each piece."""
        self.done = False

    def add(self, piece: Piece, sender: str) -> None:
        """Use the next piece. Raises WorkerError if it is an error, or not the expected one."""
        if piece.error is not None:
            raise WorkerError(piece.error)
        size = len(piece.data)
        if piece.offset != self._offset or size > self._left or (piece.last and size != self._left):
            raise WorkerError(f"some of the bytes that {sender} sent were lost")
        self._offset += size
        self._left -= size
        self.done = piece.last
        if size:
            self._use(piece.data)
