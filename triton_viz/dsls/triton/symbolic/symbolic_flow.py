"""Symbolic flow: control flow for symbolic program ids.

Like `lane_flow`, with conditions instead of lanes: *active* is the condition under which a program reaches
the current statement. Both branches of an `if` run, and assignments become choices.
"""

import sys
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton.language.core import base_value
from triton.runtime.jit import JITCallable, KernelInterface

from triton_viz.dsls.triton.compat import source_of
from triton_viz.dsls.triton.control_flow.lane_flow import Flow, Split
from triton_viz.dsls.triton.control_flow.rewrite import rewritten
from triton_viz.dsls.triton.symbolic.evaluate import atoms_of
from triton_viz.dsls.triton.symbolic.expression import FALSE, TRUE, both, given, number, opposite
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.nodes import Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_loops import SymbolicLoop
from triton_viz.dsls.triton.symbolic.symbolic_ops import Stopped
from triton_viz.dsls.triton.symbolic.symbolic_range import Key, Restart, SymbolicRange
from triton_viz.dsls.triton.symbolic.symbolic_rewrite import SymbolicRewriter
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, indices
from triton_viz.executor.lanes import Lanes

_CONDITION = getattr(tl, "condition", None)


class SymbolicFlow(Flow):
    """Runs rewritten kernels once, for all programs of a grid. A condition replaces the mask of lanes."""

    all_lanes = TRUE
    lane_range = SymbolicRange

    def __init__(self, semantic: Any, substitutes: dict[Any, Callable], modes: dict[Key, str]):
        super().__init__(Lanes(1), semantic, lambda *_: None, substitutes)
        self.modes = modes
        """For loops that have to be treated in one way: "unroll" or "summarize"."""
        self.muted = 0
        """The number of enclosing probing passes of loops, in which accesses are not noted."""
        self.loop_serial = 0
        self.lanes.active = TRUE  # type: ignore[assignment] - a condition in place of lanes
        self._entry: Cond = TRUE
        self._extra: tuple[Sum, ...] = ()

    @property
    def active(self) -> Cond:
        """Which programs reach the current statement."""
        return self.lanes.active  # type: ignore[return-value]

    @property
    def waiting(self) -> list[Any]:
        """`regions`, whose entries are conditions here."""
        return self.regions

    def run(self, fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
        """Call a kernel's function."""
        self._reset()
        self.lanes.active = TRUE  # type: ignore[assignment]
        return self._enter(self._rewritten(fn), *args, **kwargs)

    def counters(self, without: Any = None) -> tuple[Sum, ...]:
        """The counters of the enclosing loops, which distinguish their iterations."""
        loops: list[Any] = self.loops
        return (
            tuple(loop.counter for loop in loops if loop is not without and loop.counter.terms) + self._extra
        )

    def where(self) -> list[tuple[int, Sum]]:
        """The loops around the current statement: line and iteration."""
        return [(loop.line, loop.index) for loop in self.loops]  # type: ignore[misc]

    def inline(self, function: Any, shape: tuple[int, ...], *args: Any) -> Any:
        """Call a function of scalars for each element of a block."""
        outer, self._extra = self._extra, (*self._extra, *indices(shape))
        try:
            return self.call(function, *args)
        finally:
            self._extra = outer

    # --- active programs ---

    def set_active(self, active: Any) -> None:
        """Set the condition under which programs execute the following statements."""
        self.lanes.active = active
        self.alive = active is not FALSE

    def leave(self, start: int) -> None:
        """Remove the active programs from the regions from `start` on."""
        gone = opposite(self.active)
        known: dict[int, Cond] = {}
        regions: list[Any] = self.regions
        for position in range(start, len(regions)):
            before = regions[position]
            if id(before) not in known:
                known[id(before)] = both(before, gone)
            regions[position] = known[id(before)]
        self.set_active(FALSE)

    def test(self, condition: Any) -> "bool | Split":
        """Begin an `if`."""
        if not isinstance(condition, tl.tensor):
            return bool(condition)
        return self.split(self.scalar(condition).condition)

    def split(self, holds: Any) -> "bool | Split":
        """`test`, with the condition itself."""
        active = self.active
        taken = both(active, holds)
        if taken is FALSE:
            return False
        rest = both(active, opposite(holds))
        if rest is FALSE:
            return True
        self.regions.append(active)  # type: ignore[arg-type]
        self.set_active(taken)
        return Split(rest)  # type: ignore[arg-type]

    def chosen(self, split: "bool | Split", a: Any, b: Any) -> Any:
        """`a if c else b`, with the sides that were evaluated."""
        if not isinstance(split, Split):
            return a if split else b
        self.join()
        rest: Any = split.rest
        return self.blend(given(rest, self.active), b, a)

    def leaves(self, value: Any) -> bool:
        """Return from the call. True if no program is left in it."""
        base = self.frame.base
        if self._summarized() is None and (len(self.regions) == base or self.active is self.regions[base]):
            self.finish(value)
            return True
        self.finish(value)
        self.leave(base)
        return False

    def finish(self, *value: Any) -> Any:
        """End a call. Returns its result."""
        frame = self.frame
        if value and self.active is not FALSE:
            mask = given(self.active, self._entry)
            frame.value = self.blend(mask, value[0], frame.value) if frame.returned else value[0]
            frame.returned = True
        return frame.value

    def for_loop(self, line: int, items: Any) -> Any:
        """Begin a `for`."""
        return SymbolicLoop(self, (sys._getframe(1).f_code.co_filename, line), items)

    def while_loop(self, line: int) -> Any:
        """Begin a `while`."""
        return SymbolicLoop(self, (sys._getframe(1).f_code.co_filename, line))

    def _summarized(self) -> Any:
        """The innermost loop of this call that is run once for all iterations."""
        loops: list[Any] = self.loops
        return next((loop for loop in reversed(loops) if loop.at > self.frame.base and loop.summarized), None)

    def _relative(self) -> Cond:
        """The condition of an assignment, among the programs that may read the variable later."""
        base = self.frame.base
        loop = self._summarized()
        if loop is not None:
            known = self.regions[loop.at]
        else:
            known = self.regions[base] if len(self.regions) > base else self.active
        return given(self.active, known)  # type: ignore[arg-type]

    # --- values ---

    def merge(self, new: Any, old: Any) -> Any:
        """A value as an assignment stores it if other programs may keep the old value."""
        return self.keep(self.tensor(new), old)

    def keep(self, new: Any, old: Any) -> Any:
        """The new value for active programs, the old value for the others."""
        mask = self._relative()
        return new if mask is TRUE else self.blend(mask, new, old)

    def unmerged(self, value: Any) -> Any:
        """A value assigned to an attribute or element, which has no old value."""
        if self._relative() is not TRUE:
            raise Stopped("an attribute or an element is assigned by some programs only")
        return value

    def _select(self, mask: Cond, new: Any, old: Any) -> Any:
        a, b = self.tensor(new), self.tensor(old)
        if isinstance(a, tl.tensor) and isinstance(b, tl.tensor) and a.type == b.type:
            type_: Any = a.type
            test = Symbolic(mask, tl.int1, (), Origin("the branch taken"))
            if isinstance(a.handle, Symbolic) and isinstance(b.handle, Symbolic):
                return tl.tensor(self.semantic.builder.create_select(test, a.handle, b.handle), type_)
        return self._of_two_types(mask, a, b)

    def _of_two_types(self, mask: Cond, new: Any, old: Any) -> Any:
        """A variable that has one type for some programs and another for others.

        Triton compiles this only if the variable is not read after the branches join. Its value is unknown
        for programs that did not assign it.
        """
        if isinstance(new, tl.tensor) and isinstance(new.handle, Symbolic) and _is_plain_tensor(old):
            handle: Any = new.handle
            type_: Any = new.type
            builder = self.semantic.builder
            other = builder.open_value(handle.dtype, handle.shape, "a variable of two types", handle.origin)
            test = Symbolic(mask, tl.int1, (), Origin("the branch taken"))
            return tl.tensor(builder.create_select(test, handle, other), type_)
        if isinstance(new, base_value) and isinstance(old, base_value):
            raise Stopped("a variable has one type for some programs and another for others")
        return new

    def scalar(self, value: tl.tensor) -> Symbolic:
        """The expression of a scalar. Raises a TypeError for a block."""
        handle: Any = value.handle
        if any(size != 1 for size in handle.shape):
            raise TypeError(f"a block of shape {list(handle.shape)} is not a scalar")
        return handle

    def as_cond(self, condition: Any) -> Cond:
        """The condition of a Python value or a tensor."""
        if _CONDITION is not None and isinstance(condition, _CONDITION):
            condition = condition.condition
        if isinstance(condition, tl.tensor):
            return self.scalar(condition).condition
        return TRUE if condition else FALSE

    def as_int(self, value: Sum, what: str) -> int:
        """The constant value of a scalar, for Python. Raises Stopped if it differs between programs."""
        if value.low == value.high:
            return value.low
        self._refuse(value, what)
        raise AssertionError

    def _refuse(self, node: Any, what: str) -> None:
        used = set(atoms_of(node, inside_unknowns=True))
        loops: list[Any] = self.loops
        for loop in reversed(loops):
            if loop.summarized and loop.counter.terms[0][0] in used and loop.can_unroll:
                raise Restart(loop.key, "unroll")
        raise Stopped(f"{what} differs between programs")

    def truth(self, value: tl.tensor) -> bool:
        """`bool(tensor)`."""
        condition = self.scalar(value).condition
        if condition is not TRUE and condition is not FALSE:
            self._refuse(condition, "a condition that Python needs")
        return condition is TRUE

    def index(self, value: tl.tensor) -> int:
        """`int(tensor)`, and a tensor where Python needs an index."""
        return self.as_int(self.scalar(value).sum, "an index that Python needs")

    def per_lane(self, value: tl.tensor) -> Any:
        """A scalar's value, which is one expression for all programs."""
        node = self.scalar(value).node
        return node if isinstance(node, float) else number(self.index(value))

    def agreed(self, values: Any, what: str = "a value that Python needs") -> Any:
        """The value on which all programs agree."""
        return values if isinstance(values, float) else self.as_int(values, what)

    # --- calls ---

    def _rewritten(self, fn: Any) -> Callable:
        while isinstance(fn, KernelInterface) and not isinstance(fn, JITCallable):
            fn = fn.fn  # type: ignore[attr-defined] - autotuner, heuristics and traces wrap a kernel
        if isinstance(fn, JITCallable):
            return rewritten(fn.fn, self, source_of(fn), SymbolicRewriter)
        return rewritten(fn, self, rewriter=SymbolicRewriter)

    def _enter(self, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
        outer, self._entry = self._entry, self.active
        result = super()._enter(function, *args, **kwargs)
        self._entry = outer
        return result


def _is_plain_tensor(value: Any) -> bool:
    return not isinstance(value, base_value) or (
        isinstance(value, tl.tensor) and isinstance(value.handle, Symbolic)
    )
