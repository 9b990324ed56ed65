"""Loops with symbolic bounds: the body runs once to find the variables that it changes, and once more with
the iteration as a variable.

Short loops, and loops over other objects than numbers, are unrolled. If a loop cannot be analyzed in the
chosen way, the engine runs the kernel again with the other one (`Restart`).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from triton_viz.dsls.triton.control_flow.python_builtins import StaticRange
from triton_viz.dsls.triton.symbolic.carried import Probe, Replacement, solve, unpack
from triton_viz.dsls.triton.symbolic.evaluate import Substitution, atoms_of
from triton_viz.dsls.triton.symbolic.expression import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Reason,
    add,
    any_of,
    both,
    counter,
    less,
    maximum,
    multiply,
    number,
    opposite,
    subtract,
    unknown,
    unknown_condition,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.integers import divide
from triton_viz.dsls.triton.symbolic.nodes import INFINITE, Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_ops import Stopped
from triton_viz.dsls.triton.symbolic.symbolic_range import (
    _ENDLESS,
    LONGEST,
    Key,
    Restart,
    SymbolicRange,
)
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, unknown_node

if TYPE_CHECKING:
    from triton_viz.dsls.triton.symbolic.symbolic_flow import SymbolicFlow

SHORT = 3
"""Loops with at most this number of iterations are unrolled, which is exact, and not slower."""
_LONGEST_WHILE = 64


class SymbolicLoop:
    """A running loop. `regions[at - 1]` has the programs that continue after it, `regions[at]` those
    inside."""

    def __init__(self, flow: "SymbolicFlow", key: Key, items: Any = None):
        self.flow, self.key, self.line = flow, key, key[1]
        self.index = ZERO
        """The current iteration."""
        active = flow.active
        flow.waiting.extend((active, active))
        self.at = len(flow.waiting) - 1
        flow.loops.append(self)  # type: ignore[arg-type] - a loop of another kind
        self.broke: Cond = FALSE
        self.has_exits = False
        """Whether a program may leave before the end."""
        self.counter = ZERO
        self.most = _ENDLESS
        self.count: Sum | None = None
        self._phase = ""
        self._held: Cond = TRUE
        self._items: Any = items
        self._names: tuple[str, ...] = ()
        self._values: tuple[Any, ...] = ()
        """The values before the loop of the variables that the body changes."""
        self._ends: tuple[Any, ...] = ()
        """Their values after an iteration."""
        self._parts: list[tuple[list[Probe], Any]] = []
        self._probes: list[Probe] = []
        self.reason = Reason(f"what the loop in line {self.line} changes", key)
        self.summarized = self._choose_mode()

    def _choose_mode(self) -> bool:
        flow, items = self.flow, self._items
        chosen = flow.modes.get(self.key)
        if items is None:  # a while
            return chosen == "summarize"
        if isinstance(items, StaticRange):
            self._items = items.items
            return False
        if isinstance(items, range):
            items = self._items = SymbolicRange(flow, items.start, items.stop, items.step)
        if not isinstance(items, SymbolicRange):
            return False
        return items.count.high > (LONGEST if chosen == "unroll" else SHORT)

    @property
    def can_unroll(self) -> bool:
        """Whether it is short enough to run each iteration separately."""
        return self._items is not None and self.most <= LONGEST

    # --- for ---

    def __iter__(self) -> Iterator[Any]:
        if not self.summarized:
            return self._unrolled()
        return self._summarized()

    def _unrolled(self) -> Iterator[Any]:
        flow, items = self.flow, self._items
        if isinstance(items, SymbolicRange):
            for k in range(items.count.high):
                self.index = number(k)
                flow.waiting[self.at] = both(flow.waiting[self.at], items.holds(self.index))
                flow.set_active(flow.waiting[self.at])
                if not flow.alive:
                    return
                yield items.at(self.index)
            return
        for k, item in enumerate(items):
            self.index = number(k)
            flow.set_active(flow.waiting[self.at])
            if not flow.alive:
                return
            if k >= LONGEST:
                raise Stopped(f"the loop in line {self.line} has too many iterations to unroll")
            yield item

    def _summarized(self) -> Iterator[Any]:
        items: Any = self._items
        self.count, self.most = items.count, items.count.high
        if self.most <= 0 or not self.flow.alive:
            return
        self._new_counter()
        self._enter_probe(items.holds(self.counter))
        if self.flow.alive:
            yield items.at(self.counter)
        self._solve()
        self._enter_real(items.holds(self.counter))
        if self.flow.alive:
            yield items.at(self.counter)
        self._leave_real()

    # --- while ---

    def next(self) -> bool:
        """Begin an iteration of a `while` loop, before its condition is evaluated."""
        flow = self.flow
        if not self.summarized:
            if self._phase:
                self.index = add(self.index, ONE)
            self._phase = "unrolled"
            if self.index.const >= _LONGEST_WHILE:
                raise Restart(self.key, "summarize")
            flow.set_active(flow.waiting[self.at] if self._held is TRUE else FALSE)
            return flow.alive
        if self._phase == "":
            if not flow.alive:
                return False
            self._new_counter()
            self._enter_probe(TRUE)
            return True
        if self._phase == "probe":
            self._solve_while()
            self._enter_real(TRUE)
            return True
        self._leave_real()
        return False

    def holds(self, condition: Any) -> bool:
        """Evaluate the condition of a `while` loop. True if the body has to run."""
        test = self.flow.as_cond(condition)
        if not self.summarized and test is not TRUE and test is not FALSE:
            raise Restart(self.key, "summarize")
        self._held = test
        inside = both(self.flow.waiting[self.at], test)
        self.flow.waiting[self.at] = inside
        self.flow.set_active(inside)
        return test is not FALSE

    def _solve_while(self) -> None:
        """Find the number of iterations from the condition, which is exact for conditions that count down."""
        test = self._held
        self._solve(restore=False)
        own = {probe.serial: probe for probe in self._probes}
        counted = False
        found = self._counted(Replacement(own, self.counter)(test))
        if found is not None and found.high < _ENDLESS:
            # The count is correct if no integer wraps around within that number of iterations.
            self.most = found.high + 1
            self._new_counter()
            self._solve(restore=False)
            again = self._counted(Replacement(own, self.counter)(test))
            if again is not None and again == found:
                counted = True
                self.count = found
        if not counted:
            self.has_exits, self.count = True, None
        self._restore()

    def _counted(self, test: Cond) -> Sum | None:
        """The number of iterations in which a condition holds that becomes false once and stays false."""
        if test is FALSE:
            return ZERO
        one = self.counter.terms[0][0]
        if test.op != "ge":
            return None
        left = _without_wraps(test.args[0], one)
        by = left.coefficient(one)
        rest = Sum(left.const, tuple(term for term in left.terms if term[0] is not one))
        if by >= 0 or one in set(atoms_of(rest, inside_unknowns=True)):
            return None
        return divide(maximum(ZERO, add(rest, number(-by))), number(-by))

    # --- both ---

    def _new_counter(self) -> None:
        self.flow.loop_serial += 1
        self.index = self.counter = counter(self.flow.loop_serial, self.line, max(2, self.most))

    def _enter_probe(self, inside: Cond) -> None:
        flow = self.flow
        self._phase = "probe"
        flow.muted += 1
        self._saved: tuple[list[Any], Any, bool] = list(flow.waiting), flow.frame.value, flow.frame.returned
        flow.waiting[self.at] = both(flow.waiting[self.at], inside)
        flow.set_active(flow.waiting[self.at])

    def carry(self, names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of the variables that the body changes, at the beginning of an iteration."""
        if not self.summarized:
            return values
        flow = self.flow
        if self._phase == "probe":
            self._names, self._values = names, values
            outer = flow.counters(without=self)
            self._parts, self._probes = [], []
            for name, value in zip(names, values, strict=True):
                parts, rebuild = unpack(value, flow.tensor)
                probes = [Probe(name, part, outer) for part in parts]
                self._parts.append((probes, rebuild))
                self._probes += probes
            self._ends = values
            return tuple(rebuild([p.value for p in probes]) for probes, rebuild in self._parts)
        return tuple(
            rebuild([_as_value(p, p.at(self.counter), self._origin(p)) for p in probes])  # type: ignore[misc]
            for probes, rebuild in self._parts
        )

    def _origin(self, probe: Probe) -> Origin:
        return probe.start.origin if probe.fixed else Origin("then", probe.start.origin, probe.next.origin)

    def carried(self, values: tuple[Any, ...]) -> None:
        """Receives the values of the variables at the end of an iteration."""
        if self.summarized:
            self._ends = values

    def _solve(self, restore: bool = True) -> None:
        for (probes, _), name, begin, end in zip(
            self._parts, self._names, self._values, self._ends, strict=True
        ):
            parts, _ = unpack(end, self.flow.tensor)
            if not probes and begin is not end and begin is not self.flow.undefined:
                self._unrollable(f"{name} changes its type")
            if probes and len(parts) != len(probes):
                self._unrollable(f"{name} changes its type")
            for probe, part in zip(probes, parts, strict=False):
                probe.next, probe.at, probe.fixed = (
                    part,
                    probe.at if probe.atom is None else None,
                    probe.atom is None,
                )
        most = INFINITE if self._items is None and self.most >= _ENDLESS else self.most
        solve(self._probes, self.counter, most, self.reason)
        if restore:
            self._restore()

    def _unrollable(self, why: str) -> None:
        """Stop summarizing this loop: restart with the loop unrolled, or stop the analysis."""
        if self.can_unroll and self.flow.modes.get(self.key) is None:
            raise Restart(self.key, "unroll")
        raise Stopped(f"the loop in line {self.line} is not followed: {why}")

    def _restore(self) -> None:
        """Restore the regions as they were before the probing pass."""
        flow = self.flow
        regions, value, returned = self._saved
        if any(a is not b for a, b in zip(regions[: self.at], flow.waiting, strict=False)):
            self.has_exits = True
        del flow.waiting[self.at + 1 :]
        flow.waiting[:] = regions
        flow.frame.value, flow.frame.returned = value, returned
        flow.muted -= 1

    def _enter_real(self, inside: Cond) -> None:
        flow = self.flow
        self._phase = "real"
        if self.has_exits:  # programs in this iteration have not left in an earlier one
            stayed = unknown_condition(Reason(f"when the loop in line {self.line} ends"), flow.counters())
            inside = both(inside, any_of((less(self.counter, ONE), stayed)))
        flow.waiting[self.at] = both(flow.waiting[self.at], inside)
        flow.set_active(flow.waiting[self.at])

    def _leave_real(self) -> None:
        flow = self.flow
        self._phase = "done"
        before, value, _ = self._saved
        known: dict[int, Cond] = {}
        for position in range(self.at):
            now, then = flow.waiting[position], before[position]
            if now is not then:  # some have returned, in one iteration or another
                if id(now) not in known:
                    left = unknown_condition(
                        Reason(f"when the loop in line {self.line} returns"), flow.counters(self)
                    )
                    known[id(now)] = both(then, left)
                flow.waiting[position] = known[id(now)]
        frame = flow.frame
        if frame.returned and frame.value is not value:
            frame.value = self._anything(frame.value)
        self.index = ZERO

    def _anything(self, value: Any) -> Any:
        """An unknown value of the same type."""
        parts, rebuild = unpack(value, self.flow.tensor)
        args = self.flow.counters(self)
        return rebuild(
            [Symbolic(unknown_node(p.dtype, self.reason, args), p.dtype, p.shape, p.origin) for p in parts]
        )

    def after(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The variables after the loop."""
        if not self.summarized or self._phase != "done":
            return values
        flow = self.flow
        count = self.count
        if count is None:
            count = unknown(0, self.most, self.reason, flow.counters())
        results = []
        for (probes, rebuild), begin, end in zip(self._parts, self._values, self._ends, strict=True):
            if begin is flow.undefined:
                results.append(self._last(end, count))
            elif not probes:
                results.append(end)
            else:
                new = rebuild([_as_value(p, self._behind(p, count), self._origin(p)) for p in probes])
                results.append(flow.keep(new, begin))
        return tuple(results)

    def _behind(self, probe: Probe, count: Sum) -> Any:
        assert probe.at is not None
        if probe.fixed or not self.has_exits:
            return probe.at(count)
        if (
            isinstance(probe.start.node, Sum) and probe.step is not None
        ):  # that is the largest number of steps
            times = unknown(0, self.most, self.reason, (*probe.formal, *self.flow.counters()))
            return probe.at(times)
        return unknown_node(probe.start.dtype, self.reason, probe.formal)

    def _last(self, value: Any, count: Sum) -> Any:
        """The value after the last iteration of a variable that was unassigned before the loop."""
        parts, rebuild = unpack(value, self.flow.tensor)
        if self.has_exits or self._items is None:
            return self._anything(value)
        final = Substitution({self.counter.terms[0][0]: subtract(count, ONE)})
        return rebuild([Symbolic(final(p.node), p.dtype, p.shape, p.origin) for p in parts])

    def breaks(self) -> bool:
        """Remove the active programs from the loop. True if none is left, so that Python may break."""
        flow = self.flow
        if self.summarized:
            self.has_exits = True
        else:
            self.broke = any_of((self.broke, flow.active))
            if flow.active is flow.waiting[self.at]:
                return True
        flow.leave(self.at)
        return False

    def skips(self) -> bool:
        """Remove the active programs from this iteration. True if none is left, so that Python may
        continue."""
        if not self.summarized and self.flow.active is self.flow.waiting[self.at]:
            return True
        self.flow.leave(self.at + 1)
        return False

    def end(self) -> None:
        """Activate the programs that entered the loop, except those that have returned."""
        flow = self.flow
        flow.loops.pop()
        entered = flow.waiting[self.at - 1]
        del flow.waiting[self.at - 1 :]
        flow.set_active(entered)

    def announce_end(self) -> None:
        """Does nothing: the analysis has no loop callbacks."""

    def finished(self) -> Any:
        """For the loop's `else`: a test that is true for programs that did not break."""
        flow = self.flow
        if not flow.alive:
            return False
        if not self.summarized:
            return flow.split(opposite(self.broke))
        if not self.has_exits:
            return True
        return flow.split(
            unknown_condition(Reason(f"when the loop in line {self.line} ends"), flow.counters())
        )


def _as_value(probe: Probe, node: Any, origin: Origin) -> Symbolic:
    return Symbolic(node, probe.start.dtype, probe.start.shape, origin)


def _without_wraps(a: Sum, one: Any) -> Sum:
    """A sum under the assumption that integers that depend on a counter do not wrap around, verified
    later."""
    for term, by in a.terms:
        if term.op == "wrap" and one in set(atoms_of(term.args[0])):
            rest = Sum(a.const, tuple(t for t in a.terms if t[0] is not term))
            return _without_wraps(add(rest, multiply(number(by), term.args[0])), one)
    return a
