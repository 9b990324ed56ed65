"""Defers Ctrl-C while patches are made or undone.

Python raises KeyboardInterrupt between any two instructions, also in the middle of a `finally` that restores
attributes. `held` defers an interrupt to its end; `let_through` delivers interrupts during the long-running
part:

    with held():
        patch()
        try:
            with let_through():
                run()
        finally:
            restore()

Only the main thread receives signals. On other threads, or if SIGINT has no Python handler, both do nothing.
"""

import signal
import sys
import threading
from types import FrameType
from typing import Any, ClassVar


class held:
    """Defers interrupts while inside."""

    handler: Any = None
    """The handler to restore."""
    pending = False
    _outer: "held | None" = None
    innermost: "ClassVar[held | None]" = None
    """The one whose handler is set now. Only the main thread changes it."""

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            signal.signal(signal.SIGINT, self.keep)
            self.handler, self._outer, held.innermost = handler, held.innermost, self

    def keep(self, number: int, frame: FrameType | None) -> None:
        """The handler while interrupts are deferred."""
        self.pending = True

    def __exit__(self, *error: object) -> None:
        if self.handler is not None:
            held.innermost = self._outer
            signal.signal(signal.SIGINT, self.handler)
            if self.pending:
                signal.raise_signal(signal.SIGINT)


def forget_launches() -> None:
    """Deliver interrupts: in a forked process, where the thread that deferred them is not there."""
    while (one := held.innermost) is not None:
        held.innermost = one._outer
        signal.signal(signal.SIGINT, one.handler)


class let_through:
    """Delivers interrupts while inside, also one that was deferred before."""

    def __enter__(self) -> None:
        on_main = threading.current_thread() is threading.main_thread()
        self._held = held.innermost if on_main else None
        if self._held is not None:
            if self._held.pending:  # still deferred: the `finally` around this must not be interrupted again
                self._held.pending = False
                self._held.handler(signal.SIGINT, sys._getframe())
            held.innermost = None
            signal.signal(signal.SIGINT, self._held.handler)

    def __exit__(self, *error: object) -> None:
        if self._held is not None:
            held.innermost = self._held
            signal.signal(signal.SIGINT, self._held.keep)
