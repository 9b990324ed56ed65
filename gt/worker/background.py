"""A thread that runs long calls, so that the program it works for can go on meanwhile.

Python runs one thread at a time, but a compiled sequence is no Python: while it computes, the user's program
may issue the next one.
"""

import os
import queue
import threading
from collections.abc import Callable


class Background:
    """Runs one call at a time."""

    def __init__(self) -> None:
        self._process = 0
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._began: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()

    def start(self, call: Callable[[], None]) -> None:
        """Begin a call, which raises nothing. It holds the interpreter only until it computes."""
        if self._process != os.getpid():  # a forked child has no thread but its own
            self._process = os.getpid()
            self._calls, self._began, self._ended = (queue.SimpleQueue() for _ in range(3))
            threading.Thread(target=self._run, name="gt-background", daemon=True).start()
        self._calls.put(call)
        # The thread must have the interpreter once, to begin. Python would give it that only after 5 ms.
        self._began.get()

    def wait(self) -> None:
        """Wait for the end of the call."""
        self._ended.get()

    def _run(self) -> None:
        calls, began, ended = self._calls, self._began, self._ended
        while True:
            call = calls.get()
            began.put(None)
            call()
            ended.put(None)
            del call
