"""The machine of each thread, and the loop callbacks of machines: shared by all languages."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from triton_viz.errors import UnsupportedError

if TYPE_CHECKING:
    from triton_viz.core.client import ForLoopCallbacks

MachineT = TypeVar("MachineT")


class _Thread(threading.local):
    machine: Any = None
    launches: bool = False
    """Whether it is the thread that launched the kernel, not one of those that it started."""


class Running(Generic[MachineT]):
    """The machines of one language, at most one for each thread."""

    def __init__(self, outside: str):
        self._thread = _Thread()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)
        self._outside = outside
        """The error message for using the language outside a launch."""
        self.loop_callbacks: tuple[list[Callable], list[Callable], list[Callable]] = ([], [], [])
        """The callbacks that a new machine calls before a loop, in each iteration and after it."""

    def current(self) -> MachineT:
        """The machine of this thread."""
        machine = self._thread.machine
        if machine is None:
            raise UnsupportedError(self._outside)
        return machine

    def is_running(self) -> bool:
        """Whether this thread runs programs of a launch."""
        return self._thread.machine is not None

    def enter(self, machine: MachineT) -> None:
        """Set the machine of the current thread."""
        self._thread.machine = machine

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Restore this thread's machine at the end, for a launch inside of a client's callback."""
        before = self._thread.machine, self._thread.launches
        self._thread.launches = True
        try:
            yield
        finally:
            self._thread.machine, self._thread.launches = before

    def _after_fork(self) -> None:
        """In a process that a launch's other thread forked, there is no launch."""
        if not self._thread.launches:
            self._thread.machine = None

    @contextlib.contextmanager
    def patch_loops(self, callbacks: Sequence["ForLoopCallbacks"]) -> Iterator[None]:
        """While inside, new machines call these callbacks around loops."""
        outer = self.loop_callbacks
        self.loop_callbacks = (
            [c.before_loop_callback for c in callbacks if c.before_loop_callback],
            [c.loop_iter_callback for c in callbacks if c.loop_iter_callback],
            [c.after_loop_callback for c in callbacks if c.after_loop_callback],
        )
        try:
            yield
        finally:
            self.loop_callbacks = outer
