"""Deciding whether an access is out of bounds for any program, iteration and element."""

import dataclasses
import functools
import time
from typing import Any

from triton_viz.core.call_path import Columns
from triton_viz.core.data import Program, Site
from triton_viz.core.records.accesses import axes_of, elements_of, is_dense
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.static_analysis import FLAGS, NEVER, AccessVerdict, Witness
from triton_viz.dsls.triton.symbolic import integers
from triton_viz.dsls.triton.symbolic.evaluate import Evaluation, atoms_of
from triton_viz.dsls.triton.symbolic.expression import (
    FALSE,
    TRUE,
    ZERO,
    add,
    all_of,
    any_of,
    at_least,
    both,
    equal,
    index,
    less,
    not_negative,
    number,
    opposite,
    program_id,
    scale,
    subtract,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin, describe
from triton_viz.dsls.triton.symbolic.nodes import Atom, Cond, Sum
from triton_viz.dsls.triton.symbolic.solver import TIMEOUT, TIMEOUT_ON_DATA, Unsolved, find, unknowns

BUDGET = 8.0
"""Seconds for all queries of one launch; the remaining accesses are undecided."""
_MOST_CASES = 16
_COUNTING = ("wrap", "mul", "select", "min", "max")
"""Ops that propagate an overflow of an operand to the result."""
_SHRINKING = ("div", "shr")
"""Ops of hash functions: an overflow in their operands counts only if the access is out of bounds."""


@dataclasses.dataclass(frozen=True)
class Noted:
    """An access of the symbolic run."""

    call_path: tuple[Site, ...]
    kind: str
    loops: tuple[tuple[int, Sum], ...]
    address: Sum
    condition: Cond
    """The condition of the access: the program reaches it, and the mask is true."""
    masked: bool
    width: int
    shape: tuple[int, ...]
    origin: Origin
    names: dict[Origin, str]
    columns: Columns


class Decider:
    """Decides the accesses of one launch."""

    def __init__(self, grid: Program, tensors: dict[str, TensorInfo], end: float):
        self._grid, self._tensors, self._end = grid, tensors, end
        self._known: dict[tuple[Sum, Cond, int], dict[str, Any]] = {}

    def decide(self, noted: Noted) -> AccessVerdict:
        """The verdict of an access."""
        key = noted.address, noted.condition, noted.width
        found = self._known.get(key)
        if found is None or noted.loops:  # a witness names the loops
            found = self._known[key] = self._safely(noted)
        return self._verdict(noted, found)

    def locate(self, noted: Noted) -> AccessVerdict:
        """A verdict with the tensors whose pointers an access uses, without deciding its bounds."""
        cases = self._cases(noted.address, noted.condition)
        names = dict.fromkeys(name for name, _, _ in cases)
        found = {
            "verdict": "concrete",
            "reason": "it was not analyzed" if names else NEVER,
            "tensor": ", ".join(names) if all(names) else "",
            "may_wrap": any(_wraps(distance, _COUNTING + _SHRINKING) for _, distance, _ in cases),
        }
        return self._verdict(noted, found)

    def _verdict(self, noted: Noted, found: dict[str, Any]) -> AccessVerdict:
        return AccessVerdict(
            call_path=noted.call_path,
            kind=noted.kind,
            loops=tuple((line, k.const if k.is_const else None) for line, k in noted.loops),
            width=noted.width,
            shape=noted.shape,
            masked=noted.masked,
            columns=noted.columns,
            through_descriptor=noted.origin.op == "descriptor",
            describe=functools.partial(describe, noted.origin, noted.names),
            **found,
        )

    def _safely(self, noted: Noted) -> dict[str, Any]:
        try:
            return self._decided(noted)
        except RecursionError:
            return {"verdict": "undecided", "reason": "its address is nested too deeply"}
        except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the user's program
            return {"verdict": "undecided", "reason": f"{type(error).__name__}: {error}"}

    def _decided(self, noted: Noted) -> dict[str, Any]:
        cases = self._cases(noted.address, noted.condition)
        if not cases:
            return {"verdict": "ok", "reason": NEVER}
        results = [self._case(noted, *case) for case in cases]
        worst = max(results, key=lambda r: ("ok", "concrete", "undecided", "violation").index(r["verdict"]))
        flags = {name: r[name] for r in results for name in FLAGS if r.get(name)}
        names = dict.fromkeys(name for name, _, _ in cases)
        return {**worst, **flags, "tensor": ", ".join(names) if all(names) else ""}

    def _cases(self, address: Sum, condition: Cond) -> list[tuple[str, Sum, Cond]]:
        """Each tensor that a pointer may be derived from, and the distance from the tensor's first
        element."""
        todo, done = [(address, condition)], []
        while todo:
            where, when = todo.pop()
            if when is FALSE:
                continue
            bases = [one for one, by in where.terms if one.op == "base" and by == 1]
            mixed = [(one, by) for one, by in where.terms if one.op != "base" and _has_base(one)]
            if len(bases) == 1 and not mixed:
                distance = subtract(where, Sum(0, ((bases[0], 1),)))
                if not any(one.op == "base" for one, _ in distance.terms):
                    done.append((bases[0].args[0], distance, when))
                    continue
            if len(mixed) == 1 and not bases and mixed[0][0].op == "select" and mixed[0][1] == 1:
                one = mixed[0][0]
                rest = subtract(where, Sum(0, ((one, 1),)))
                if len(todo) + len(done) < _MOST_CASES:
                    test, a, b = one.args
                    todo += [(add(rest, b), both(when, opposite(test))), (add(rest, a), both(when, test))]
                    continue
            done.append(("", where, when))
        return done

    def _case(self, noted: Noted, name: str, distance: Sum, condition: Cond) -> dict[str, Any]:
        if not name:
            return self._anywhere(noted, distance, condition)
        tensor = self._tensors[name]
        low, high = (end - tensor.address for end in tensor.storage)
        if tensor.storage[1] <= tensor.storage[0]:
            bad: Cond = TRUE
        else:
            bad = _outside(distance, low, high - noted.width)
        result = self._ask(noted, distance, condition, bad, tensor)
        result["may_wrap"] = bool(_wraps(distance, _COUNTING + _SHRINKING))
        if result["verdict"] == "ok":
            result |= self._own_elements(noted, tensor, distance, condition)
        if result["verdict"] in ("ok", "violation"):
            outside = bad if result["verdict"] == "violation" else FALSE
            result |= self._overflow(noted, tensor, distance, condition, outside)
        return result

    def _ask(
        self, noted: Noted, distance: Sum, condition: Cond, bad: Cond, tensor: TensorInfo | None
    ) -> dict[str, Any]:
        question = both(condition, bad)
        if question is FALSE:
            return {"verdict": "ok"}
        not_known = unknowns(distance, condition)
        reason = _reason(unknowns(distance) or not_known)
        try:
            found = self._find(question, TIMEOUT_ON_DATA if not_known else TIMEOUT)
        except Unsolved as error:
            return {"verdict": "concrete" if not_known else "undecided", "reason": reason or str(error)}
        if found is None:
            return {"verdict": "ok"}
        if not_known:
            return {"verdict": "concrete", "reason": reason}
        return {"verdict": "violation", "witness": self._witness(noted, found, distance, tensor)}

    def _anywhere(self, noted: Noted, address: Sum, condition: Cond) -> dict[str, Any]:
        """The verdict on a pointer of an unknown tensor: it has to be in the memory of any tensor."""
        if loaded := unknowns(address):  # nothing bounds an address that comes out of memory
            return {"verdict": "concrete", "reason": _reason(loaded)}
        spans = {t.storage for t in self._tensors.values() if t.storage[1] > t.storage[0]}
        bad = all_of([_outside(address, low, high - noted.width) for low, high in spans])
        result = self._ask(noted, address, condition, bad, None)
        if result["verdict"] == "violation":
            return {"verdict": "undecided", "reason": "it is not clear into which tensor the pointer leads"}
        return result

    def _own_elements(
        self, noted: Noted, tensor: TensorInfo, distance: Sum, condition: Cond
    ) -> dict[str, Any]:
        """Whether addresses inside of the memory are those of the view's elements, and aligned to them."""
        rest = integers.remainder(distance, number(noted.width))
        questions: dict[str, Cond] = {"misaligned": opposite(equal(rest, ZERO))}
        if elements_of(tensor) != tensor.storage or not is_dense(tensor):
            if (axes := axes_of(tensor)) is None:
                return {"verdict": "undecided", "reason": f"the strides of {tensor.name} overlap"}
            questions["outside_view"] = _no_element(tensor, axes, distance, noted.width)
        result: dict[str, Any] = {}
        for name, question in questions.items():
            found = self._ask(noted, distance, condition, question, tensor)
            if found["verdict"] == "violation":
                result[name] = found["witness"]
            elif found["verdict"] != "ok":
                result |= found
        return result

    def _overflow(
        self, noted: Noted, tensor: TensorInfo, distance: Sum, condition: Cond, outside: Cond
    ) -> dict[str, Any]:
        """A witness for a signed integer in the address that wraps around, if there is one."""
        for question in (
            both(condition, _wrapping(_wraps(distance))),
            all_of([condition, outside, _wrapping(_wraps(distance, _COUNTING + _SHRINKING))]),
        ):
            if question is FALSE or unknowns(question):
                continue
            try:
                found = self._find(question)
            except Unsolved:
                continue
            if found is not None:
                return {"overflow": self._witness(noted, found, distance, tensor)}
        return {}

    def _find(self, question: Cond, timeout: float = TIMEOUT) -> dict[Atom, int] | None:
        if time.monotonic() > self._end:
            raise Unsolved(f"the time limit of {BUDGET:g} s for this launch was reached")
        return find(question, timeout)

    def _witness(
        self, noted: Noted, found: dict[Atom, int], distance: Sum, tensor: TensorInfo | None
    ) -> Witness:
        value = Evaluation(found)
        x, y, z = (value.number(program_id(axis, size)) for axis, size in enumerate(self._grid))
        return Witness(
            program=(x, y, z),
            iterations=tuple((line, value.number(k)) for line, k in noted.loops),
            index=tuple(value.number(index(axis, size)) for axis, size in enumerate(noted.shape)),
            address=value.number(distance) + (0 if tensor is None else tensor.address),
            tensor="" if tensor is None else tensor.name,
        )


def _has_base(one: Atom) -> bool:
    return any(inner.op == "base" for inner in atoms_of(Sum(0, ((one, 1),))))


def _outside(distance: Sum, low: int, high: int) -> Cond:
    return any_of((less(distance, number(low)), less(number(high), distance)))


def _reason(atoms: list[Atom]) -> str:
    texts = dict.fromkeys(one.args[1].text for one in sorted(atoms, key=lambda one: one.serial))
    return f"it depends on {' and on '.join(list(texts)[:3])}" if texts else ""


def _no_element(tensor: TensorInfo, axes: list[tuple[int, int]], distance: Sum, width: int) -> Cond:
    """The condition that no element of the tensor is at this distance from the first."""
    first, last = elements_of(tensor)
    bad = [_outside(distance, 0, last - first - width)]
    inside = not_negative(distance)
    for step in range(0, width, tensor.itemsize) if not is_dense(tensor) else ():
        left = add(distance, number(step))
        for stride, size in axes:
            by = number(stride * tensor.itemsize)
            position = integers.divide(left, by)
            bad.append(both(inside, at_least(position, number(size))))
            left = subtract(left, scale(position, by.const))
        bad.append(both(inside, at_least(left, number(tensor.itemsize))))
    return any_of(bad)


def _wrapping(wraps: list[Atom]) -> Cond:
    """The condition that one of these integers does not fit its type."""
    return any_of([_outside(one.args[0], one.low, one.high) for one in wraps])


def _wraps(distance: Sum, through: tuple[str, ...] = _COUNTING) -> list[Atom]:
    """The signed integers in an address that may wrap around.

    An integer of which only some bits or a remainder are used does not count: hash functions wrap around on
    purpose.
    """
    found: list[Atom] = []
    todo, seen = [one for one, _ in distance.terms], set[Atom]()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.op == "wrap" and one.args[2]:
            found.append(one)
        if one.op in through:
            todo += [inner for arg in one.args if isinstance(arg, Sum) for inner, _ in arg.terms]
    return found
