"""Ctrl-C: KeyboardInterrupt is raised only where it leaves a consistent state.

Python raises it between any two instructions. In the middle of sending a batch, instructions would be lost or
sent twice, and whatever the program does afterwards would fail: Ctrl-C in a notebook would cost all tensors.
So such sections run `with deferred:`, which raises KeyboardInterrupt at their end. A section that executes
ops inside the program may take long: there it is raised between two ops, in functions that are
`interruptible`.
"""

import inspect
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# The functions that Python's signal module wraps to convert numbers into enums, which takes longer than all
# else; each batch calls them three times.
_get_handler: Any = inspect.unwrap(signal.getsignal)
_set_handler: Any = inspect.unwrap(signal.signal)

_GT_FOLDER = str(Path(__file__).parent)
_ENGINE_FOLDER = str(Path(__file__).parent / "worker" / "engine")
_interruptible: set[CodeType] = set()


def interruptible(function: F) -> F:
    """Allow KeyboardInterrupt in this function and in engines that it calls, also inside of `deferred`."""
    _interruptible.add(function.__code__)
    return function


class _Deferred:
    """A section in which KeyboardInterrupt is deferred. It may be entered inside itself.

    Only the main thread has signals, so on other threads it does nothing.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._handler: Any = None
        """The program's own handler of Ctrl-C."""
        self._pressed: FrameType | None = None
        """Where the program was when Ctrl-C was pressed."""

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if not self._depth:
            handler = _get_handler(signal.SIGINT)
            if not callable(handler):
                return  # it is ignored, or ends the program
            self._handler = handler
            _set_handler(signal.SIGINT, self._note)
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        if not self._depth or threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth:
            return
        _set_handler(signal.SIGINT, self._handler)
        pressed, self._pressed = self._pressed, None
        if pressed is not None:
            self._handler(signal.SIGINT, pressed)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if _may_interrupt(frame):
            self._handler(number, frame)
        else:
            self._pressed = frame


def _may_interrupt(frame: FrameType | None) -> bool:
    """Whether the innermost function of this package, other than an engine's, is interruptible."""
    while frame is not None:
        if frame.f_code in _interruptible:
            return True
        file = frame.f_code.co_filename
        if file.startswith(_GT_FOLDER) and not file.startswith(_ENGINE_FOLDER):
            return False
        frame = frame.f_back
    return False


deferred = _Deferred()
"""Sections that Ctrl-C must not interrupt: `with deferred:`."""
