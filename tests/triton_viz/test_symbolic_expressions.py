"""Symbolic expressions: they evaluate like Python's, and the solver's answers are correct."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triton_viz.dsls.triton.symbolic import expression as e
from triton_viz.dsls.triton.symbolic import integers, solver
from triton_viz.dsls.triton.symbolic.evaluate import Evaluation, Substitution
from triton_viz.dsls.triton.symbolic.integers import IntegerType
from triton_viz.dsls.triton.symbolic.nodes import Atom, Cond, Sum

INT8 = IntegerType(8, True)
UINT8 = IntegerType(8, False)
SIZES = (5, 4, 3)
"""Three variables, and the number of values of each."""

Number = Callable[[dict[Atom, int]], int]
Pair = tuple[Sum, Number]
"""A number as an expression, and as plain Python."""


def variables() -> list[Sum]:
    return [e.program_id(0, SIZES[0]), e.index(0, SIZES[1]), e.counter(1, 1, SIZES[2])]


def settings_of() -> list[dict[Atom, int]]:
    atoms = [v.terms[0][0] for v in variables()]
    return [
        dict(zip(atoms, values, strict=True))
        for values in itertools.product(*(range(size) for size in SIZES))
    ]


def wrapped(value: int, kind: IntegerType) -> int:
    return (value - kind.low) % (1 << kind.bits) + kind.low


def toward_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def binary(
    expression: Callable[[Sum, Sum], Sum], python: Callable[[int, int], int]
) -> Callable[[Pair, Pair], Pair]:
    return lambda a, b: (expression(a[0], b[0]), lambda at: python(a[1](at), b[1](at)))


def by_constant(
    expression: Callable[[Sum, Sum], Sum], python: Callable[[int, int], int], values: list[int]
) -> Callable[[st.SearchStrategy[Pair]], st.SearchStrategy[Pair]]:
    def make(numbers: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
        return st.builds(
            lambda a, n: (expression(a[0], e.number(n)), lambda at: python(a[1](at), n)),
            numbers,
            st.sampled_from(values),
        )

    return make


def pair_of_variable(place: int) -> Pair:
    variable = variables()[place]
    one = variable.terms[0][0]
    return variable, lambda at: at[one]


def leaves() -> st.SearchStrategy[Pair]:
    constants = st.integers(-9, 9).map(lambda n: (e.number(n), lambda at: n))
    return st.one_of(st.integers(0, 2).map(pair_of_variable), constants)


def chosen(a: Pair, b: Pair, x: Pair, y: Pair) -> Pair:
    return e.choose(e.less(a[0], b[0]), x[0], y[0]), lambda at: x[1](at) if a[1](at) < b[1](at) else y[1](at)


def nonzero(python: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: python(a, b) if b else 0


def grown(numbers: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    two = {
        "add": binary(e.add, lambda a, b: a + b),
        "subtract": binary(e.subtract, lambda a, b: a - b),
        "multiply": binary(e.multiply, lambda a, b: a * b),
        "minimum": binary(e.minimum, min),
        "maximum": binary(e.maximum, max),
    }
    divisors = [-3, -2, 1, 2, 3, 4, 7]
    return st.one_of(
        *(st.builds(function, numbers, numbers) for function in two.values()),
        by_constant(integers.divide, toward_zero, divisors)(numbers),
        by_constant(integers.remainder, lambda a, b: a - toward_zero(a, b) * b, divisors)(numbers),
        by_constant(lambda a, b: integers.bits_and(a, b, INT8), lambda a, b: a & b, [0, 1, 3, 7, -2, -4, 5])(
            numbers
        ),
        by_constant(lambda a, b: integers.bits_or(a, b, INT8), lambda a, b: a | b, [0, 1, 3, 12])(numbers),
        by_constant(lambda a, b: integers.bits_xor(a, b, INT8), lambda a, b: a ^ b, [0, 1, 3, -1])(numbers),
        by_constant(lambda a, b: integers.shift_right(a, b, INT8), lambda a, b: a >> b, [0, 1, 3])(numbers),
        st.builds(lambda a: (integers.wrap(a[0], INT8), lambda at: wrapped(a[1](at), INT8)), numbers),
        st.builds(lambda a: (integers.wrap(a[0], UINT8), lambda at: wrapped(a[1](at), UINT8)), numbers),
        st.builds(lambda a: (integers.absolute(a[0]), lambda at: abs(a[1](at))), numbers),
        st.builds(chosen, numbers, numbers, numbers, numbers),
    )


def small_numbers() -> st.SearchStrategy[Pair]:
    return st.recursive(leaves(), grown, max_leaves=10)


generated = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)


@generated
@given(small_numbers())
def test_an_expression_is_what_python_computes_and_stays_in_its_interval(pair: Pair):
    expression, python = pair
    for at in settings_of():
        value = python(at)
        assert Evaluation(at).number(expression) == value
        assert expression.low <= value <= expression.high


@generated
@given(small_numbers(), st.integers(-20, 60))
def test_the_solver_finds_values_exactly_where_there_are_some(pair: Pair, limit: int):
    expression, python = pair
    beyond = e.less(e.number(limit), expression)
    exists = any(python(at) > limit for at in settings_of())
    try:
        found = solver.find(beyond)
    except solver.Unsolved:
        return
    assert (found is not None) == exists
    if found is not None:
        assert python({one: found.get(one, one.low) for one in settings_of()[0]}) > limit


@generated
@given(small_numbers(), small_numbers(), st.integers(-20, 60), st.integers(-20, 20))
def test_what_sums_of_inequalities_refute_never_holds(a: Pair, b: Pair, limit: int, other: int):
    (x, of_x), (y, of_y) = a, b
    question = e.all_of((e.less(e.number(limit), x), e.less(y, e.number(other)), e.less(x, y)))
    if question is e.FALSE or solver.refuted(question):
        assert not any(of_x(at) > limit and of_y(at) < other and of_x(at) < of_y(at) for at in settings_of())


@generated
@given(small_numbers(), small_numbers(), small_numbers())
def test_replacing_a_variable_is_computing_with_its_value(pair: Pair, by: Pair, other: Pair):
    expression, python = pair
    variable = variables()[0].terms[0][0]
    replaced = Substitution({variable: by[0]})(expression)
    for at in settings_of():
        value = by[1](at)
        if 0 <= value < SIZES[0]:  # elsewhere the expression means nothing
            assert Evaluation(at).number(replaced) == python({**at, variable: value})


def conditions() -> st.SearchStrategy[tuple[Cond, Callable[[dict[Atom, int]], bool]]]:
    def compared(a: Pair, b: Pair, op: str) -> tuple[Cond, Callable[[dict[Atom, int]], bool]]:
        if op == "<":
            return e.less(a[0], b[0]), lambda at: a[1](at) < b[1](at)
        if op == "==":
            return e.equal(a[0], b[0]), lambda at: a[1](at) == b[1](at)
        return e.at_least(a[0], b[0]), lambda at: a[1](at) >= b[1](at)

    small = st.recursive(leaves(), grown, max_leaves=3)
    basic = st.builds(compared, small, small, st.sampled_from(["<", "==", ">="]))
    return st.recursive(
        basic,
        lambda inner: st.one_of(
            st.builds(lambda c: (e.opposite(c[0]), lambda at: not c[1](at)), inner),
            st.builds(lambda c, d: (e.all_of((c[0], d[0])), lambda at: c[1](at) and d[1](at)), inner, inner),
            st.builds(lambda c, d: (e.any_of((c[0], d[0])), lambda at: c[1](at) or d[1](at)), inner, inner),
        ),
        max_leaves=6,
    )


@generated
@given(conditions(), conditions())
def test_conditions_are_what_python_decides_also_without_what_is_known(one, other):
    condition, python = one
    known, holds = other
    left = e.given(condition, known)
    for at in settings_of():
        assert Evaluation(at).condition(condition) == python(at)
        if holds(at):
            assert Evaluation(at).condition(left) == python(at)


@pytest.mark.parametrize("a", range(-9, 10))
@pytest.mark.parametrize("b", [-4, -1, 1, 2, 5])
def test_divisions_of_constants_go_toward_zero(a: int, b: int):
    assert integers.divide(e.number(a), e.number(b)).const == toward_zero(a, b)
    assert integers.remainder(e.number(a), e.number(b)).const == a - toward_zero(a, b) * b


def test_alike_expressions_are_one():
    x, y = variables()[:2]
    assert e.add(x, y) == e.add(y, x)
    assert e.less(x, y) is e.less(x, y)
    assert e.subtract(e.add(x, y), y) == x


def test_a_block_index_within_a_tile_needs_no_solver():
    program, element = e.program_id(0, 1000), e.index(0, 128)
    at = e.add(e.scale(program, 128), element)
    assert integers.divide(at, e.number(128)) == program
    assert integers.remainder(at, e.number(128)) == element
