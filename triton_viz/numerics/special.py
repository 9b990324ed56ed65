"""Special functions that NumPy lacks, on arrays of float32 or float64 of any layout.

float32 goes through float64 and back, `erf` excepted, which kernels use most. SciPy has all of these, but is
no dependency.
"""

from collections.abc import Callable

import numpy as np


def erf(a: np.ndarray) -> np.ndarray:
    """The error function."""
    return _of_torch("erf")(np.asarray(a))


def erfc(a: np.ndarray) -> np.ndarray:
    """1 - erf, precise where erf is close to 1."""
    return in_double(_of_torch("erfc"), a)


def erfcx(a: np.ndarray) -> np.ndarray:
    """exp(a**2) * erfc(a)."""
    return in_double(_of_torch("erfcx"), a)


def erfinv(a: np.ndarray) -> np.ndarray:
    """The inverse of erf."""
    return in_double(_of_torch("erfinv"), a)


def erfcinv(a: np.ndarray) -> np.ndarray:
    """The inverse of erfc."""
    return in_double(lambda x: -_of_torch("ndtri")(x / 2) / np.sqrt(2), a)


def normcdf(a: np.ndarray) -> np.ndarray:
    """The standard normal distribution."""
    return in_double(lambda x: erfc(-x / np.sqrt(2)) / 2, a)


def normcdfinv(a: np.ndarray) -> np.ndarray:
    """The inverse of the standard normal distribution."""
    return in_double(_of_torch("ndtri"), a)


def lgamma(a: np.ndarray) -> np.ndarray:
    """The logarithm of the gamma function's size."""
    return in_double(_of_torch("gammaln"), a)


def tgamma(a: np.ndarray) -> np.ndarray:
    """The gamma function."""
    return in_double(_gamma, a)


def sinpi(a: np.ndarray) -> np.ndarray:
    """sin(pi * a), exact at the quarters of a turn."""

    def sine_of_turn(x: np.ndarray) -> np.ndarray:
        sine, cosine, quarter = _turn(x)
        result = np.where(quarter % 2 == 0, sine, cosine) * np.where(quarter < 2, 1.0, -1.0)
        return np.where(result == 0, np.copysign(0.0, x), result)

    return in_double(sine_of_turn, a)


def cospi(a: np.ndarray) -> np.ndarray:
    """cos(pi * a), exact at the quarters of a turn."""

    def cosine_of_turn(x: np.ndarray) -> np.ndarray:
        sine, cosine, quarter = _turn(x)
        result = np.where(quarter % 2 == 0, cosine, sine) * np.where((quarter - 0.5) // 2 == 0, -1.0, 1.0)
        return np.where(result == 0, 0.0, result)

    return in_double(cosine_of_turn, a)


def i0(a: np.ndarray) -> np.ndarray:
    """The modified Bessel function of order 0."""
    return np.where(np.isinf(a), np.abs(a), in_double(_of_torch("i0"), a))


def i1(a: np.ndarray) -> np.ndarray:
    """The modified Bessel function of order 1."""
    return np.where(np.isinf(a) | (a == 0), a, in_double(_of_torch("i1"), a))


def in_double(function: Callable[[np.ndarray], np.ndarray], a: np.ndarray) -> np.ndarray:
    """A function computed in float64, its result in the argument's dtype."""
    a = np.asarray(a)
    with np.errstate(all="ignore"):
        return np.asarray(function(a.astype(np.float64, copy=False)), a.dtype)


def _of_torch(name: str) -> Callable[[np.ndarray], np.ndarray]:
    import torch

    function = getattr(torch.special, name)

    def on_array(a: np.ndarray) -> np.ndarray:
        # PyTorch warns of arrays that may not be written to, as broadcast ones, and takes no negative steps.
        return function(torch.from_numpy(np.require(a, requirements=["C", "W"]))).numpy()

    return on_array


def _gamma(x: np.ndarray) -> np.ndarray:
    """Stirling's series from 16 on, recurrence below, reflection left of a half."""
    left = x < 0.5
    y = np.where(left, 1 - x, x)
    below = np.ones(y.shape)  # y * (y + 1) * ... up to 16
    for _ in range(16):
        small = y < 16
        below = np.where(small, below * y, below)
        y = np.where(small, y + 1, y)
    series = np.zeros(y.shape)
    for term in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        series = series / (y * y) + term
    root = np.power(y, y / 2 - 0.25)  # in two halves: the whole would overflow before the result does
    right = np.sqrt(2 * np.pi) * root * np.exp(-y) * root * np.exp(series / y) / below
    right = np.where(y > 200, np.inf, right)
    result = np.where(left, np.pi / (sinpi(x) * right), right)
    result = np.where((x < 0) & (x == np.floor(x)), np.nan, result)
    return np.where(x == 0, np.copysign(np.inf, x), result)


def _turn(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """sin and cos of pi times the distance of x from its nearest half-integer, and its index (mod 4)."""
    x = np.fmod(x, 2)
    quarters = np.rint(x * 2)
    rest = (x - quarters / 2) * np.pi
    return np.sin(rest), np.cos(rest), np.mod(quarters, 4)
