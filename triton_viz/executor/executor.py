"""Runs all programs of a grid in chunks. The programs of a chunk run together.

Programs of a grid have no order, so chunks may have any size, and lanes that cannot continue together may run
separately. Before a chunk runs again, its writes are undone; those of earlier chunks remain.
"""

import ctypes
import functools
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from triton_viz.core.records.columns import Programs
from triton_viz.executor.lanes import Diverged, RunLater, RunOneByOne

FIRST_LANES = 256
"""The size of the first chunk, when the sizes of the kernel's blocks are not known yet."""
BYTES_PER_VALUE = 1 << 20
"""The target size of a chunk's largest value, in bytes: a few of that size should fit into the cache."""
MOST_LANES = 1 << 14
_PROGRESS_DELAY = 1.0
"""Seconds after which a launch shows a progress bar."""


class Machine(Protocol):
    """Runs a chunk on one thread."""

    ordered: bool
    """Whether the chunk has run an op whose result depends on the order of programs."""
    on_ordered: Callable[[], None]
    """Called before such an op."""

    @property
    def bytes_per_lane(self) -> int:
        """The size of the largest value of one program."""
        ...

    def enter(self) -> None:
        """Make it the machine of the current thread."""
        ...

    def begin(self, order: np.ndarray) -> Programs:
        """Prepare for the programs with these linear program ids."""
        ...

    def run(self) -> None:
        """Run the kernel for them."""
        ...

    def undo(self) -> None:
        """Undo every write since `begin`."""
        ...

    def may_wait(self, others_may_help: bool) -> None:
        """Set whether a program that waits for another raises `RunLater`; otherwise it raises an error."""
        ...


def run_grid(
    total: int,
    make_machine: Callable[[], Machine],
    began: Callable[[Programs], None],
    discarded: Callable[[], None],
    *,
    vectorized: bool = True,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
    chosen: np.ndarray | None = None,
) -> None:
    """Run `total` programs. Calls `began` with each chunk, and `discarded` when a chunk has to run again.

    With `chosen`, only the programs with these linear ids are run, in this order. A chunk of one
    program is run again only if it waited for a program after it. With several threads, chunks run side by
    side; one that reaches an atomic waits for all before it, so that the result is the same as without
    threads.
    """
    later: list[np.ndarray] = []
    total = total if chosen is None else len(chosen)

    def positions(start: int, lanes: int) -> np.ndarray:
        stop = min(start + lanes, total)
        return np.arange(start, stop, dtype=np.int64) if chosen is None else chosen[start:stop]

    def on_new_machine() -> tuple[Machine, _Chunks]:
        machine = make_machine()
        machine.enter()
        return machine, _Chunks(machine, began, discarded, later, progress)

    if threads > 1 and total > 1:
        _on_threads(total, positions, on_new_machine, FIRST_LANES if vectorized else 1, threads)
        if later:
            on_new_machine()[1].run_waiting()
        return
    machine, run = on_new_machine()
    start, lanes = 0, min(total, FIRST_LANES) if vectorized else 1
    while start < total:
        run.chunk(positions(start, lanes))
        start += lanes
        if vectorized:
            lanes = _lanes_for(machine.bytes_per_lane)
    run.run_waiting()


def _lanes_for(bytes_per_lane: int) -> int:
    return min(MOST_LANES, max(16, BYTES_PER_VALUE // max(bytes_per_lane, 1)))


class _Chunks:
    """Runs chunks on one machine."""

    def __init__(
        self,
        machine: Machine,
        began: Callable[[Programs], None],
        discarded: Callable[[], None],
        later: list[np.ndarray],
        progress: Callable[[int], None],
    ):
        self._machine, self._began, self._discarded = machine, began, discarded
        self._later, self._progress = later, progress
        machine.may_wait(others_may_help=True)

    def chunk(self, order: np.ndarray) -> None:
        """Run these programs together if possible, otherwise in groups or one by one."""
        machine = self._machine
        self._began(machine.begin(order))
        try:
            machine.run()
        except Diverged as split:
            if len(order) == 1:
                raise
            self._undo()
            # The results of atomics depend on the order of programs, so the order has to be kept.
            groups = split.groups if not machine.ordered else [[lane] for lane in range(len(order))]
            for group in groups:
                self.chunk(order[group])
            return
        except RunOneByOne:
            if len(order) == 1:
                raise
            self._undo()
            for position in range(len(order)):
                self.chunk(order[position : position + 1])
            return
        except RunLater:
            self._undo()
            self._later.append(order)
            return
        self._progress(len(order))

    def run_waiting(self) -> None:
        """Run the programs that waited for others, until none waits."""
        waiting, stuck = sorted(self._later, key=lambda order: order[0]), False
        while waiting:
            self._later.clear()
            # A program mostly waits for the one after it, so run the last one first.
            for order in waiting if stuck else waiting[::-1]:
                self.chunk(order)
            stuck = len(self._later) == len(waiting)
            self._machine.may_wait(others_may_help=not stuck)
            waiting = sorted(self._later, key=lambda order: order[0])

    def _undo(self) -> None:
        self._machine.undo()
        self._discarded()


def _on_threads(
    total: int,
    positions: Callable[[int, int], np.ndarray],
    on_new_machine: Callable[[], tuple[Machine, _Chunks]],
    size: int,
    threads: int,
) -> None:
    """Run chunks on several threads."""
    turns = _Turns(range(0, total, size))
    all_started = threading.Event()

    def work() -> None:
        # A callback may fork the process, and CPython cannot be forked while it starts another thread.
        all_started.wait()
        try:
            machine, run = on_new_machine()
            while (start := turns.take()) is not None:
                machine.on_ordered = functools.partial(turns.wait, start)
                try:
                    run.chunk(positions(start, size))
                except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                    turns.stop(start, error)
                turns.done(start)
        except _Stopped:
            pass
        except BaseException as error:  # noqa: BLE001
            turns.stop(error=error)
        finally:
            ended.append(threading.current_thread())
            ended_one.put(None)

    ended: list[threading.Thread] = []
    ended_one: queue.SimpleQueue[None] = queue.SimpleQueue()
    pool = [threading.Thread(target=work, name=f"triton_viz-sm{n}", daemon=True) for n in range(threads)]
    try:
        for thread in pool:
            thread.start()
        all_started.set()
        for _ in pool:
            ended_one.get()  # not `join`: an interrupted join may mark a running thread as ended
    except BaseException:  # KeyboardInterrupt
        turns.stop()
        all_started.set()
        _interrupt(pool, ended)
        for thread in pool:
            if thread.is_alive():  # it is about to end
                thread.join()
        raise
    for thread in pool:
        thread.join()
    if turns.errors:
        raise turns.errors[min(turns.errors)]


def _interrupt(pool: list[threading.Thread], ended: list[threading.Thread]) -> None:
    """Raise an exception in threads to end them, also in an endless loop."""
    for thread in pool:
        while thread.ident is not None and thread not in ended:
            ident = ctypes.c_ulong(thread.ident)
            if not ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_Stopped)):
                break
            time.sleep(0.02)


class _Stopped(BaseException):
    """Ends a thread because another chunk has failed, or because of KeyboardInterrupt."""


def _end_if_forked(process: int) -> None:
    """End this process, with a message, unless it is the one that started the threads of the launch.

    A client's callback has forked it, and has returned. Of all threads only the callback's is in the new
    process: no thread is left that could raise an error, or end the process.
    """
    if os.getpid() != process:
        print(
            "triton_viz: this process was forked in a callback of a launch with several threads "
            "(config.num_sms is more than 1), of which only the callback's is here: the launch cannot go on "
            "in it. Let the callback end the process (os._exit), as multiprocessing does, or set "
            "config.num_sms to 1.",
            file=sys.stderr,
        )
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(1)


class _Turns:
    """Hands out chunks in order. A chunk can wait until all chunks before it are done.

    All that a thread does with it ends a forked process: see `_end_if_forked`.
    """

    def __init__(self, starts: range):
        self._process = os.getpid()
        self._left = iter(starts)
        self._running: set[int] = set()
        self._changed = threading.Condition()
        self._stopped_at = math.inf
        self.errors: dict[int, BaseException] = {}

    def take(self) -> int | None:
        """Returns the next chunk; None after the last."""
        _end_if_forked(self._process)
        with self._changed:
            start = next(self._left, None) if self._stopped_at == math.inf else None
            if start is not None:
                self._running.add(start)
            return start

    def done(self, start: int) -> None:
        """Report the end of a chunk."""
        _end_if_forked(self._process)
        with self._changed:
            self._running.discard(start)
            self._changed.notify_all()

    def wait(self, start: int) -> None:
        """Wait until all chunks before this one are done."""
        _end_if_forked(self._process)
        with self._changed:
            while min(self._running) != start:
                if start > self._stopped_at:
                    raise _Stopped
                self._changed.wait()

    def stop(self, start: int = -1, error: BaseException | None = None) -> None:
        """Let no thread take another chunk; waiting threads stop, except those before the failed chunk."""
        _end_if_forked(self._process)
        with self._changed:
            self._stopped_at = min(self._stopped_at, start)
            if error is not None and not isinstance(error, _Stopped):
                self.errors[start] = error
            self._changed.notify_all()


class Progress:
    """A progress bar on the terminal, shown after a delay: how many programs are done, and how fast."""

    def __init__(self, kernel: str, total: int, visible: bool):
        self._kernel, self._total = kernel, total
        self._begin = time.monotonic() if visible else None
        self._bar: Any = None
        self._task: Any = None
        self._done = 0
        self._lock = threading.Lock()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int) -> None:
        """Report that `done` more programs are done. May be called from any thread."""
        if self._begin is None:
            return
        with self._lock:
            self._done += done
            if self._bar is None and time.monotonic() - self._begin > _PROGRESS_DELAY:
                self._bar, self._task = _bar(self._kernel, self._total)
            if self._bar is not None:
                rate = self._done / (time.monotonic() - self._begin)
                self._bar.update(self._task, completed=self._done, rate=f"{rate:,.0f} programs/s")


def _bar(kernel: str, total: int) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("programs"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(kernel, total=total, rate="")
    bar.start()
    return bar, task
