"""The profiler: counts the bytes, memory sectors and operations that a kernel needs on a GPU.

The kernel runs on the CPU. No time is measured.
"""

import inspect
import math
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from triton_viz.clients.profiler import sampling, work
from triton_viz.clients.profiler.compiled import compiled_of
from triton_viz.clients.profiler.devices import Device, find_device
from triton_viz.clients.profiler.kernel_profile import (
    Advice,
    Compiled,
    KernelProfile,
    KernelReport,
    Report,
    SiteProfile,
)
from triton_viz.clients.profiler.reporting import Launched, report_of
from triton_viz.clients.profiler.staging import Chunk, LoopTrips, PerLane
from triton_viz.clients.profiler.totals import LaunchTotals
from triton_viz.clients.skipping import skipped_load, skipped_store
from triton_viz.clients.utils import here, kernel_call_path, kernel_instruction
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks, tensors_in
from triton_viz.core.data import Atomic, Compute, Dot, Load, Op, Program, Record, Reduce, Scan, Site, Store
from triton_viz.core.patch import running_backend
from triton_viz.core.records.columns import Programs
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls import check_target, find_dsl
from triton_viz.dsls.base import Accessed

_MOST_STAGED = 1 << 25
"""The most bytes of staged accesses of a chunk, before they are committed."""


class Profiler(Client):
    """Counts the bytes, memory sectors and operations that a kernel needs on a GPU.

    Counts are exact, except those with an error or an `exact` field. With `sample` (a share such as 0.1, or a
    number of programs), a random subset of the programs runs, which depends on `seed` only. Results are
    scaled to the whole grid, and tensors hold the stores of these programs only. `skip_loads` and
    `skip_stores` count accesses without executing them: loaded values are zeros, so addresses and loops must
    not depend on them.

    `device` is the device of the roofline. With `target`, such as "cuda:90" or "hip:gfx942", the report has
    the compiled code for that target. With `show`, each launch is printed at its end.
    """

    NAME: ClassVar[str] = "profiler"
    vectorized: ClassVar[bool] = True

    def __init__(
        self,
        device: str | Device = "H100",
        sample: float | int | None = None,
        seed: int = 0,
        skip_loads: bool = False,
        skip_stores: bool = False,
        target: str | None = None,
        show: bool = False,
    ) -> None:
        if sample is not None:
            sampling.sample_size(sample, 1)  # raises here if it is invalid, not at the first launch
        if target is not None:
            check_target(target)
        self.device = find_device(device)
        self.target = target
        self._sample, self._seed, self._show = sample, seed, show
        self._skip_loads, self._skip_stores = skip_loads, skip_stores
        self._launches: list[KernelReport] = []
        self._compiled: dict[str, Compiled] = {}
        self._records: list[Record] | None = []
        self._lock = threading.RLock()

    # --- a launch ---

    def pre_run_callback(self, fn: Callable) -> None:
        """Start over for a new launch."""
        self._kernel = fn
        self._arguments: dict[str, Any] = {}
        self._tensors: list[TensorInfo] = []
        self._records = None
        self._totals = LaunchTotals((0, 0, 0))
        self._local = threading.local()
        self._open: list[Chunk] = []
        """The current or last chunk of each thread."""

    def arg_callback(self, name: str, arg: Any) -> None:
        """Note the names of sizes and constants for advice."""
        self._arguments[name] = arg
        self._tensors += [TensorInfo.of(path, tensor) for path, tensor in tensors_in(name, arg)]

    def grid_callback(self, grid: Program) -> None:
        """Allocate totals for the grid."""
        half = None
        chosen = self.choose_programs(grid)
        if chosen is not None:
            half = sampling.every_second(chosen, self._seed, math.prod(grid))
        self._totals = LaunchTotals(grid, half)

    def choose_programs(self, grid: Program) -> np.ndarray | None:
        """The sample of programs; None for all."""
        if self._sample is None or not math.prod(grid):
            return None
        return sampling.choose(self._sample, self._seed, math.prod(grid))

    def grid_idx_callback(self, grid_idx: Programs) -> None:
        """Commit this thread's previous chunk, and begin the next."""
        self._close()
        chunk = self._local.chunk = Chunk(grid_idx)
        with self._lock:
            self._open.append(chunk)

    def discard_callback(self) -> None:
        """Discard the counts of programs that will run again."""
        chunk, self._local.chunk = self._local.chunk, None
        with self._lock:
            self._open.remove(chunk)

    def post_run_callback(self, fn: Callable) -> None:
        """Commit the chunks that are still open."""
        with self._lock:
            for chunk in self._open:
                self._totals.commit(chunk)
            self._open.clear()

    def finalize(self) -> list[Record]:
        """The records of this launch: one for each line and tensor, one for each advice, and the profile."""
        if self._records is None:
            self._records = self._finish()
        return self._records

    def _close(self) -> None:
        chunk = getattr(self._local, "chunk", None)
        if chunk is not None:
            with self._lock:
                self._totals.commit(chunk)
                self._open.remove(chunk)
            self._local.chunk = None

    def _finish(self) -> list[Record]:
        totals = self._totals
        if not totals.programs:
            return []
        first_line = self._kernel.__code__.co_firstlineno
        launched = Launched(
            kernel=self._kernel,
            file=inspect.getfile(self._kernel),
            line=first_line,
            arguments=self._arguments,
            tensors=self._tensors,
            skipped=(*(["loads"] * self._skip_loads), *(["stores"] * self._skip_stores)),
            compiled=self._compiled.get(self._kernel.__name__),
        )
        report = report_of(totals, launched, self.device)
        self._launches.append(report)
        if self._show:
            _print(Report(launches=(report,)))
        whole_grid = Programs.all_of(totals.grid)
        kernel = (Site(launched.file, first_line, self._kernel.__name__),)
        records: list[Record] = [
            SiteProfile(programs=whole_grid, call_path=site.site, traffic=site) for site in report.sites
        ]
        for finding in report.findings:
            path = (Site(finding.file, finding.line, self._kernel.__name__),) if finding.line else kernel
            records.append(Advice(programs=whole_grid, call_path=path, finding=finding))
        return [*records, KernelProfile(programs=whole_grid, call_path=kernel, report=report)]

    # --- the compiler ---

    def pre_warmup_callback(self, jit_fn: Callable) -> bool:
        """Whether to compile the kernel."""
        return self.target is not None

    def warmup_target(self) -> str:
        """The profiler's `target`."""
        return super().warmup_target() if self.target is None else self.target

    def post_warmup_callback(self, jit_fn: Callable, compiled: Any) -> None:
        """Keep the compiled kernel, or the compiler's error."""
        code = getattr(inspect.unwrap(getattr(jit_fn, "fn", jit_fn)), "__code__", None)
        found = compiled_of(compiled, self.warmup_target(), code.co_filename if code else "")
        if found is not None:
            self._compiled[getattr(jit_fn, "__name__", "")] = found

    # --- results ---

    def report(self) -> Report:
        """All launches so far."""
        return Report(launches=tuple(self._launches))

    def print_report(self) -> None:
        """Print all launches so far as tables."""
        _print(self.report())

    def clear(self) -> None:
        """Forget all launches."""
        self._launches.clear()

    # --- ops ---

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """Count accesses and arithmetic after each op."""
        if op_type is Load:
            overrider = skipped_load if self._skip_loads else None
            return OpCallbacks(after_callback=self._access("load"), op_overrider=overrider)
        if op_type is Store:
            overrider = skipped_store if self._skip_stores else None
            return OpCallbacks(after_callback=self._access("store"), op_overrider=overrider)
        if op_type is Atomic:
            return OpCallbacks(after_callback=self._access("atomic"))
        if op_type is Compute:
            self._operations = find_dsl(running_backend()).arithmetic
            return OpCallbacks(after_callback=self._compute, only=self._operations.keys())
        if op_type is Dot:
            return OpCallbacks(after_callback=self._dot)
        if op_type in (Reduce, Scan):
            return OpCallbacks(before_callback=self._begin_combining, after_callback=self._combined)
        return OpCallbacks()

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        """Count iterations."""
        return ForLoopCallbacks(self._before_loop, self._loop_iteration, self._after_loop)

    def _access(self, kind: str) -> Callable[..., None]:
        def note(accessed: Accessed, **_: Any) -> None:
            chunk: Chunk = self._local.chunk
            active = here().programs.active
            path, instruction = kernel_instruction(self._kernel)
            chunk.accesses.setdefault(((path, kind), instruction), []).append((accessed, active))
            pointers = accessed.pointers
            each = 24 if pointers.numbers is not None else 16 * math.prod(pointers.shape)
            if isinstance(accessed.mask, np.ndarray):
                each += accessed.mask.size // len(accessed.mask)
            chunk.bytes_staged += each * chunk.lanes
            if chunk.bytes_staged > _MOST_STAGED:
                with self._lock:
                    self._totals.commit(chunk, finished=False)

        return note

    def _compute(self, name: str, result: Any = None, **_: Any) -> None:
        amount = self._operations[name] * math.prod(result.shape)
        chunk: Chunk = self._local.chunk
        precision, floating = work.element_type(result.dtype)
        if not floating:
            chunk.integers.add(amount, here().programs.active, chunk.lanes)
            return
        if chunk.combining is not None:
            chunk.combining[precision] = chunk.combining.get(precision, 0) + amount
            return
        if result.lanes > chunk.lanes:  # a function of scalars, called for each element of a block
            amount = amount * result.lanes // chunk.lanes
        self._count("vector", precision, amount)

    def _dot(self, left: Any, right: Any, dtype: str, **_: Any) -> None:
        precision = work.precision(dtype)
        self._count("dot", precision, work.product(left, right, precision))

    def _begin_combining(self, **_: Any) -> None:
        self._local.chunk.combining = {}

    def _combined(self, input: Any, axis: int | None, result: Any, combine: str, **_: Any) -> None:
        chunk: Chunk = self._local.chunk
        inner, chunk.combining = chunk.combining, None
        pairs, rounds = work.combinations(input, axis)
        each = len(combine.split(", "))  # an NKI scan may combine by several functions: "multiply, add"
        # A reduction of several values at once, and a scan in Triton, has several results.
        first = result[0] if isinstance(result, tuple | list) else result
        precision, floating = work.element_type(first.dtype)
        if not inner:
            if floating:
                self._count("vector", precision, each * pairs)
            else:
                chunk.integers.add(each * pairs, here().programs.active, chunk.lanes)
        for precision, amount in (inner or {}).items():
            self._count("vector", precision, amount * pairs // rounds)

    def _count(self, unit: str, precision: str, amount: int) -> None:
        chunk: Chunk = self._local.chunk
        key = kernel_call_path(self._kernel), unit, precision
        total = chunk.work.get(key)
        if total is None:
            total = chunk.work[key] = PerLane()
        total.add(amount, here().programs.active, chunk.lanes)

    # --- loops ---

    def _before_loop(self, line: int, count: int | None) -> None:
        chunk: Chunk = self._local.chunk
        path = kernel_call_path(self._kernel)
        key = path[-1].file if path else "", line
        trips = chunk.loops.get(key)
        if trips is None:
            trips = chunk.loops[key] = LoopTrips(count is not None)
        trips.entries.add(1, here().programs.active, chunk.lanes)
        chunk.inside.append(trips)

    def _loop_iteration(self, line: int, index: int) -> None:
        chunk: Chunk = self._local.chunk
        chunk.inside[-1].trips.add(1, here().programs.active, chunk.lanes)

    def _after_loop(self, line: int) -> None:
        self._local.chunk.inside.pop()


def _print(report: Report) -> None:
    from triton_viz.clients.profiler.printing import print_report  # here: it loads rich

    print_report(report)
