"""Arithmetic rounded downward, upward or toward zero, which NumPy has no switch for.

An op is computed to nearest. The sign of its rounding error (exact result minus given result) then decides
whether to step to the next float. That sign is computed exactly, so results agree with IEEE 754. Directions
are PTX's letters: n(earest even), z(ero), d(own), u(p). All arguments of an op have the same dtype.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np


def step(nearest: np.ndarray, excess: np.ndarray, direction: str) -> np.ndarray:
    """The result rounded in a direction, from the nearest one and the sign of exact minus nearest."""
    if direction == "n":
        return nearest
    infinity = nearest.dtype.type(np.inf)
    below, above = np.nextafter(nearest, -infinity), np.nextafter(nearest, infinity)
    if direction == "d":
        return np.where(excess < 0, below, nearest)
    if direction == "u":
        return np.where(excess > 0, above, nearest)
    # A zero with a rounding error has the sign of the exact result, and is not stepped.
    past = (excess < 0) & (nearest > 0) | (excess > 0) & (nearest < 0)
    return np.where(past, np.nextafter(nearest, nearest.dtype.type(0)), nearest)


def add(a: np.ndarray, b: np.ndarray, direction: str) -> np.ndarray:
    """a + b."""
    nearest = np.asarray(a + b)
    if direction == "n":
        return nearest
    result = step(nearest, _excess(nearest, _lost(a, b, nearest), a, b), direction)
    if direction == "d":  # x + -x is -0 when rounding down
        result = np.where((nearest == 0) & ~(_is_plus_zero(a) & _is_plus_zero(b)), -np.abs(result), result)
    return result


def subtract(a: np.ndarray, b: np.ndarray, direction: str) -> np.ndarray:
    """a - b."""
    return add(a, np.negative(b), direction)


def multiply(a: np.ndarray, b: np.ndarray, direction: str) -> np.ndarray:
    """a * b."""
    nearest = np.asarray(a * b)
    if direction == "n":
        return nearest
    return step(nearest, _excess(nearest, _compare_product(a, b, nearest), a, b), direction)


def divide(a: np.ndarray, b: np.ndarray, direction: str) -> np.ndarray:
    """a / b."""
    nearest = np.asarray(a / b)
    if direction == "n":
        return nearest
    below = -_compare_product(nearest, b, a) * np.sign(b)
    excess = np.where(b == 0, 0, _excess(nearest, below, a, b))  # a division by zero is exactly infinite
    return step(nearest, excess, direction)


def square_root(a: np.ndarray, direction: str) -> np.ndarray:
    """sqrt(a)."""
    nearest = np.asarray(np.sqrt(a))
    if direction == "n":
        return nearest
    return step(nearest, _excess(nearest, -_compare_product(nearest, nearest, a), a), direction)


def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray, direction: str) -> np.ndarray:
    """a * b + c, rounded once."""
    a, b, c = np.broadcast_arrays(a, b, c)
    plain = np.asarray(a * b + c)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    fused = _fused_single if a.dtype == np.float32 else _fused_double
    nearest, excess = fused(a, b, c)
    result = step(nearest, _excess(nearest, excess, a, b, c), direction)
    # Zeros and non-finite values are correct, except the zero of x + -x when rounding down.
    zero = (nearest == 0) & (excess == 0)
    if direction == "d":
        positive = (np.signbit(a) == np.signbit(b)) & ~np.signbit(c)
        plain = np.where(zero & finite & ~positive, -np.abs(plain), plain)
    return np.where(finite & ~zero, result, plain)


def multiply_add_to_odd(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c of float32s, rounded to odd: then rounding once more, to fewer digits, gives the nearest."""
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    nearest, excess = _fused_single(a, b, c)
    even = nearest.view(np.uint32) & 1 == 0
    away = np.nextafter(nearest, np.where(excess > 0, np.inf, -np.inf).astype(np.float32))
    return np.where(finite, np.where((excess != 0) & even, away, nearest), a * b + c)


def to_single(a: np.ndarray, direction: str) -> np.ndarray:
    """A float64 as float32."""
    nearest = np.asarray(a).astype(np.float32)
    return step(nearest, _excess(nearest, np.sign(a - nearest.astype(np.float64)), a), direction)


def from_integer(a: np.ndarray, dtype: type[np.floating], direction: str) -> np.ndarray:
    """An integer of any width as float32 or float64."""
    a = np.asarray(a)
    nearest = a.astype(dtype)
    if a.dtype.itemsize < 8:
        return step(nearest, np.sign(a.astype(np.float64) - nearest), direction)
    upper, lower = a >> 32, a & 0xFFFFFFFF  # each exact in a float64, and so is their distance from `nearest`
    excess = (upper.astype(np.float64) * 2.0**32 - nearest) + lower.astype(np.float64)
    return step(nearest, np.sign(excess), direction)


_TO_INTEGRAL: dict[str, Callable[..., np.ndarray]] = {
    "n": np.rint,
    "z": np.trunc,
    "d": np.floor,
    "u": np.ceil,
}


def to_integer(a: np.ndarray, dtype: type[np.integer], direction: str) -> np.ndarray:
    """A float as an integer; values out of range saturate, as in PTX."""
    info = np.iinfo(dtype)
    # NaN is 0, except where 64 bits are involved: there only the highest bit is set.
    wide = a.dtype == np.float64 or info.bits == 64
    highest = 1 << (info.bits - 1)
    nan = (highest if info.min == 0 else -highest) if wide else 0
    whole = _TO_INTEGRAL[direction](a)
    inside = (whole >= float(info.min)) & (whole < float(info.max + 1))
    ends = np.where(whole < 0, dtype(info.min), dtype(info.max))
    return np.where(inside, np.where(inside, whole, 0).astype(dtype), np.where(np.isnan(a), dtype(nan), ends))


def _is_plus_zero(a: np.ndarray) -> np.ndarray:
    return (a == 0) & ~np.signbit(a)


def _excess(nearest: np.ndarray, excess: np.ndarray, *arguments: np.ndarray) -> np.ndarray:
    """The sign given, but below an infinity that finite arguments overflowed to, and 0 for other ones."""
    finite = np.logical_and.reduce(np.broadcast_arrays(*[np.isfinite(a) for a in arguments]))
    return np.where(finite, np.where(np.isinf(nearest), -np.sign(nearest), excess), 0)


def _lost(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The rounding error of a + b: a float, and exact (Knuth's two-sum)."""
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A float64 as the sum of two with 26 significant bits each (Veltkamp)."""
    scaled = a * 134217729.0
    upper = scaled - (scaled - a)
    return upper, a - upper


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a * b of float64s in [0.5, 1) as the sum of two (Dekker)."""
    nearest = a * b
    (a_upper, a_lower), (b_upper, b_lower) = _split(a), _split(b)
    lost = ((a_upper * b_upper - nearest) + a_upper * b_lower + a_lower * b_upper) + a_lower * b_lower
    return nearest, lost


def _compare_product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The sign of a * b - c."""
    if np.asarray(a).dtype == np.float32:  # two float32s multiply exactly in a float64
        return np.sign(a.astype(np.float64) * b - c)
    (a, a_exponent), (b, b_exponent) = np.frexp(a), np.frexp(b)
    nearest, lost = _product(a, b)
    # Where this over- or underflows, c is so far from the product that the sign is the same.
    scaled = np.ldexp(c, -(a_exponent + b_exponent))
    return np.where(nearest == 0, -np.sign(c), np.sign((nearest - scaled) + lost))


def _to_odd(nearest: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Of the two float64s around nearest + lost the one with an odd mantissa: it can be rounded once more."""
    even = np.asarray(nearest).view(np.uint64) & 1 == 0
    away = np.nextafter(nearest, np.where(lost > 0, np.inf, -np.inf))
    return np.where((lost != 0) & even, away, nearest)


def _fused_single(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    odd = _to_odd(total, _lost(product, addend, total))
    nearest = odd.astype(np.float32)
    return nearest, np.sign(odd - nearest)


def _fused_double(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boldo and Melquiond's way, with exponents taken out; where those get in the way, exact fractions."""
    (a_part, a_exponent), (b_part, b_exponent) = np.frexp(a), np.frexp(b)
    exponent = a_exponent + b_exponent
    scaled = np.ldexp(c, -exponent)
    product, product_lost = _product(a_part, b_part)
    middle = scaled + product_lost
    middle_lost = _lost(scaled, product_lost, middle)
    upper = product + middle
    upper_lost = _lost(product, middle, upper)
    rest = middle_lost + upper_lost
    rest = _to_odd(rest, _lost(middle_lost, upper_lost, rest))
    total = upper + rest
    excess = np.sign(_lost(upper, rest, total))
    nearest = np.asarray(np.ldexp(total, exponent))

    tiny, huge = np.finfo(np.float64).tiny, np.finfo(np.float64).max
    easy = (np.ldexp(scaled, exponent) == c) & (np.abs(scaled) < 1e300)
    easy &= (np.abs(nearest) > tiny) & (np.abs(nearest) < huge) | (a == 0) | (b == 0)
    hard = ~easy & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    zero_product = (a == 0) | (b == 0)
    nearest, excess = np.where(zero_product, c, nearest), np.where(zero_product, 0, excess)
    for index in zip(*np.nonzero(np.atleast_1d(hard & ~zero_product)), strict=True):
        at = index if nearest.ndim else ()
        nearest[at], excess[at] = _fused_exact(float(a[at]), float(b[at]), float(c[at]))
    return nearest, excess


def _fused_exact(a: float, b: float, c: float) -> tuple[float, int]:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        nearest = float(exact)
    except OverflowError:
        return (np.inf if exact > 0 else -np.inf), 0
    if nearest == 0 and exact < 0:
        nearest = -0.0
    return nearest, (exact > Fraction(nearest)) - (exact < Fraction(nearest))
