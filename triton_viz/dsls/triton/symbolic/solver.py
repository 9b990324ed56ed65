"""Deciding whether a condition can hold: by intervals and sums of inequalities first, then by Z3.

Adding up the inequalities of its mask proves nearly every access of a real kernel, in microseconds. Z3 is
loaded only if that does not suffice.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from triton_viz.dsls.triton.symbolic.evaluate import VARIABLES, Evaluation, atoms_of
from triton_viz.dsls.triton.symbolic.expression import FALSE, all_of
from triton_viz.dsls.triton.symbolic.nodes import Atom, Cond, Sum

TIMEOUT = 2.0
"""Seconds that Z3 may take for one query."""
TIMEOUT_ON_DATA = 0.1
"""The same for a query that depends on data: an access that is not proved is checked while the kernel
runs."""
_SMALL = 32
"""A factor or divisor with at most this number of values is split into cases."""
_BITS = 24
"""Bitwise operations on integers with at most this number of bits are modelled bit by bit."""
_FIRST_TIMEOUT = 0.15
"""Seconds for finding a counterexample with small program ids."""


class Unsolved(Exception):
    """The solver could not decide whether a condition can hold."""


def find(condition: Cond, timeout: float = TIMEOUT) -> dict[Atom, int] | None:
    """Values of the variables for which a condition holds, small ones if possible; None if there are none.

    The returned values are verified by evaluating the condition.
    """
    if condition is FALSE or refuted(condition):
        return None
    return _Query(condition).answer(timeout)


def refuted(condition: Cond, cases: int = 3) -> bool:
    """Whether sums of its inequalities contradict each other, so that it never holds. False means unknown.

    At most `cases` disjunctions are split into their alternatives.
    """
    facts = [part.args[0] for part in condition.parts if part.op == "ge"]
    facts += [s for part in condition.parts if part.op == "eq" for s in _both_ways(part.args[0])]
    # A fact is contradicted if its upper bound, given the others, is negative.
    if any(_largest(fact, facts) < 0 for fact in facts):
        return True
    for part in condition.parts if cases else ():
        if part.op == "or":
            rest = [p for p in condition.parts if p is not part]
            return all(refuted(all_of([*rest, option]), cases - 1) for option in part.args)
    return False


def _both_ways(a: Sum) -> tuple[Sum, Sum]:
    return a, Sum(-a.const, tuple((one, -by) for one, by in a.terms))


def _largest(a: Sum, facts: list[Sum]) -> Fraction | int:
    """An upper bound of a sum, given that no fact is negative: adding facts only increases the sum."""
    best: Fraction | int = a.high
    terms: dict[Atom, Fraction | int] = dict(a.terms)
    const: Fraction | int = a.const
    for _ in range(len(facts)):
        improved = False
        for fact in facts:
            if fact is a:
                continue
            for one, by in fact.terms:
                have = terms.get(one, 0)
                if have * by >= 0:
                    continue
                times = Fraction(-have, by)
                new = dict(terms)
                for other, n in fact.terms:
                    new[other] = new.get(other, 0) + times * n
                bound = _high(const + times * fact.const, new)
                if bound < best:
                    terms, const, best = new, const + times * fact.const, bound
                    improved = True
        if not improved or best < 0:
            break
    return best


def _high(const: Fraction | int, terms: dict[Atom, Fraction | int]) -> Fraction | int:
    for one, by in terms.items():
        const += by * (one.high if by > 0 else one.low)
    return const


class _Query:
    """A query to Z3."""

    def __init__(self, condition: Cond):
        import z3

        self._z3: Any = z3  # its type annotations are too wide to be useful
        self._condition = condition
        self._atoms: dict[Atom, Any] = {}
        self._conds: dict[Cond, Any] = {}
        self._solver: Any = z3.Solver()
        self._fresh = 0
        self._solver.add(self._cond(condition))

    def answer(self, timeout: float) -> dict[Atom, int] | None:
        """Values that make the condition true; None if there are none."""
        z3 = self._z3
        end = time.monotonic() + timeout
        for _ in range(4):
            left = max(0.05, end - time.monotonic())
            self._solver.set("timeout", int(1000 * left))
            result = self._solver.check()
            if result == z3.unsat:
                return None
            if result != z3.sat:
                raise Unsolved(f"Z3 found no answer in {timeout:g} s")
            found = self._values()
            if Evaluation(found).condition(self._condition):
                return self._first(found)
            # Bits of large integers are not modelled exactly: other values may satisfy the condition.
            self._solver.add(z3.Or([self._atoms[one] != value for one, value in found.items()]))
        raise Unsolved("it depends on bits of integers, which are only checked while the kernel runs")

    def _values(self) -> dict[Atom, int]:
        model = self._solver.model()
        return {
            one: model.eval(variable, model_completion=True).as_long()
            for one, variable in self._atoms.items()
            if one.op in VARIABLES and one.op != "base"
        }

    def _first(self, found: dict[Atom, int]) -> dict[Atom, int]:
        """Other values with smaller program ids, iterations and indices, if they are found quickly."""
        z3, solver = self._z3, self._solver
        end = time.monotonic() + _FIRST_TIMEOUT
        order = {"pid": 0, "count": 1, "index": 2}
        wanted = sorted((one for one in found if one.op in order), key=lambda one: (order[one.op], one.args))
        for one in wanted:
            low, high = one.low, found[one]
            variable = self._atoms[one]
            guess = low  # the smallest first, then by halves
            while low < high:
                left = end - time.monotonic()
                if left <= 0:
                    return found
                solver.set("timeout", max(1, int(1000 * left)))
                solver.push()
                solver.add(variable <= guess)
                better = self._values() if solver.check() == z3.sat else None
                solver.pop()
                if better is not None and Evaluation(better).condition(self._condition):
                    found = better
                    high = better[one]
                else:
                    low = guess + 1
                guess = (low + high) // 2
            solver.add(variable == found[one])
        return found

    # --- from our expressions to Z3's ---

    def _sum(self, a: Sum) -> Any:
        total = None
        for one, by in a.terms:
            term = self._atom(one) if by == 1 else self._atom(one) * by
            total = term if total is None else total + term
        if total is None:
            return self._z3.IntVal(a.const)
        return total + a.const if a.const else total

    def _atom(self, one: Atom) -> Any:
        found = self._atoms.get(one)
        if found is None:
            encode = getattr(self, f"_{one.op}", None)
            found = self._variable(one) if encode is None else encode(one)
            self._atoms[one] = found
        return found

    def _variable(self, one: Atom) -> Any:
        if one.low == one.high:
            return self._z3.IntVal(one.low)
        return self._between(one.low, one.high)

    def _between(self, low: int, high: int) -> Any:
        self._fresh += 1
        variable = self._z3.Int(f"v{self._fresh}")
        self._solver.add(variable >= low, variable <= high)
        return variable

    def _select(self, one: Atom) -> Any:
        condition, a, b = one.args
        return self._z3.If(self._cond(condition), self._sum(a), self._sum(b))

    def _min(self, one: Atom) -> Any:
        a, b = (self._sum(arg) for arg in one.args)
        return self._z3.If(a <= b, a, b)

    def _max(self, one: Atom) -> Any:
        a, b = (self._sum(arg) for arg in one.args)
        return self._z3.If(a >= b, a, b)

    def _mul(self, one: Atom) -> Any:
        a, b = sorted(one.args, key=lambda arg: arg.high - arg.low)
        if a.high - a.low < _SMALL:
            other = self._sum(b)
            return self._by_case(a, lambda value: other * value)
        return self._sum(a) * self._sum(b)

    def _power(self, one: Atom) -> Any:
        return self._by_case(one.args[0], lambda value: self._z3.IntVal(1 << max(0, value)))

    def _and(self, one: Atom) -> Any:
        return self._bitwise(one, lambda a, b: self._z3.And(a, b))

    def _or(self, one: Atom) -> Any:
        return self._bitwise(one, lambda a, b: self._z3.Or(a, b))

    def _xor(self, one: Atom) -> Any:
        return self._bitwise(one, lambda a, b: self._z3.Xor(a, b))

    def _bitwise(self, one: Atom, join: Callable[[Any, Any], Any]) -> Any:
        numbers = [self._sum(arg) for arg in one.args]
        bits = max(arg.high for arg in one.args).bit_length()
        if bits > _BITS or any(arg.low < 0 for arg in one.args):
            return self._between(one.low, one.high)
        total = self._z3.IntVal(0)
        columns = [[self._between(0, 1) for _ in range(bits)] for _ in numbers]
        for number, column in zip(numbers, columns, strict=True):
            self._solver.add(number == sum(bit * (1 << position) for position, bit in enumerate(column)))
        for position, (a, b) in enumerate(zip(*columns, strict=True)):
            total = total + self._z3.If(join(a == 1, b == 1), 1 << position, 0)
        return total

    def _shr(self, one: Atom) -> Any:
        a = self._sum(one.args[0])
        return self._by_case(one.args[1], lambda value: a / (1 << max(0, value)))

    def _div(self, one: Atom) -> Any:
        return self._divided(one, 0)

    def _mod(self, one: Atom) -> Any:
        return self._divided(one, 1)

    def _divided(self, one: Atom, part: int) -> Any:
        a, b = one.args
        number = self._sum(a)
        if b.is_const:
            return self._split(number, a, b.const)[part]
        if b.high - b.low < _SMALL:
            return self._by_case(b, lambda value: self._split(number, a, value)[part] if value else number)
        divisor = self._sum(b)
        if a.low >= 0 and b.low > 0:
            return number / divisor if part == 0 else number % divisor
        z3 = self._z3
        x, y = z3.If(number < 0, -number, number), z3.If(divisor < 0, -divisor, divisor)
        if part:
            return z3.If(number < 0, -(x % y), x % y)
        return z3.If((number < 0) == (divisor < 0), x / y, -(x / y))

    def _split(self, number: Any, a: Sum, by: int) -> tuple[Any, Any]:
        """Quotient and rest, toward zero."""
        size = abs(by)
        if a.low >= 0:
            quotient = self._between(0, a.high // size)
            rest = self._between(0, size - 1)
            self._solver.add(number == quotient * size + rest)
        else:
            quotient = self._z3.If(number < 0, -((-number) / size), number / size)
            rest = number - quotient * size
        return (quotient if by > 0 else -quotient), rest

    def _by_case(self, a: Sum, of_value: Any) -> Any:
        """Apply a function to each value of a sum that has few values."""
        number = self._sum(a)
        result = of_value(a.high)
        for value in range(a.low, a.high):
            result = self._z3.If(number == value, of_value(value), result)
        return result

    def _wrap(self, one: Atom) -> Any:
        inner, bits, _ = one.args
        width = 1 << bits
        turns = self._between((inner.low - one.low) // width, (inner.high - one.low) // width)
        rest = self._between(one.low, one.high)
        self._solver.add(self._sum(inner) == turns * width + rest)
        return rest

    def _cond(self, c: Cond) -> Any:
        found = self._conds.get(c)
        if found is None:
            z3 = self._z3
            if c.op == "ge":
                found = self._sum(c.args[0]) >= 0
            elif c.op == "eq":
                found = self._sum(c.args[0]) == 0
            elif c.op == "ne":
                found = self._sum(c.args[0]) != 0
            elif c.op in ("and", "or"):
                found = (z3.And if c.op == "and" else z3.Or)([self._cond(part) for part in c.args])
            else:
                found = z3.BoolVal(c.op == "true")
            self._conds[c] = found
        return found


def unknowns(*nodes: Any) -> list[Atom]:
    """The unknowns in expressions: integers that are known only when the kernel runs."""
    return [one for one in atoms_of(*nodes) if one.op == "unknown"]
