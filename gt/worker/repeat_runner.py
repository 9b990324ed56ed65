"""Runs repeats on a worker: compiled if their sequence is compiled, else op by op; long ones in the
background.

A compiled call that takes longer than `background_seconds` runs on a background thread, so that the worker
can receive and execute instructions that do not depend on it. At most two calls are queued there.
"""

import functools
import time
from collections import deque
from typing import TYPE_CHECKING

from gt.stream.repeats import Repeat
from gt.transport.protocol import Failed, Fetched
from gt.worker.client_state import ClientState
from gt.worker.compile.background import Background
from gt.worker.compile.eager_repeat import EagerRepeats
from gt.worker.compile.hotpaths import Call, HotPaths

if TYPE_CHECKING:
    from gt.worker.worker import Worker

BACKGROUND_SECONDS_EMBEDDED = 1e-4
BACKGROUND_SECONDS = 1e-3
"""Calls that take at least this many seconds run in the background: in a worker inside the user's program,
which does other work meanwhile, and in a worker process."""


class RepeatRunner:
    """Runs the repeats of all clients of one worker, in order."""

    def __init__(self, worker: "Worker", embedded: bool) -> None:
        self._worker = worker
        self.background_seconds = BACKGROUND_SECONDS_EMBEDDED if embedded else BACKGROUND_SECONDS
        """Calls that take at least this many seconds run in the background."""
        self._shares_process = embedded
        self.running: deque[tuple[ClientState, Call]] = deque()
        """The calls that run in the background. Instructions that may depend on them wait for `finish`."""
        self.waited = 0.0
        """Seconds spent waiting for background calls since `reset_times`."""
        self.expected = 0.0
        """Seconds that the calls started since `reset_times` are expected to take."""

    @functools.cached_property
    def hot_paths(self) -> HotPaths:
        """The compiled code of sequences."""
        return HotPaths(self._worker.engine)

    @functools.cached_property
    def _eager(self) -> EagerRepeats:
        """Runs repeats whose sequence is not compiled."""
        return EagerRepeats(self._worker.engine)

    @functools.cached_property
    def _background(self) -> Background:
        """The background thread."""
        return Background(self._worker.engine.threads)

    def reset_times(self) -> None:
        """Reset the measured times. Called before each batch."""
        self.waited = self.expected = 0.0

    def run(
        self, state: ClientState, repeat: Repeat, failed: list[Failed], data: list[Fetched], limited: bool
    ) -> None:
        """Execute a repeat. With `limited`, memory is checked op by op, so nothing runs in the background."""
        call = self._following(state, repeat) if self.running and not limited else None
        if call is None:
            self.finish()
            if self._worker.compiles:
                call = self.hot_paths.ready(repeat, state.values, self._worker.limit)
        if call is None:
            self._run_eagerly(state, repeat, failed, data)
        elif not limited and call.compiled.best > self.background_seconds:
            self._start(state, call)
        else:
            call.run(alone=not self._shares_process)
            self._complete(state, call, failed, data)

    def free_after(self, tensor: int) -> None:
        """Free a tensor when the last background call, which may read it, has ended."""
        self.running[-1][1].freed.append(tensor)

    def end_compiler(self) -> None:
        """End the compiler's process. It is started again when a client needs it."""
        if "hot_paths" in self.__dict__:
            self.hot_paths.compiler.end()

    def finish(self) -> None:
        """Wait for all background calls."""
        while self.running:
            self._finish_first()

    def _start(self, state: ClientState, call: Call) -> None:
        """Start a call in the background, after those that run there."""
        call.start(self._background, self.running[-1][1] if self.running else None)
        self.running.append((state, call))
        self.expected += call.expected

    def _following(self, state: ClientState, repeat: Repeat) -> Call | None:
        """A call that runs a repeat directly after the last background call; None if that is impossible."""
        while len(self.running) > 1:
            self._finish_first()
        if not self.running:
            return None
        call = self.hot_paths.follow(repeat, state.values, self.running[-1][1])
        return call if call is not None and call.compiled.best > self.background_seconds else None

    def _run_eagerly(
        self, state: ClientState, repeat: Repeat, failed: list[Failed], data: list[Fetched]
    ) -> None:
        start = time.perf_counter()
        checked = self._worker.limit_now() is not None
        left = repeat.expanded() if checked else self._eager.run(repeat, state.values)
        if left:
            self._worker.execute_each(state, left, failed, data)
        elif state.failures:
            for tensor in repeat.freed:
                state.failures.pop(tensor, None)
        if self._worker.compiles:
            self.hot_paths.ran(time.perf_counter() - start)

    def _complete(self, state: ClientState, call: Call, failed: list[Failed], data: list[Fetched]) -> None:
        """Store a call's results; if it failed, run the repeat op by op instead."""
        values, failures = state.values, state.failures
        if not self.hot_paths.complete(call, values):
            self._run_eagerly(state, call.repeat, failed, data)
        for tensor in call.freed:
            values.pop(tensor, None)
            if failures:
                failures.pop(tensor, None)

    def _finish_first(self) -> None:
        """Wait for the first background call; if it failed, for the others too, which were not started."""
        start = time.perf_counter()
        ended = []
        while self.running and (not ended or ended[0][1].error is not None):
            ended.append(self.running.popleft())
            ended[-1][1].wait(self._background)
        self.waited += time.perf_counter() - start
        for state, call in ended:
            self._complete(state, call, [], [])
