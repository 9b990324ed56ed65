"""Loops over lanes: each lane has its own number of iterations, and all lanes run one iteration together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

from triton_viz.errors import KernelError
from triton_viz.executor.lanes import Diverged, RunLater, RunOneByOne, groups_of

if TYPE_CHECKING:
    from triton_viz.dsls.triton.control_flow.lane_flow import Flow

SPINS_ALONE = 100_000
"""After this number of iterations without a write, a single program counts as waiting forever."""
SPINS_TOGETHER = 1_000
"""After this number of iterations without a write, lanes may be waiting for each other."""

_CONDITION = getattr(tl, "condition", None)  # Triton 3.7 has none


class LaneRange:
    """`range` with tensors among its bounds: each lane has its own start and number of iterations."""

    def __init__(self, flow: "Flow", start: Any, stop: Any, step: Any):
        self.flow = flow
        types, numbers = zip(*(self._bound(bound) for bound in (start, stop, step)), strict=True)
        promote = flow.semantic.integer_promote_impl
        self.dtype = promote(promote(types[0], types[1]), types[2])
        prefix = "int" if self.dtype.is_int_signed() else "uint"
        self.np_dtype = np.dtype(f"{prefix}{max(8, self.dtype.primitive_bitwidth)}")
        first, last, by = numbers
        active = flow.lanes.active
        if active is not None and len(by) > 1:
            by = np.where(active, by, 1)  # lanes that are not active may hold anything
        if not by.all():
            raise ValueError("a range's step must not be zero")
        self.start, self.step = first, by
        counts = np.maximum(0, -((first - last) // by))
        if len(counts) > 1 and active is not None:
            counts = np.where(active, counts, 0)
        self.length = int(counts.max())
        """The most iterations of any lane."""
        wanted = counts if active is None or len(counts) == 1 else counts[active]
        self.counts = None if (wanted == self.length).all() else counts
        """The iterations of each lane, if they differ."""

    def _bound(self, bound: Any) -> tuple[Any, np.ndarray]:
        """A bound's type, and its number in each lane."""
        if isinstance(bound, int) and -(2**31) <= bound < 2**31:
            return tl.int32, np.array([bound], np.int64)
        bound = self.flow.tensor(bound)
        if not isinstance(bound, tl.tensor) or not bound.dtype.is_int():
            given = bound.dtype if isinstance(bound, tl.tensor) else type(bound).__name__
            raise TypeError(f"the bounds of a range must be integers, not {given}")
        return bound.dtype, self.flow.per_lane(bound).astype(np.int64)

    def __len__(self) -> int:
        return self.length

    def at(self, index: int) -> tl.tensor:
        """The loop variable."""
        numbers = (self.start + index * self.step).astype(self.np_dtype)
        return self.flow.wrap(self.flow.make(numbers, self.dtype), self.dtype)

    def __iter__(self) -> Iterator[tl.tensor]:
        # Reached outside of a `for` statement, as in a comprehension, which runs for all lanes alike.
        if self.counts is not None:
            groups = groups_of(self.counts, self.flow.lanes, self.flow.began)
            raise Diverged(groups, "a range has more iterations for some programs than for others")
        return map(self.at, range(self.length))


class Loop:
    """A loop that is running. Its lanes are an entry of the flow's `regions`, so that leaving changes it.

    `regions[at - 1]` has the lanes that continue after the loop, `regions[at]` those still inside.
    """

    __slots__ = ("at", "began_waits", "broke", "flow", "index", "items", "line", "spins", "writes")

    def __init__(self, flow: "Flow", line: int, items: Any = None):
        self.flow, self.line, self.items = flow, line, items
        self.index = -1
        self.broke: np.ndarray | None = None
        self.spins, self.writes, self.began_waits = 0, flow.writes, flow.waits
        active = flow.lanes.active
        flow.regions += (active, active)
        self.at = len(flow.regions) - 1
        flow.loops.append(self)
        if flow.before_loop:
            count = len(items) if hasattr(items, "__len__") else None
            for callback in flow.before_loop:
                callback(line, count)

    def __iter__(self) -> Iterator[Any]:
        flow, regions, at, items = self.flow, self.flow.regions, self.at, self.items
        if isinstance(items, LaneRange) and items.counts is not None:
            items = self._unequal(items, items.counts)
        for self.index, item in enumerate(items):
            if not (flow.alive and flow.lanes.active is regions[at]) and not self._resume():
                return
            if self.broke is not None and flow.waits != self.began_waits:
                self._may_wait()
            if flow.loop_iteration:
                self._announce()
            yield item

    def _unequal(self, items: LaneRange, counts: np.ndarray) -> Iterator[Any]:
        """The loop variables. Lanes that have run all of their iterations leave the loop."""
        regions, at = self.flow.regions, self.at
        ends = set(counts.tolist() if regions[at] is None else counts[regions[at]].tolist())
        for index in range(items.length):
            if index in ends:
                inside = regions[at]
                regions[at] = counts > index if inside is None else inside & (counts > index)
            yield items.at(index)

    def _resume(self) -> bool:
        """Activate the lanes that are still inside. False if there are none."""
        flow = self.flow
        flow.set_active(flow.regions[self.at])
        return flow.alive

    def _announce(self) -> None:
        for callback in self.flow.loop_iteration:
            callback(self.line, self.index)

    def next(self) -> bool:
        """Begin an iteration of a `while` loop, before its condition is evaluated."""
        self.index += 1
        flow = self.flow
        return (flow.alive and flow.lanes.active is flow.regions[self.at]) or self._resume()

    def holds(self, condition: Any) -> bool:
        """Whether a `while` loop continues for any lane. Lanes whose condition is false leave it."""
        if _CONDITION is not None and isinstance(condition, _CONDITION):
            condition = condition.condition
        going = self._stay(condition)
        if going:
            if self.flow.waits != self.began_waits:
                self._may_wait()
            if self.flow.loop_iteration:
                self._announce()
        return going

    def _stay(self, condition: Any) -> bool:
        flow = self.flow
        if not isinstance(condition, tl.tensor):
            return bool(condition)
        holds = flow.per_lane(condition).astype(bool, copy=False)
        if len(holds) == 1:
            return bool(holds[0])
        inside = flow.regions[self.at]
        stays = holds if inside is None else holds & inside
        if not stays.any():
            return False
        if np.count_nonzero(stays) != (flow.lanes.count if inside is None else np.count_nonzero(inside)):
            flow.regions[self.at] = stays
            flow.set_active(stays)
        return True

    def _may_wait(self) -> None:
        """Decide whether programs wait in this loop, in which an atomic or a volatile load ran."""
        flow = self.flow
        where = f"the loop in line {self.line}"
        if flow.regions[self.at] is not flow.regions[self.at - 1]:
            raise RunOneByOne(f"{where} ended for some programs while others may be waiting in it")
        if flow.writes != self.writes:
            self.writes, self.spins = flow.writes, 0
        self.spins += 1
        if flow.lanes.count > 1 and self.spins > SPINS_TOGETHER:
            raise RunOneByOne(f"all programs may be waiting in {where}")
        if flow.lanes.count == 1 and flow.others_may_help and self.spins > SPINS_TOGETHER:
            raise RunLater
        if self.spins > SPINS_ALONE:
            raise KernelError(
                f"{where} has run {self.spins - 1} times and nothing was written: this program waits for "
                "another that waits too, or for what no program does. Programs run one after the other here, "
                "so two cannot wait for each other."
            )

    def breaks(self) -> bool:
        """Remove the active lanes from the loop. True if none is left, so that Python may break."""
        flow = self.flow
        active = flow.lanes.active
        if active is None:
            self.broke = np.ones(flow.lanes.count, bool)
        else:
            self.broke = active if self.broke is None else self.broke | active
        if active is flow.regions[self.at]:
            return True
        flow.leave(self.at)
        return False

    def skips(self) -> bool:
        """Remove the active lanes from this iteration. True if none is left, so that Python may continue."""
        flow = self.flow
        if flow.lanes.active is flow.regions[self.at]:
            return True
        flow.leave(self.at + 1)
        return False

    def end(self) -> None:
        """Activate the lanes that entered the loop, except those that have returned."""
        flow = self.flow
        flow.loops.pop()
        entered = flow.regions[self.at - 1]
        del flow.regions[self.at - 1 :]
        if flow.lanes.active is not entered:
            flow.set_active(entered)
        self.announce_end()

    def announce_end(self) -> None:
        """Report that the loop is over."""
        for callback in self.flow.after_loop:
            callback(self.line)

    def finished(self) -> Any:
        """For the loop's `else`: a test which holds for the lanes that did not break."""
        if not self.flow.alive:
            return False
        return True if self.broke is None else self.flow.split(~self.broke)
