"""Evaluation of expressions, substitution in expressions, and the atoms of expressions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from triton_viz.dsls.triton.symbolic import expression, integers
from triton_viz.dsls.triton.symbolic.expression import (
    add,
    all_of,
    atom,
    is_zero,
    not_negative,
    number,
    of,
    opposite,
    scale,
)
from triton_viz.dsls.triton.symbolic.integers import IntegerType
from triton_viz.dsls.triton.symbolic.nodes import Atom, Cond, Node, Sum

VARIABLES = ("pid", "index", "count", "base", "unknown")
"""Atoms that are variables."""


def _trunc(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b >= 0) else -quotient


def _wrapped(a: int, bits: int, signed: bool) -> int:
    type_ = IntegerType(bits, signed)
    return (a - type_.low) % (1 << bits) + type_.low


_NUMBERS: dict[str, Callable[..., int]] = {
    "mul": lambda a, b: a * b,
    "div": lambda a, b: _trunc(a, b) if b else 0,
    "mod": lambda a, b: a - _trunc(a, b) * b if b else 0,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "power": lambda a: 1 << max(0, a),
    "shr": lambda a, b: a >> b,
    "wrap": _wrapped,
    "select": lambda condition, a, b: a if condition else b,
}
"""How atoms other than variables are computed. (Divisors are never zero: a choice excludes that case.)"""


class Evaluation:
    """Values of expressions, for given values of the variables."""

    def __init__(self, variables: Mapping[Atom, int]):
        self._variables = variables
        self._known: dict[Any, Any] = {}

    def number(self, a: Sum) -> int:
        """The value of a sum."""
        return a.const + sum(by * self.atom(one) for one, by in a.terms)

    def atom(self, one: Atom) -> int:
        """The value of an atom. A variable without a given value has its lower bound."""
        if one.op in VARIABLES:
            return self._variables.get(one, one.low)
        found = self._known.get(one)
        if found is None:
            found = self._known[one] = _NUMBERS[one.op](*(self._argument(arg) for arg in one.args))
        return found

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, Sum):
            return self.number(arg)
        return self.condition(arg) if isinstance(arg, Cond) else arg

    def condition(self, c: Cond) -> bool:
        """Whether a condition holds."""
        found = self._known.get(c)
        if found is None:
            if c.op == "ge":
                found = self.number(c.args[0]) >= 0
            elif c.op in ("eq", "ne"):
                found = (self.number(c.args[0]) == 0) == (c.op == "eq")
            elif c.op == "and":
                found = all(self.condition(part) for part in c.args)
            elif c.op == "or":
                found = any(self.condition(part) for part in c.args)
            else:
                found = c is expression.TRUE
            self._known[c] = found
        return found


_REBUILT: dict[str, Callable[..., Sum]] = {
    "mul": expression.multiply,
    "div": integers.divide,
    "mod": integers.remainder,
    "min": expression.minimum,
    "max": expression.maximum,
    "select": expression.choose,
    "wrap": lambda a, bits, signed: integers.wrap(a, IntegerType(bits, signed)),
    "and": lambda a, b: integers.bitwise("and", a, b),
    "or": lambda a, b: integers.bitwise("or", a, b),
    "xor": lambda a, b: integers.bitwise("xor", a, b),
    "power": integers.power_of_two,
    "shr": integers.halved,
}
"""How atoms other than variables are rebuilt. Intervals follow from the new arguments."""


class Substitution:
    """Expressions with some variables replaced by other expressions."""

    def __init__(self, replaced: Mapping[Atom, Sum]):
        self._replaced = replaced
        self._known: dict[Any, Any] = {}

    def __call__(self, node: Any) -> Any:
        """Substitute in a sum or a condition; other objects are unchanged."""
        if isinstance(node, Sum):
            return self._sum(node)
        return self._cond(node) if isinstance(node, Cond) else node

    def _sum(self, a: Sum) -> Sum:
        result = number(a.const)
        for one, by in a.terms:
            result = add(result, scale(self._atom(one), by))
        return result

    def _atom(self, one: Atom) -> Sum:
        found = self._replaced.get(one)
        if found is None:
            found = self._known.get(one)
        if found is None:
            found = self._known[one] = self._rebuilt(one)
        return found

    def _rebuilt(self, one: Atom) -> Sum:
        if one.op == "unknown":
            serial, reason, args, low, high = one.args
            new = tuple(self._sum(arg) for arg in args)
            return (
                of(one) if new == args else of(atom("unknown", (serial, reason, new, low, high), low, high))
            )
        if one.op in VARIABLES:
            return of(one)
        args = tuple(self(arg) for arg in one.args)
        if args == one.args:
            return of(one)
        return _REBUILT[one.op](*args)

    def _cond(self, c: Cond) -> Cond:
        found = self._known.get(c)
        if found is None:
            if c.op == "ge":
                found = not_negative(self._sum(c.args[0]))
            elif c.op == "eq":
                found = is_zero(self._sum(c.args[0]))
            elif c.op == "ne":
                found = opposite(is_zero(self._sum(c.args[0])))
            elif c.op == "and":
                found = all_of([self._cond(part) for part in c.args])
            elif c.op == "or":
                found = expression.any_of([self._cond(part) for part in c.args])
            else:
                found = c
            self._known[c] = found
        return found


def atoms_of(*nodes: Node, inside_unknowns: bool = False) -> Iterator[Atom]:
    """All atoms in expressions, each once; with `inside_unknowns`, also those in arguments of unknowns."""
    seen: set[Any] = set()
    todo: list[Any] = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, Sum):
            todo += [one for one, _ in node.terms]
        elif isinstance(node, Atom | Cond) and node not in seen:
            seen.add(node)
            if isinstance(node, Atom):
                yield node
                if node.op == "unknown":
                    todo += node.args[2] if inside_unknowns else ()
                    continue
            todo += node.args
