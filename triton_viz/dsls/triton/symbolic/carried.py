"""Loop-carried variables: their value in each iteration, derived from one run of the loop's body.

The body runs once with an unknown value, a *probe*, for each variable. The variable's value afterwards shows
whether it is unchanged, grows by a loop-invariant amount, or is computed from known values. Otherwise it is
unknown from the second iteration on.
"""

from collections.abc import Callable
from typing import Any, cast

import triton.language as tl

from triton_viz.dsls.triton.symbolic.evaluate import Substitution, atoms_of
from triton_viz.dsls.triton.symbolic.expression import (
    ONE,
    Reason,
    add,
    any_of,
    as_number,
    at_least,
    both,
    choose,
    multiply,
    number,
    of,
    opposite,
    subtract,
    unknown,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.integers import wrap
from triton_viz.dsls.triton.symbolic.nodes import INFINITE, Atom, Cond, Node, Sum
from triton_viz.dsls.triton.symbolic.symbolic_access import Descriptor
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, indices, integer_type, unknown_node

AtIteration = Callable[[Sum], "Node | None"]
"""The value of a variable when an iteration begins."""


def unpack(
    value: Any, as_tensor: Callable[[Any], Any]
) -> tuple[list[Symbolic], Callable[[list[Symbolic]], Any]]:
    """The symbolic values in a variable, and a function that rebuilds the variable from other values."""
    if isinstance(value, int | float):
        value = as_tensor(value)
    if isinstance(value, tl.tensor):
        handle: Any = value.handle
        if isinstance(handle, Symbolic):
            return [handle], lambda parts: _tensor(parts[0])
        if isinstance(handle, Descriptor) and handle.offsets is not None:
            descriptor, type_ = handle, cast(Any, value.type)

            def moved(parts: list[Symbolic]) -> Any:
                at = Descriptor(
                    descriptor.base, descriptor.shape, descriptor.strides, list(descriptor.block), parts
                )
                return tl.tensor(at, type_)

            return list(handle.offsets or []), moved
    if getattr(
        value, "__triton_aggregate__", False
    ):  # Triton's own block pointers are such objects since 3.8
        type_: Any = type(value)
        names = [name for name in type_.__annotations__ if name in vars(value)]
        fields, refilled = unpack([getattr(value, name) for name in names], as_tensor)

        def again(parts: list[Symbolic]) -> Any:
            other = type_._get_instance()  # as its class does: what it was made with is not known
            vars(other).update(vars(value) | dict(zip(names, refilled(parts), strict=True)))
            return other

        return fields, again
    if isinstance(value, tuple | list | tl.tuple):
        unpacked = [unpack(member, as_tensor) for member in value]

        def rebuilt(parts: list[Symbolic]) -> Any:
            members, left = [], list(parts)
            for own, rebuild in unpacked:
                members.append(rebuild(left[: len(own)]))
                left = left[len(own) :]
            if isinstance(value, tl.tuple):
                return tl.tuple(members)
            return value._make(members) if hasattr(value, "_make") else type(value)(members)  # type: ignore[attr-defined]

        return [part for own, _ in unpacked for part in own], rebuilt
    return [], lambda parts: value


def _tensor(handle: Symbolic) -> tl.tensor:
    dtype = handle.dtype.scalar
    return tl.tensor(handle, tl.block_type(dtype, list(handle.shape)) if handle.shape else dtype)


class Probe:
    """A symbolic value that a loop may change."""

    def __init__(self, name: str, start: Symbolic, outer: tuple[Sum, ...]):
        self.name, self.start, self.outer = name, start, outer
        self.formal = (*indices(start.shape), *outer)
        node = unknown_node(start.dtype, Reason(f"{name}, which a loop changes"), self.formal)
        self.value = Symbolic(node, start.dtype, start.shape, Origin(name))
        self.atom: Atom | None = None
        if node is not None:
            self.atom = next(one for one in atoms_of(node) if one.op == "unknown")
        self.next = self.value
        """Its value after the iteration."""
        self.at: AtIteration | None = None if self.atom is not None else lambda k: None
        """Its value when iteration k begins."""
        self.fixed = self.atom is None
        """Whether its value is the same in all iterations."""
        self.step: Sum | None = None
        """The amount that is added to it in each iteration."""

    @property
    def serial(self) -> int:
        """A key that distinguishes its atoms from others."""
        return self.atom.args[0] if self.atom is not None else -1

    @property
    def alike(self) -> bool:
        """Whether an iteration keeps its type."""
        return self.next.dtype == self.value.dtype and self.next.shape == self.value.shape


def solve(probes: list[Probe], counter: Sum, most: int, reason: Reason) -> None:
    """Find the value of each variable in every iteration."""
    own = {probe.serial: probe for probe in probes if probe.atom is not None}
    open_ = list(own.values())
    while open_:
        before = len(open_)
        for probe in list(open_):
            if _solved(probe, own, counter, most, reason):
                open_.remove(probe)
        if open_ and len(open_) == before:
            # A cycle of dependencies is broken at a variable that depends on itself.
            self_made = [p for p in open_ if p.serial in _serials(p.next.node)]
            chosen = (self_made or open_)[0]
            open_.remove(chosen)
            _give_up(chosen, reason)


def _solved(probe: Probe, own: dict[int, Probe], counter: Sum, most: int, reason: Reason) -> bool:
    start: Any = probe.start.node
    after = probe.next.node
    if not probe.alike or start is None or isinstance(start, float) or after is None:
        _give_up(probe, reason)
        return True
    if after == probe.value.node:
        probe.at, probe.fixed, probe.step = (lambda k: start), True, number(0)
        return True
    assert probe.atom is not None
    used = _serials(after) & own.keys()
    if probe.serial in used:
        if not isinstance(after, Sum) or not isinstance(start, Sum):
            return False
        grown = _growth(after, probe)
        if grown is None or probe.serial in _serials(grown):
            return False
        others = _serials(grown) & own.keys()
        if all(own[serial].fixed for serial in others):
            step = Replacement({s: own[s] for s in others}, counter)(grown)
            if counter.terms[0][0] not in set(atoms_of(step, inside_unknowns=True)):
                probe.step = step
                probe.at = lambda k: _held(add(start, multiply(k, step)), probe)
                return True
        if others or most >= INFINITE:
            return False
        low, high = most * min(0, grown.low), most * max(0, grown.high)
        type_ = integer_type(probe.start.dtype)
        if high - low > type_.high - type_.low:
            return False
        probe.at = lambda k: _held(add(start, unknown(low, high, reason, (*probe.formal, k))), probe)
        return True
    if all(own[serial].at is not None for serial in used):
        made = Replacement({s: own[s] for s in used}, counter)(after)
        probe.at = lambda k: _later(made, counter, k, start)
        return True
    return False


def _give_up(probe: Probe, reason: Reason) -> None:
    start = probe.start

    def anything(k: Sum) -> Node | None:
        node = unknown_node(start.dtype, reason, (*probe.formal, k))
        return _either(at_least(k, ONE), node, start.node)

    probe.at = anything


def _growth(after: Sum, probe: Probe) -> Sum | None:
    """The amount added to a probe, which may be a choice between several amounts."""
    one = probe.atom
    assert one is not None
    if after.coefficient(one) == 1:
        return subtract(after, of(one))
    inner = after.single
    if inner is None:
        return None
    if inner.op == "wrap" and inner.args[1] == integer_type(probe.start.dtype).bits:
        return _growth(inner.args[0], probe)
    if inner.op == "select":
        condition, a, b = inner.args
        x, y = _growth(a, probe), _growth(b, probe)
        return None if x is None or y is None else choose(condition, x, y)
    return None


def _held(value: Sum, probe: Probe) -> Sum:
    """A value, wrapped around to the variable's type."""
    return value if probe.start.dtype.is_ptr() else wrap(value, integer_type(probe.start.dtype))


def _serials(node: Any) -> set[int]:
    if not isinstance(node, Sum | Cond):
        return set()
    return {one.args[0] for one in atoms_of(node, inside_unknowns=True) if one.op == "unknown"}


def _later(made: Any, counter: Sum, k: Sum, start: Any) -> Any:
    """The value at the beginning of iteration k: the initial one, or the result of the iteration before."""
    earlier = Substitution({counter.terms[0][0]: subtract(k, ONE)})(made)
    return _either(at_least(k, ONE), earlier, start)


def _either(condition: Cond, a: Any, b: Any) -> Any:
    if isinstance(a, Cond) and isinstance(b, Cond):
        return any_of((both(condition, a), both(opposite(condition), b)))
    return choose(condition, a, b) if isinstance(a, Sum) and isinstance(b, Sum) else None


class Replacement(Substitution):
    """Substitutes probes in expressions by their values in one iteration."""

    def __init__(self, probes: dict[int, Probe], k: Sum):
        super().__init__({})
        self._probes, self._k = probes, k

    def _rebuilt(self, one: Atom) -> Sum:
        probe = self._probes.get(one.args[0]) if one.op == "unknown" else None
        if probe is None or probe.at is None:
            return super()._rebuilt(one)
        node = probe.at(self._k)
        # The probe may be used at another element of its block than the one it was made for.
        here = {f.terms[0][0]: arg for f, arg in zip(probe.formal, one.args[2], strict=True) if f != arg}
        node = Substitution(here)(node) if here else node
        return as_number(node) if isinstance(node, Cond) else node  # type: ignore[return-value] - never a float
