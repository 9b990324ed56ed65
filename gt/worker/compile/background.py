"""Runs compiled calls on a thread, so that the user's program can issue the next step meanwhile.

A call through ctypes releases the interpreter lock. The next call is queued before the current one has ended,
and may have results of that one as inputs: this thread inserts them, and goes on without the program.
"""

import os
import queue
import threading
import time

from gt.worker.compile.compiled_code import Invocation


class Background:
    """A thread that runs compiled calls in order. It lives as long as the process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        """The number of threads that a call may use."""
        self._process = 0

    def start(self, invocation: Invocation) -> None:
        """Queue a call. One with pending results must be queued before `wait` has returned for the call that
        makes them."""
        if self._process != os.getpid():  # a forked child does not have the thread
            self._begin()
        with self._lock:
            if invocation.before is not None and invocation.before is self._done:
                invocation.insert_pending()
            self._last = invocation
        self._calls.put(invocation)

    def wait(self) -> tuple[int, float]:
        """Wait for the oldest call; returns its return code and its duration in seconds."""
        return self._ended.get()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._calls: queue.SimpleQueue[Invocation] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._last: Invocation | None = None
        """The call that was queued last."""
        self._done: Invocation | None = None
        """The call that ended last."""
        threading.Thread(target=self._serve, name="gt-background", daemon=True).start()

    def _serve(self) -> None:
        invocation = self._calls.get()
        # A setting of each thread.
        if invocation.code.set_threads is not None:
            invocation.code.set_threads(self._threads)
        while True:
            start = time.perf_counter()
            invocation.run()
            seconds = time.perf_counter() - start
            # Before the call is reported: after that, its results belong to the caller.
            with self._lock:
                self._done, following = invocation, self._last
                if following is not None and following.before is invocation:
                    following.insert_pending()
            self._ended.put((invocation.ended, seconds))
            invocation = self._calls.get()
