"""The race detector: collects the accesses of all programs, and reports pairs that race."""

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from triton_viz.clients.race_detector.order import Order, result_has_no_name
from triton_viz.clients.race_detector.race_issues import as_issues
from triton_viz.clients.race_detector.races import Race, races_in_order, races_without_order
from triton_viz.clients.race_detector.shadow import Shadow, are_disjoint
from triton_viz.clients.race_detector.touches import Touch, TouchKind, conflict
from triton_viz.clients.utils import here, kernel_call_path
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks
from triton_viz.core.data import Access, Atomic, Issue, Load, Op, Program, Site
from triton_viz.core.records.columns import Programs
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.base import Accessed
from triton_viz.executor.affine import Box

KEPT = 64 << 20
"""The most bytes of touches before they are merged into shadows."""
KEPT_WITH_ORDER = 1 << 30
"""The same limit for launches whose programs may wait for each other: shadows have no times."""


class RaceDetector(Client):
    """Finds elements that two programs access without an order, at least one writing, and not both
    atomically in the same width.

    The result is exact for the addresses of the launch, which are kept in compact form while the kernel runs.
    At the end, storages without writes and those with disjoint parts for each program are skipped; the others
    are compared element by element. Elements are bytes of storages, so that views and arguments that share
    memory are compared. Memory: 64 MiB of touches, and for each site that accesses such a storage 8 bytes per
    element (and the value, if it stores).
    """

    NAME: ClassVar[str] = "race_detector"
    vectorized: ClassVar[bool] = True
    finds_issues: ClassVar[bool] = True

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._issues: list[Issue] | None = []

    def pre_run_callback(self, fn: Callable) -> None:
        """Start over for a new launch."""
        self._kernel = fn
        self._issues = None
        self._grid: Program = (0, 0, 0)
        self._staged: dict[int, list[tuple[Touch, list[TensorInfo]]]] = {}
        """For each thread, the touches of its current programs, which may have to run again."""
        self._time = 0
        self._storages: dict[tuple[int, int], _Storage] = {}
        self._tensors: list[TensorInfo] = []
        self._kept = 0
        self._waits = False

    def post_run_callback(self, fn: Callable) -> None:
        """Does nothing."""

    def arg_callback(self, name: str, arg: Any) -> None:
        """Does nothing: accesses name their tensors."""

    def grid_callback(self, grid: Program) -> None:
        """Note the number of programs."""
        self._grid = grid

    def grid_idx_callback(self, grid_idx: Programs) -> None:
        """Commit the touches of this thread's last programs."""
        with self._lock:
            self._commit(threading.get_ident())

    def discard_callback(self) -> None:
        """Discard the touches of programs that will run again."""
        with self._lock:
            self._staged.pop(threading.get_ident(), None)

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """Collect accesses."""
        if issubclass(op_type, Access):
            return OpCallbacks(after_callback=functools.partial(self._access, op_type))
        return OpCallbacks()

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        """No callbacks: all iterations of a loop are one site."""
        return ForLoopCallbacks()

    def finalize(self) -> list[Issue]:
        """The races of this launch."""
        if self._issues is None:
            for thread in list(self._staged):
                self._commit(thread)
            self._issues = as_issues(self._races(), self._tensors, self._grid)
            self._storages = {}
        return self._issues

    def _access(
        self,
        op_type: type[Access],
        accessed: Accessed,
        values: Any = None,
        result: Any = None,
        operation: str | None = None,
    ) -> None:
        semantics = accessed.semantics
        if op_type is Load:
            kind = TouchKind.WAIT if "atomic" in semantics else TouchKind.READ
        elif op_type is Atomic:
            kind = TouchKind.UPDATE if "atomic" in semantics else TouchKind.LOCAL_UPDATE
        else:
            kind = TouchKind.SIGNAL if "atomic" in semantics else TouchKind.WRITE
        path = kernel_call_path(self._kernel)
        acquires = "acquire" in semantics and not (op_type is Atomic and result_has_no_name(path[-1]))
        stored = None
        if kind in (TouchKind.WRITE, TouchKind.SIGNAL):
            stored = accessed.to_memory(values)
        with self._lock:
            self._time += 1
            touch = Touch(
                kind=kind,
                path=path,
                programs=here().programs,
                pointers=accessed.pointers,
                mask=accessed.mask,
                width=accessed.width,
                time=self._time,
                values=stored,
                acquires=acquires,
                releases="release" in semantics,
            )
            self._staged.setdefault(threading.get_ident(), []).append((touch, accessed.tensors))

    def _commit(self, thread: int) -> None:
        """Add the touches of a thread's programs."""
        for touch, tensors in self._staged.pop(thread, ()):
            if len(tensors) > len(self._tensors):
                self._tensors = tensors
            self._waits |= touch.acquires
            for span, part in _by_storage(touch, tensors):
                storage = self._storages.setdefault(span, _Storage(*span))
                storage.add(part)
            self._kept += touch.nbytes
        if self._kept > (KEPT_WITH_ORDER if self._waits else KEPT):
            for storage in self._storages.values():
                storage.fold()
            self._kept = 0

    def _races(self) -> list[Race]:
        programs = int(np.prod(self._grid))
        order = None
        if self._waits:
            touches = [touch for storage in self._storages.values() for touch in storage.touches]
            order = Order(sorted(touches, key=lambda touch: touch.time))
        races = []
        for storage in self._storages.values():
            races += storage.races(programs, order)
        return races


class _Storage:
    """The accesses to one storage, as touches or as shadows."""

    def __init__(self, start: int, end: int):
        self._start, self._size = start, end - start
        self.touches: list[Touch] = []
        self._shadows: dict[tuple[tuple[Site, ...], TouchKind, int], Shadow] = {}
        self._granule = 8
        self._folded = False

    def add(self, touch: Touch) -> None:
        """Add a touch."""
        self.touches.append(touch)

    def fold(self) -> None:
        """Merge touches into shadows, to free their memory."""
        self._take(self.touches)
        self.touches = []
        self._folded = True

    def races(self, programs: int, order: Order | None) -> list[Race]:
        """The races in this storage."""
        accesses = {(each.kind, each.width): each for each in (*self.touches, *self._shadows.values())}
        if not any(conflict(one, other) for one in accesses.values() for other in accesses.values()):
            return []
        if not self._shadows and are_disjoint(self.touches, programs):
            return []
        self._take(self.touches)
        shadows = list(self._shadows.values())
        if order is None or self._folded:
            return races_without_order(shadows, self._start, decided=order is None)
        return races_in_order(shadows, self.touches, order, self._start)

    def _take(self, touches: list[Touch]) -> None:
        for touch in touches:
            granule = touch.alignment(self._start)
            if granule < self._granule:
                self._granule = granule
                for shadow in self._shadows.values():
                    shadow.refine(granule)
            key = (touch.path, touch.kind, touch.width)
            if key not in self._shadows:
                size = -(-self._size // 8) * 8 // self._granule
                self._shadows[key] = Shadow(touch.kind, touch.path, touch.width, size, self._granule)
            self._shadows[key].add(touch, self._start)


def _by_storage(touch: Touch, tensors: list[TensorInfo]) -> Iterator[tuple[tuple[int, int], Touch]]:
    """The storages that a touch accesses, each with the touch's part in it."""
    extent = touch.extent
    if extent is None:
        return
    low, high = extent
    for start, end in _spans(tuple(sorted({tensor.storage for tensor in tensors}))):
        if start <= low and high <= end:
            yield (start, end), touch
        elif low < end and high > start:  # one of several: a table of pointers
            mask = touch.mask.data() if isinstance(touch.mask, Box) else touch.mask
            here = (touch.pointers.data >= start) & (touch.pointers.data < end)
            part = dataclasses.replace(touch, mask=here if mask is None else here & mask)
            if part.extent is not None:
                yield (start, end), part


@functools.lru_cache(maxsize=8)
def _spans(storages: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The address ranges of storages in order, overlapping ones merged."""
    spans: list[tuple[int, int]] = []
    for start, end in storages:
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return tuple(spans)
