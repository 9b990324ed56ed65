"""Ctrl-C waits while something is half done.

Python raises KeyboardInterrupt between any two instructions, also in the middle of a `finally` that puts
things back. While interrupts are held, one that comes is kept, and delivered when they no longer are. What
takes long is let through in between:

    with held():
        patch()
        try:
            with let_through():
                run()
        finally:
            restore()

Only the main thread receives signals, so for others this does nothing.
"""

import signal
import threading
from types import FrameType
from typing import Any


class _Main:
    """The main thread's state."""

    depth = 0
    holding = False
    pending = False
    previous: Any = None
    """The handler that was there before ours."""


def _on_signal(number: int, frame: FrameType | None) -> None:
    if _Main.holding:
        _Main.pending = True
    else:
        _Main.previous(number, frame)


def _deliver() -> None:
    if _Main.pending and not _Main.holding:
        _Main.pending = False
        signal.raise_signal(signal.SIGINT)


class held:
    """Keeps interrupts while inside."""

    def __enter__(self) -> None:
        self._outer: bool | None = None
        if threading.current_thread() is not threading.main_thread():
            return
        if not _Main.depth:
            before = signal.getsignal(signal.SIGINT)
            if not callable(before):  # ignored, or not Python's to handle
                return
            # From here on nothing is raised until the end: first hold, then be the one who is asked.
            _Main.previous, _Main.pending, _Main.holding = before, False, True
            signal.signal(signal.SIGINT, _on_signal)
            self._outer = False
        else:
            self._outer, _Main.holding = _Main.holding, True
        _Main.depth += 1

    def __exit__(self, *error: object) -> None:
        if self._outer is None:
            return
        _Main.depth -= 1
        if not _Main.depth:
            signal.signal(signal.SIGINT, _Main.previous)
        _Main.holding = self._outer
        _deliver()


class let_through:
    """Delivers interrupts while inside, also one that was kept before."""

    def __enter__(self) -> None:
        self._outer: bool | None = None
        if threading.current_thread() is threading.main_thread():
            self._outer, _Main.holding = _Main.holding, False
            _deliver()

    def __exit__(self, *error: object) -> None:
        if self._outer is not None:
            _Main.holding = self._outer
