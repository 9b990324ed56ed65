"""Runs all programs of a grid: chunk by chunk, each chunk's programs at once.

Programs of a grid have no order, so chunks may be of any size and lanes that cannot go on together may be run
apart. A chunk that has to be run again is undone first; the chunks before it stand.
"""

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


class NeedsOrder(Exception):
    """On several threads, a program came to an op whose result depends on the order of programs."""


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
    chosen: np.ndarray | None = None,
) -> None:
    """Run programs 0 to `total`. `began` hears of each chunk, `discarded` of one that is to be run again.

    With `chosen`, only the programs with these places in the grid are run, in this order. A chunk of one
    program is never run again. With several threads, chunks run side by side until one comes to an atomic;
    from there on all run in order, so that the result is the same as without threads.
    """
    machine = make_machine()
    run = _Chunks(machine, began, discarded, undoable and vectorized, progress)
    total = total if chosen is None else len(chosen)

    def places(start: int, lanes: int) -> np.ndarray:
        stop = min(start + lanes, total)
        return np.arange(start, stop, dtype=np.int64) if chosen is None else chosen[start:stop]

    if threads > 1 and total > 1:
        size = FIRST_LANES if vectorized else 1
        chunks = [places(start, size) for start in range(0, total, size)]
        left = _on_threads(chunks, make_machine, began, discarded, threads, progress)
        machine.enter()
        for order in left:
            run.chunk(order)
        return
    machine.enter()
    start, lanes = 0, min(total, FIRST_LANES) if vectorized else 1
    while start < total:
        run.chunk(places(start, lanes))
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
    make_machine: Callable[[], Machine],
    began: Callable[[Programs], None],
    discarded: Callable[[], None],
    threads: int,
    progress: Callable[[int], None],
) -> list[np.ndarray]:
    """Run chunks on several threads until order matters. The result is what is left, in order."""
    lock = threading.Lock()
    queue = iter(range(len(chunks)))
    left: list[int] = []
    failed: dict[int, BaseException] = {}
    stop = threading.Event()

    def work() -> None:
        machine = make_machine()
        machine.enter()
        machine.on_ordered = _refuse  # type: ignore[attr-defined]
        while not stop.is_set():
            with lock:
                number = next(queue, None)
            if number is None:
                return
            order = chunks[number]
            run = _Chunks(machine, began, discarded, True, progress)
            try:
                run.chunk(order)
            except NeedsOrder:
                machine.undo()
                discarded()
                with lock:
                    left.append(number)
                stop.set()
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                with lock:
                    failed[number] = error
                stop.set()

    with ThreadPoolExecutor(threads, thread_name_prefix="triton_viz-sm") as pool:
        for job in [pool.submit(work) for _ in range(threads)]:
            job.result()
    if failed:
        raise failed[min(failed)]
    return [chunks[number] for number in sorted([*left, *queue])]


def _refuse() -> None:
    raise NeedsOrder


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
