"""Runs all programs of a grid: chunk by chunk, each chunk's programs at once.

Programs of a grid have no order, so chunks may be of any size and lanes that cannot go on together may be run
apart. A chunk that has to be run again is undone first; the chunks before it stand.
"""

import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from triton_viz.core.columns import Programs
from triton_viz.core.grid.lanes import Diverged, RunOneByOne

FIRST_LANES = 256
"""The size of the first chunk, before anything is known of a kernel's blocks."""
BYTES_PER_VALUE = 1 << 20
"""How large a chunk's largest value should be: it, and a few like it, should stay in the cache."""
MOST_LANES = 1 << 14
_PATIENCE = 1.0
"""Seconds after which a launch shows how far it is."""


class Machine(Protocol):
    """What runs a chunk on one thread."""

    ordered: bool
    on_ordered: Callable[[], None]
    """Called when a program comes to an op whose result depends on the order of programs."""

    @property
    def bytes_per_lane(self) -> int:
        """How large the largest value was, for one program."""
        ...

    def enter(self) -> None:
        """Make it the current thread's."""
        ...

    def begin(self, order: np.ndarray, undoable: bool) -> Programs:
        """Prepare for the programs with these places in the grid."""
        ...

    def run(self) -> None:
        """Run the kernel for them."""
        ...

    def undo(self) -> None:
        """Take back every write since `begin`."""
        ...


def run_grid(
    total: int,
    make_machine: Callable[[], Machine],
    began: Callable[[Programs], None],
    discarded: Callable[[], None],
    *,
    vectorized: bool = True,
    undoable: bool = True,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Run programs 0 to `total`. `began` hears of each chunk, `discarded` of one that is to be run again.

    A chunk of one program is never run again. With several threads, chunks run side by side; one that comes
    to an atomic waits until all before it are done, so that the result is the same as without threads.
    """
    machine = make_machine()
    run = _Chunks(machine, began, discarded, undoable and vectorized, progress)
    if threads > 1 and total > 1:
        size = FIRST_LANES if vectorized else 1
        chunks = [np.arange(s, min(s + size, total), dtype=np.int64) for s in range(0, total, size)]
        _on_threads(chunks, run.on, make_machine, threads)
        return
    machine.enter()
    start, lanes = 0, min(total, FIRST_LANES) if vectorized else 1
    while start < total:
        run.chunk(np.arange(start, min(start + lanes, total), dtype=np.int64))
        start += lanes
        if vectorized:
            lanes = _lanes_for(machine.bytes_per_lane)


def _lanes_for(bytes_per_lane: int) -> int:
    return min(MOST_LANES, max(16, BYTES_PER_VALUE // max(bytes_per_lane, 1)))


class _Chunks:
    """Runs chunks on one machine."""

    def __init__(
        self,
        machine: Machine,
        began: Callable[[Programs], None],
        discarded: Callable[[], None],
        undoable: bool,
        progress: Callable[[int], None],
    ):
        self._machine, self._began, self._discarded = machine, began, discarded
        self._undoable, self._progress = undoable, progress

    def on(self, machine: Machine) -> "_Chunks":
        """The same on another machine."""
        return _Chunks(machine, self._began, self._discarded, self._undoable, self._progress)

    def chunk(self, order: np.ndarray) -> None:
        """Run these programs; together if that can be, otherwise in groups or one by one."""
        machine = self._machine
        self._began(machine.begin(order, self._undoable and len(order) > 1))
        try:
            machine.run()
        except Diverged as split:
            if len(order) == 1:
                raise
            self._undo()
            # An atomic's result tells in which order programs came: then that order has to be kept.
            groups = split.groups if not machine.ordered else [[lane] for lane in range(len(order))]
            for group in groups:
                self.chunk(order[group])
            return
        except RunOneByOne:
            if len(order) == 1:
                raise
            self._undo()
            for place in range(len(order)):
                self.chunk(order[place : place + 1])
            return
        self._progress(len(order))

    def _undo(self) -> None:
        self._machine.undo()
        self._discarded()


def _on_threads(
    chunks: list[np.ndarray],
    runner: Callable[[Machine], "_Chunks"],
    make_machine: Callable[[], Machine],
    threads: int,
) -> None:
    """Run chunks on several threads. Of several that fail, the first one's error is raised."""
    turns = _Turns(len(chunks))

    def work() -> None:
        machine = make_machine()
        machine.enter()
        run = runner(machine)
        while (number := turns.take()) is not None:
            machine.on_ordered = functools.partial(turns.wait, number)
            try:
                run.chunk(chunks[number])
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                turns.failed[number] = error
            finally:
                turns.done(number)

    with ThreadPoolExecutor(threads, thread_name_prefix="triton_viz-sm") as pool:
        jobs = [pool.submit(work) for _ in range(threads)]
        try:
            for job in jobs:
                job.result()
        except BaseException as error:  # the user's Ctrl-C: what runs may finish, nothing else begins
            turns.failed[-1] = error
            raise
    if turns.failed:
        raise turns.failed[min(turns.failed)]


class _Turns:
    """Gives out chunks in order, and lets one wait until those before it are done."""

    def __init__(self, count: int):
        self._changed = threading.Condition()
        self._left = iter(range(count))
        self._running: set[int] = set()
        self.failed: dict[int, BaseException] = {}
        """Chunks that raised. None after them begins."""

    def take(self) -> int | None:
        """The next chunk, if there is one."""
        with self._changed:
            number = None if self.failed else next(self._left, None)
            if number is not None:
                self._running.add(number)
            return number

    def wait(self, number: int) -> None:
        """Return when all chunks before this one are done; raise if one of them failed."""
        with self._changed:
            self._changed.wait_for(lambda: min(self._running) == number)
            if any(before < number for before in self.failed):
                raise RuntimeError("a program before this one failed")

    def done(self, number: int) -> None:
        """A chunk is done, or has failed."""
        with self._changed:
            self._running.discard(number)
            self._changed.notify_all()


class Progress:
    """A bar on the terminal, once a launch has taken a while: how many programs are done, and how fast."""

    def __init__(self, kernel: str, total: int, visible: bool):
        self._kernel, self._total = kernel, total
        self._begin = time.monotonic() if visible else None
        self._bar: Any = None
        self._task: Any = None
        self._done = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int) -> None:
        """So many more programs are done."""
        self._done += done
        if self._begin is None:
            return
        if self._bar is None and time.monotonic() - self._begin > _PATIENCE:
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
