"""Arithmetic with directed rounding agrees with exact fractions."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from triton_viz.numerics import rounding

DIRECTIONS = "nzdu"
KINDS = [np.float32, np.float64]


def in_direction(exact: Fraction, kind: type[np.floating], direction: str) -> float:
    """The correctly rounded float, found by comparing a fraction with neighbouring floats."""
    infinity = kind(np.inf)
    try:
        with np.errstate(over="ignore"):
            near = kind(float(exact))
    except OverflowError:
        near = infinity if exact > 0 else -infinity

    def beyond(value: np.floating) -> bool:
        return bool(value == infinity) or (bool(value > -infinity) and Fraction(float(value)) > exact)

    with np.errstate(all="ignore"):
        lower = near
        while beyond(lower):
            lower = np.nextafter(lower, -infinity)
        upper = (
            lower if lower != -infinity and Fraction(float(lower)) == exact else np.nextafter(lower, infinity)
        )
    if direction == "z":
        direction = "d" if exact >= 0 else "u"
    if direction != "n":
        return float(lower if direction == "d" else upper)
    if np.isinf(lower) or np.isinf(upper):  # past the last float: half of a step further is infinite
        finite = float(upper if np.isinf(lower) else lower)
        last = Fraction(finite) - Fraction(float(np.nextafter(kind(finite), kind(0))))
        over = abs(exact) >= abs(Fraction(finite)) + abs(last) / 2
        return math.copysign(math.inf, finite) if over else finite
    below, above = exact - Fraction(float(lower)), Fraction(float(upper)) - exact
    if below == above:
        word = np.uint32 if kind is np.float32 else np.uint64
        return float(lower if not lower.view(word) & 1 else upper)
    return float(lower if below < above else upper)


def floats(kind: type[np.floating]) -> st.SearchStrategy[float]:
    bits = 32 if kind is np.float32 else 64
    anything = st.floats(width=bits, allow_nan=False, allow_infinity=False)
    return anything | st.floats(-4, 4, width=bits) | st.integers(-99, 99).map(float)


def check(function: Callable[..., np.ndarray], exact: Fraction, kind: type[np.floating], *given: Any) -> None:
    for direction in DIRECTIONS:
        with np.errstate(all="ignore"):
            result = function(*(np.array([value]) for value in given), direction)
        assert result.dtype == kind
        assert float(result[0]) == in_direction(exact, kind, direction), (direction, given)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_sums_differences_and_products_are_exactly_rounded(
    kind: type[np.floating], data: st.DataObject
) -> None:
    a, b = kind(data.draw(floats(kind))), kind(data.draw(floats(kind)))
    check(rounding.add, Fraction(float(a)) + Fraction(float(b)), kind, a, b)
    check(rounding.subtract, Fraction(float(a)) - Fraction(float(b)), kind, a, b)
    check(rounding.multiply, Fraction(float(a)) * Fraction(float(b)), kind, a, b)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_quotients_are_exactly_rounded(kind: type[np.floating], data: st.DataObject) -> None:
    a, b = kind(data.draw(floats(kind))), kind(data.draw(floats(kind).filter(bool)))
    check(rounding.divide, Fraction(float(a)) / Fraction(float(b)), kind, a, b)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_products_plus_something_are_rounded_once(kind: type[np.floating], data: st.DataObject) -> None:
    a, b, c = (kind(data.draw(floats(kind))) for _ in range(3))
    check(rounding.multiply_add, Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)), kind, a, b, c)
    with np.errstate(all="ignore"):
        cancelled = -(a * b)  # the rest is the error of the product
    if np.isfinite(cancelled):
        left = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(cancelled))
        check(rounding.multiply_add, left, kind, a, b, cancelled)


@given(data=st.data())
def test_products_plus_something_can_be_rounded_once_more_if_they_were_rounded_to_odd(
    data: st.DataObject,
) -> None:
    a, b, c = (np.float32(data.draw(floats(np.float32))) for _ in range(3))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    with np.errstate(all="ignore"):
        (found,) = rounding.multiply_add_to_odd(*(np.array([value]) for value in (a, b, c)))
    assert found.dtype == np.float32
    down, up = (in_direction(exact, np.float32, way) for way in "du")
    assert float(found) in (down, up)
    assert down == up or found.view(np.uint32) & 1


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_square_roots_are_exactly_rounded(kind: type[np.floating], data: st.DataObject) -> None:
    a = kind(abs(data.draw(floats(kind))))
    square = Fraction(float(a))
    down, up = (float(rounding.square_root(np.array([a]), way)[0]) for way in "du")
    assert Fraction(down) ** 2 <= square <= Fraction(up) ** 2
    assert up in (down, float(np.nextafter(kind(down), kind(np.inf))))
    assert (up == down) == (Fraction(down) ** 2 == square)
    assert rounding.square_root(np.array([a]), "z")[0] == down
    middle = (Fraction(down) + Fraction(up)) / 2
    assert rounding.square_root(np.array([a]), "n")[0] == (down if square < middle**2 else up)


@given(value=st.floats(allow_nan=False, allow_infinity=False))
@example(value=3.4028235677973366e38)  # half a step past float32's last
@example(value=1e-46)
def test_float64_becomes_the_float32_on_the_right_side(value: float) -> None:
    check(rounding.to_single, Fraction(value), np.float32, np.float64(value))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integer", [np.int32, np.uint32, np.int64, np.uint64])
@given(data=st.data())
def test_integers_become_the_float_on_the_right_side(
    integer: type[np.integer], kind: type[np.floating], data: st.DataObject
) -> None:
    info = np.iinfo(integer)
    ends = st.integers(-99, 99).map(lambda i: info.max + i if i <= 0 else info.min + i)
    value = data.draw(st.integers(int(info.min), int(info.max)) | ends)
    for direction in DIRECTIONS:
        result = rounding.from_integer(np.array([value], integer), kind, direction)
        assert result.dtype == kind
        assert float(result[0]) == in_direction(Fraction(value), kind, direction)


@pytest.mark.parametrize("integer", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_floats_become_integers_within_range(
    kind: type[np.floating], integer: type[np.integer], data: st.DataObject
) -> None:
    info = np.iinfo(integer)
    value = float(kind(data.draw(floats(kind) | st.floats(-3e19, 3e19) | st.floats(-5e9, 5e9))))
    whole = {"n": round, "z": math.trunc, "d": math.floor, "u": math.ceil}
    with np.errstate(invalid="ignore"):
        for direction, function in whole.items():
            result = rounding.to_integer(np.array([value], kind), integer, direction)
            assert result.dtype == integer
            assert int(result[0]) == min(max(function(value), int(info.min)), int(info.max))


def test_nan_is_no_integer_but_has_one() -> None:
    single, double = np.array([np.nan], np.float32), np.array([np.nan])
    assert rounding.to_integer(single, np.int32, "n").tolist() == [0]
    assert rounding.to_integer(double, np.int32, "n").tolist() == [-(2**31)]
    assert rounding.to_integer(single, np.int64, "n").tolist() == [-(2**63)]
    assert rounding.to_integer(double, np.uint64, "n").tolist() == [2**63]


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_have_the_sign_that_the_direction_gives_them(kind: type[np.floating]) -> None:
    one, zero = np.array([1], kind), np.array([0], kind)
    for direction in DIRECTIONS:
        negative = direction == "d"
        assert np.signbit(rounding.add(one, -one, direction))[0] == negative
        assert np.signbit(rounding.subtract(one, one, direction))[0] == negative
        assert np.signbit(rounding.multiply_add(one, one, -one, direction))[0] == negative
        assert not np.signbit(rounding.add(zero, zero, direction))[0]
        assert np.signbit(rounding.add(-zero, -zero, direction))[0]
        assert np.signbit(rounding.multiply(-zero, one, direction))[0]
        assert not np.signbit(rounding.multiply_add(zero, one, zero, direction))[0]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_infinities_and_nan_go_through(kind: type[np.floating], direction: str) -> None:
    infinity, one, zero = np.array([np.inf], kind), np.array([1], kind), np.array([0], kind)
    with np.errstate(all="ignore"):
        assert rounding.add(infinity, one, direction)[0] == np.inf
        assert rounding.multiply(infinity, -one, direction)[0] == -np.inf
        assert rounding.divide(one, zero, direction)[0] == np.inf
        assert rounding.divide(-one, infinity, direction)[0] == 0
        assert rounding.square_root(infinity, direction)[0] == np.inf
        assert rounding.multiply_add(infinity, one, one, direction)[0] == np.inf
        assert np.isnan(rounding.add(infinity, -infinity, direction)[0])
        assert np.isnan(rounding.divide(zero, zero, direction)[0])
        assert np.isnan(rounding.square_root(-one, direction)[0])
        assert np.isnan(rounding.multiply_add(infinity, zero, one, direction)[0])
