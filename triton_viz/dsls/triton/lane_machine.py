"""The machine: builder, language layer and control flow of one thread that runs programs of a launch."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl

from triton_viz.core.data import Program
from triton_viz.core.records.columns import Numbers, Programs
from triton_viz.dsls.base import Here
from triton_viz.dsls.running import Running
from triton_viz.dsls.triton import compat
from triton_viz.dsls.triton.control_flow.lane_flow import Flow
from triton_viz.dsls.triton.ops.lane_builder import LaneBuilder
from triton_viz.executor.lanes import Lanes
from triton_viz.executor.memory import Memory
from triton_viz.executor.value import Value

running = Running["Machine"](
    "triton.language works inside a kernel only, on the thread that runs it: launch it as kernel[grid](...)"
)
current, is_running = running.current, running.is_running


@contextlib.contextmanager
def using(machine: Any) -> Iterator[None]:
    """While inside, this thread uses another machine, with its own builder, semantic and flow."""
    with running.kept():
        running.enter(machine)
        yield


class LaneSemantic(compat.Semantic):
    """Triton's language layer, with our builder below it."""

    def multiple_of(self, x: Any, values: Any) -> Any:
        """A hint to the compiler."""
        return x

    max_contiguous = multiple_of
    max_constancy = multiple_of


class Machine:
    """Runs programs chunk by chunk, all programs of a chunk at once."""

    def __init__(
        self,
        memory: Memory,
        grid: Program,
        function: Any,
        arguments: inspect.BoundArguments,
        substitutes: dict[Any, Callable],
    ):
        self._function = function
        self._bound = arguments
        self.builder = LaneBuilder(memory)
        self.builder.grid = grid
        self.semantic = LaneSemantic(self.builder)
        self._substitutes = substitutes
        self.flow = self._new_flow(self.builder.lanes)
        self.flow.before_loop, self.flow.loop_iteration, self.flow.after_loop = running.loop_callbacks
        self._inner: list[Flow] = []
        self.builder.apply = self.apply
        self.programs = Programs(grid, Numbers(1))
        self.ordered = False
        """Whether the chunk ran an op whose result depends on the order of programs."""
        self.on_ordered: Callable[[], None] = lambda: None
        """Called before such an op."""

    def _new_flow(self, lanes: Lanes) -> Flow:
        return Flow(lanes, self.semantic, Value, self._substitutes)

    def enter(self) -> None:
        """Make this the machine of the current thread."""
        running.enter(self)
        self.builder.on_write = self.flow.note_write
        self.builder.on_waiting_op = self._on_waiting_op

    def _on_waiting_op(self) -> None:
        self.ordered = True
        self.on_ordered()
        self.flow.note_waiting_op()

    def begin(self, order: np.ndarray) -> Programs:
        """Prepare for the programs with these linear ids."""
        grid = self.builder.grid
        lanes = self.flow.lanes
        lanes.count, lanes.active = len(order), None
        self.builder.lanes = lanes
        self.builder.log = []
        self.ordered = False
        rest, z = np.divmod(order, grid[2])
        x, y = np.divmod(rest, grid[1])
        # A program id that is the same in all lanes has a lane axis of length one.
        self.builder.program_ids = [
            (ids[:1] if size == 1 or len(ids) == 1 else ids).astype(np.int32)
            for ids, size in zip((x, y, z), grid, strict=True)
        ]
        self.programs = Programs(grid, Numbers.of(order))
        return self.programs

    def run(self) -> None:
        """Run the kernel for the programs that were begun."""
        with np.errstate(all="ignore"):
            try:
                args, kwargs = self._arguments
                self.flow.run(self._function, *args, **kwargs)
            except Exception as error:
                error.program = self._failed(getattr(error, "lane", None))  # type: ignore[attr-defined]
                raise

    @functools.cached_property
    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self._bound.args, self._bound.kwargs

    def here(self) -> Here:
        """The kernel, the programs and the iterations of the op that is being executed."""
        active = self.flow.lanes.active
        programs = self.programs
        if active is not None:
            programs = Programs(programs.grid, programs.order, active.copy())
        return Here(getattr(self._function, "fn", self._function), programs, self.flow.iterations)

    @property
    def bytes_per_lane(self) -> int:
        """The size of the largest value that one program loaded, stored or computed by a dot."""
        return self.builder.bytes_per_lane

    def _failed(self, lane: int | None) -> Program:
        """The program of an error: that of the given lane, or else the first active one."""
        if lane is None or lane >= self.flow.lanes.count:  # a lane of `apply` is no program's
            lane = 0 if self.flow.ended is None else int(np.argmax(self.flow.ended))
        return self.builder.program(lane)

    def may_wait(self, others_may_help: bool) -> None:
        """Set whether a program that waits runs again later; otherwise it raises an error."""
        self.flow.others_may_help = others_may_help

    def undo(self) -> None:
        """Undo every write since `begin`."""
        for step in reversed(self.builder.log or []):
            step()
        self.builder.log = None

    def apply(self, function: Any, lanes: int, *columns: Value) -> Any:
        """Call a function of scalars for columns of arguments: one call for each lane."""
        outer = self.builder.lanes
        flow = self._inner.pop() if self._inner else self._new_flow(Lanes(1))
        flow.lanes.count, flow.lanes.active = lanes, None
        self.builder.lanes = flow.lanes
        try:
            return flow.run(function, *(tl.tensor(column, column.dtype) for column in columns))
        finally:
            self.builder.lanes = outer
            self._inner.append(flow)
