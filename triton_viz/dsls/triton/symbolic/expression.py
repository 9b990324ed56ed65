"""Expressions: integers and conditions over program ids, block indices and loop counters.

An integer is a `Sum`: a constant and multiples of *atoms*. An atom is a variable or a nonlinear operation: a
product, a quotient, a choice. A `Cond` is a comparison of a sum with zero, or a conjunction or disjunction of
conditions. Every sum has an interval that contains its values, and expressions are simplified by intervals
when they are made: most index arithmetic of a kernel becomes a small sum, and most comparisons need no
solver.

Atoms and conditions are interned: equal ones are the same object.
"""

import math
from collections.abc import Iterable
from typing import Any

from triton_viz.dsls.triton.symbolic.nodes import Atom, Cond, Sum

TRUE, FALSE = Cond("true", (), 0), Cond("false", (), 1)
TRUE.negation, FALSE.negation = FALSE, TRUE
ZERO, ONE = Sum(0), Sum(1)

_atoms: dict[tuple, Atom] = {}
_conds: dict[tuple, Cond] = {}
_counts = {"atoms": 0, "conds": 1, "unknowns": 0}


def forget() -> None:
    """Drop the tables of interned expressions. Existing ones do not equal those that are made later."""
    _atoms.clear()
    _conds.clear()


def atom(op: str, args: tuple, low: int, high: int) -> Atom:
    """The atom with this operation and these arguments."""
    key = (op, args)
    found = _atoms.get(key)
    if found is None:
        _counts["atoms"] += 1
        found = _atoms[key] = Atom(op, args, low, high, _counts["atoms"])
    return found


def number(value: int) -> Sum:
    """A constant."""
    return Sum(int(value))


def of(one: Atom) -> Sum:
    """The sum of one atom."""
    return Sum(0, ((one, 1),))


# --- variables ---


def program_id(axis: int, size: int) -> Sum:
    """The variable for the program id along one axis of the grid."""
    return ZERO if size <= 1 else of(atom("pid", (axis, size), 0, size - 1))


def index(axis: int, size: int) -> Sum:
    """The variable for the index of an element of a block along one axis."""
    return ZERO if size <= 1 else of(atom("index", (axis, size), 0, size - 1))


def counter(loop: int, line: int, most: int) -> Sum:
    """The variable for the iteration of a loop, which has at most `most` iterations."""
    return of(atom("count", (loop, line, most), 0, max(0, most - 1)))


def base(name: str, address: int) -> Sum:
    """The variable for the address of a tensor's first element."""
    return of(atom("base", (name, address), address, address))


class Reason:
    """Why a value is unknown."""

    __slots__ = ("loop", "text")

    def __init__(self, text: str, loop: tuple[str, int] | None = None):
        self.text = text
        self.loop = loop
        """The loop (file and line) that would have to be unrolled to know it."""


def unknown(low: int, high: int, reason: Reason, args: tuple[Sum, ...] = ()) -> Sum:
    """An integer that is known only when the kernel runs. It is a function of the arguments."""
    if low == high:
        return Sum(low)
    _counts["unknowns"] += 1
    return of(atom("unknown", (_counts["unknowns"], reason, args, low, high), low, high))


def unknown_condition(reason: Reason, args: tuple[Sum, ...] = ()) -> Cond:
    """A condition that is known only when the kernel runs."""
    return at_least(unknown(0, 1, reason, args), ONE)


# --- sums ---


def add(a: Sum, b: Sum) -> Sum:
    """a + b."""
    if not b.terms:
        return Sum(a.const + b.const, a.terms) if b.const else a
    if not a.terms:
        return Sum(a.const + b.const, b.terms) if a.const else b
    terms = dict(a.terms)
    for one, by in b.terms:
        terms[one] = terms.get(one, 0) + by
    kept = [(one, by) for one, by in terms.items() if by]
    kept.sort(key=_serial)
    return Sum(a.const + b.const, tuple(kept))


def _serial(term: tuple[Atom, int]) -> int:
    return term[0].serial


def scale(a: Sum, by: int) -> Sum:
    """a * by."""
    if by == 1:
        return a
    return Sum(a.const * by, tuple((one, n * by) for one, n in a.terms)) if by else ZERO


def negate(a: Sum) -> Sum:
    """-a."""
    return scale(a, -1)


def subtract(a: Sum, b: Sum) -> Sum:
    """a - b."""
    return add(a, scale(b, -1)) if b.terms else add(a, Sum(-b.const))


def multiply(a: Sum, b: Sum) -> Sum:
    """a * b."""
    if not b.terms:
        return scale(a, b.const)
    if not a.terms:
        return scale(b, a.const)
    a, one = _primitive(a)
    b, other = _primitive(b)
    first, second = sorted((a, b), key=lambda s: [(t.serial, by) for t, by in s.terms])
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    low = 0 if a == b and min(ends) < 0 else min(ends)
    return scale(of(atom("mul", (first, second), low, max(ends))), one * other)


def _primitive(a: Sum) -> tuple[Sum, int]:
    """A sum divided by the greatest common divisor of its parts, and that divisor."""
    factor = math.gcd(a.const, *(by for _, by in a.terms))
    if factor == 1:
        return a, 1
    return Sum(a.const // factor, tuple((one, by // factor) for one, by in a.terms)), factor


def minimum(a: Sum, b: Sum) -> Sum:
    """The smaller one."""
    difference = subtract(a, b)
    if difference.high <= 0:
        return a
    if difference.low >= 0:
        return b
    first, second = _ordered(a, b)
    return of(atom("min", (first, second), min(a.low, b.low), min(a.high, b.high)))


def maximum(a: Sum, b: Sum) -> Sum:
    """The larger one."""
    difference = subtract(a, b)
    if difference.high <= 0:
        return b
    if difference.low >= 0:
        return a
    first, second = _ordered(a, b)
    return of(atom("max", (first, second), max(a.low, b.low), max(a.high, b.high)))


def _ordered(a: Sum, b: Sum) -> tuple[Sum, Sum]:
    first, second = sorted((a, b), key=lambda s: ([(t.serial, by) for t, by in s.terms], s.const))
    return first, second


def choose(condition: Cond, a: Sum, b: Sum) -> Sum:
    """a where the condition holds, b elsewhere."""
    if condition is TRUE or a == b:
        return a
    if condition is FALSE:
        return b
    if condition.op in ("ne", "or"):
        return choose(opposite(condition), b, a)
    low, high = min(a.low, b.low), max(a.high, b.high)
    return of(atom("select", (condition, a, b), low, high))


# --- conditions ---


def _cond(op: str, args: tuple) -> Cond:
    key = (op, args)
    found = _conds.get(key)
    if found is None:
        _counts["conds"] += 1
        found = _conds[key] = Cond(op, args, _counts["conds"])
    return found


def not_negative(a: Sum) -> Cond:
    """a >= 0."""
    if a.low >= 0:
        return TRUE
    if a.high < 0:
        return FALSE
    if (choice := _choice(a)) is not None:
        condition, if_true, if_false = choice
        return _either(condition, if_true >= 0, if_false >= 0)
    factor = math.gcd(*(by for _, by in a.terms))
    if factor > 1:
        a = Sum(a.const // factor, tuple((one, by // factor) for one, by in a.terms))
        if a.low >= 0:
            return TRUE
    return _cond("ge", (a,))


def _choice(a: Sum) -> tuple[Cond, int, int] | None:
    """The condition and the two values of a sum whose only variable is a choice between constants."""
    if len(a.terms) != 1 or a.terms[0][0].op != "select":
        return None
    one, by = a.terms[0]
    condition, x, y = one.args
    return (condition, a.const + by * x.const, a.const + by * y.const) if x.is_const and y.is_const else None


def _either(condition: Cond, if_true: bool, if_false: bool) -> Cond:
    if if_true == if_false:
        return TRUE if if_true else FALSE
    return condition if if_true else opposite(condition)


def at_least(a: Sum, b: Sum) -> Cond:
    """a >= b."""
    return not_negative(subtract(a, b))


def less(a: Sum, b: Sum) -> Cond:
    """a < b."""
    return not_negative(add(subtract(b, a), Sum(-1)))


def is_zero(a: Sum) -> Cond:
    """a == 0."""
    if a.low > 0 or a.high < 0:
        return FALSE
    if not a.terms:
        return TRUE
    if (choice := _choice(a)) is not None:
        condition, if_true, if_false = choice
        return _either(condition, if_true == 0, if_false == 0)
    factor = math.gcd(*(by for _, by in a.terms))
    if a.const % factor:
        return FALSE
    factor = factor if a.terms[0][1] > 0 else -factor
    if factor != 1:
        a = Sum(a.const // factor, tuple((one, by // factor) for one, by in a.terms))
    # At the end of an interval, an equality is equivalent to an inequality, which the solver can use.
    if a.low == 0:
        return not_negative(negate(a))
    if a.high == 0:
        return not_negative(a)
    return _cond("eq", (a,))


def equal(a: Sum, b: Sum) -> Cond:
    """a == b."""
    return is_zero(subtract(a, b))


def opposite(condition: Cond) -> Cond:
    """The negation of a condition."""
    if condition.negation is None:
        op, args = condition.op, condition.args
        if op == "ge":
            found = not_negative(add(negate(args[0]), Sum(-1)))
        elif op in ("eq", "ne"):
            found = _cond("ne" if op == "eq" else "eq", args)
        else:
            found = _cond("or" if op == "and" else "and", tuple(opposite(c) for c in args))
        condition.negation = found
        if found.negation is None:
            found.negation = condition
    return condition.negation


def all_of(conditions: Iterable[Cond]) -> Cond:
    """The conjunction of conditions. Conditions that follow from others are left out."""
    parts: dict[Cond, None] = {}
    todo = list(conditions)
    either: list[Cond] = []
    while True:
        while todo:
            one = todo.pop()
            if one is FALSE:
                return FALSE
            if one.op == "and":
                todo += one.args
            elif one.op == "or":
                either.append(one)
            elif one is not TRUE:
                if opposite(one) in parts:
                    return FALSE
                parts[one] = None
        # Impossible alternatives are dropped; a single remaining alternative has to hold.
        waiting, either = dict.fromkeys(either), []
        for one in waiting:
            if any(_holds(c, parts) for c in one.args):
                continue
            left = [c for c in one.args if not _fails(c, parts)]
            if len(left) == len(one.args):
                either.append(one)
            elif len(left) > 1:
                either.append(any_of(left))
            else:
                todo.append(left[0] if left else FALSE)
        if not todo:
            break
    every = sorted([*parts, *either], key=lambda c: c.serial)
    if len(every) > 1:
        return _cond("and", tuple(every))
    return every[0] if every else TRUE


def _holds(condition: Cond, parts: dict[Cond, None]) -> bool:
    return condition in parts or (condition.op == "and" and all(c in parts for c in condition.args))


def _fails(condition: Cond, parts: dict[Cond, None]) -> bool:
    if condition.op == "and":
        return any(opposite(c) in parts for c in condition.args)
    return condition.op != "or" and opposite(condition) in parts


def any_of(conditions: Iterable[Cond]) -> Cond:
    """The disjunction of conditions."""
    return opposite(all_of([opposite(c) for c in conditions]))


def both(a: Cond, b: Cond) -> Cond:
    """The conjunction of two conditions."""
    if a is TRUE or a is b:
        return b
    return a if b is TRUE else all_of((a, b))


def given(condition: Cond, known: Cond) -> Cond:
    """A condition without the parts that are known to hold."""
    if condition is known:
        return TRUE
    if known is TRUE or condition.op != "and":
        return TRUE if condition in known.parts else condition
    settled = set(known.parts)
    left = [part for part in condition.args if part not in settled]
    return condition if len(left) == len(condition.args) else all_of(left)


def as_number(condition: Cond) -> Sum:
    """1 if the condition holds, else 0."""
    return choose(condition, ONE, ZERO)


def as_condition(node: Any) -> Cond:
    """The condition that an integer is not zero; a condition is unchanged."""
    return node if isinstance(node, Cond) else opposite(is_zero(node))
