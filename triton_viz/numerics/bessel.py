"""Bessel functions of the first and second kind, of any integer order. PyTorch's have seven digits only.

Up to 25: all orders at once by recurrence from above (Miller), and from those the second kind (Neumann's
series). Beyond: Hankel's expansion, which by then has all digits. Orders above one follow by recurrence, in
the direction that is stable. float32 goes through float64 and back.
"""

import numpy as np

from triton_viz.numerics.special import in_double, tgamma

_EULER = 0.57721566490153286061
_TINY, _MIDDLE = 1e-4, 25.0  # two terms of the power series do below, Hankel's expansion above
_START = 100  # an order whose function is below 1e-50 up to 25
_TERMS = 26


def j0(a: np.ndarray) -> np.ndarray:
    """The first kind, order 0."""
    return in_double(lambda x: _orders_0_and_1(np.abs(x))[0], a)


def j1(a: np.ndarray) -> np.ndarray:
    """The first kind, order 1."""
    return in_double(lambda x: np.copysign(1, x) * _orders_0_and_1(np.abs(x))[1], a)


def y0(a: np.ndarray) -> np.ndarray:
    """The second kind, order 0."""
    return in_double(lambda x: np.where(x < 0, np.nan, _orders_0_and_1(np.abs(x))[2]), a)


def y1(a: np.ndarray) -> np.ndarray:
    """The second kind, order 1."""
    return in_double(lambda x: np.where(x < 0, np.nan, _orders_0_and_1(np.abs(x))[3]), a)


def jn(order: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The first kind, any order; NaN for a negative one, as CUDA has it."""

    def first_kind(x: np.ndarray) -> np.ndarray:
        n, size = np.broadcast_arrays(order, np.abs(x))
        upward = _upward(n, size, *_orders_0_and_1(size)[:2])
        with_sign = np.where((x < 0) & (n % 2 == 1), -1.0, 1.0)
        value = np.where(n <= np.maximum(size, 1), upward, _from_above(n, size))
        return np.where(n < 0, np.nan, with_sign * value)

    return in_double(first_kind, a)


def yn(order: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The second kind, any order; NaN for a negative one, as CUDA has it."""

    def second_kind(x: np.ndarray) -> np.ndarray:
        n, size = np.broadcast_arrays(order, np.abs(x))
        value = _upward(n, size, *_orders_0_and_1(size)[2:])
        return np.where((n < 0) | (x < 0), np.nan, np.where(x == 0, -np.inf, value))

    return in_double(second_kind, a)


def _orders_0_and_1(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """J0, J1, Y0 and Y1 of numbers that are not negative."""
    tiny, large = _near_zero(x), _far_out(np.maximum(x, _MIDDLE))
    middle = _in_the_middle(np.clip(x, _TINY, _MIDDLE))
    j0, j1, y0, y1 = (
        np.where(x < _TINY, low, np.where(x > _MIDDLE, high, between))
        for low, between, high in zip(tiny, middle, large, strict=True)
    )
    return j0, j1, y0, y1


def _near_zero(x: np.ndarray) -> tuple[np.ndarray, ...]:
    logarithm = 2 / np.pi * (np.log(x) - np.log(2) + _EULER)
    j0, j1 = 1 - x * x / 4, x / 2 * (1 - x * x / 8)
    y0 = logarithm * j0 + x * x / (2 * np.pi)
    y1 = np.where(x == 0, -np.inf, -2 / (np.pi * x) + logarithm * j1 - x / (2 * np.pi))
    return j0, j1, y0, y1


def _in_the_middle(x: np.ndarray) -> tuple[np.ndarray, ...]:
    above, here = np.zeros(x.shape), np.full(x.shape, 1e-200)
    total, of_y0, of_y1 = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape)
    for order in range(_START, 0, -1):
        half, is_odd = divmod(order, 2)
        sign = -1.0 if half % 2 else 1.0
        if not is_odd:
            total = total + 2 * here
            of_y0 = of_y0 + sign / half * here
        else:  # terms half + 1, as its lower neighbour, and half, as its upper one
            of_y1 = of_y1 - sign * (1 / (half + 1) + (1 / half if half else 0)) * here
        above, here = here, 2 * order / x * here - above
        shrink = np.where(np.abs(here) > 1e200, 1e-200, 1.0)
        above, here = above * shrink, here * shrink
        total, of_y0, of_y1 = total * shrink, of_y0 * shrink, of_y1 * shrink
    total = total + here  # J0 + 2 J2 + 2 J4 + ... is 1
    j0, j1, of_y0, of_y1 = here / total, above / total, of_y0 / total, of_y1 / total
    logarithm = 2 / np.pi * (np.log(x) - np.log(2) + _EULER)
    y0 = logarithm * j0 - 4 / np.pi * of_y0
    y1 = logarithm * j1 - 2 / (np.pi * x) * j0 + 2 / np.pi * of_y1
    return j0, j1, y0, y1


def _far_out(x: np.ndarray) -> tuple[np.ndarray, ...]:
    sine, cosine, root = np.sin(x), np.cos(x), 1 / np.sqrt(np.pi * x)
    results: list[np.ndarray] = []
    for order in (0, 1):
        even, odd, term = np.ones(x.shape), np.zeros(x.shape), np.ones(x.shape)
        for k in range(1, _TERMS):
            term = term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
            if k % 2:
                odd = odd + (-1) ** (k // 2) * term
            else:
                even = even + (-1) ** (k // 2) * term
        # cos and sin of x - pi/4 (times the root of two) without a subtraction, which would lose digits.
        c, s = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))
        results += [root * (even * c - odd * s), root * (even * s + odd * c)]
    j0, y0, j1, y1 = (np.where(np.isinf(x), 0.0, result) for result in results)
    return j0, j1, y0, y1


def _upward(n: np.ndarray, x: np.ndarray, zero: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Orders n, from orders 0 and 1."""
    below, here = zero, one
    result = np.where(n == 0, zero, one)
    for order in range(1, int(n.max(initial=1))):
        # Once infinite it stays so: the difference of two infinities would be no number.
        below, here = here, np.where(np.isinf(here), here, 2 * order / x * here - below)
        result = np.where(n == order + 1, here, result)
    return result


def _from_above(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """J of orders above x, each by recurrence down from an order far above."""
    highest = int(n.max(initial=1))
    safe = np.maximum(x, _TINY)
    above, here = np.zeros(x.shape), np.full(x.shape, 1e-200)
    total, result = np.zeros(x.shape), np.zeros(x.shape)
    for order in range(highest + 20 + int(np.sqrt(160 * highest)), 0, -1):
        result = np.where(n == order, here, result)
        if order % 2 == 0:
            total = total + 2 * here
        above, here = here, 2 * order / safe * here - above
        shrink = np.where(np.abs(here) > 1e200, 1e-200, 1.0)
        above, here, total, result = above * shrink, here * shrink, total * shrink, result * shrink
    leading = np.power(x / 2, n) / tgamma(n + 1.0) * (1 - x * x / 4 / (n + 1.0))
    return np.where(x < _TINY, leading, result / (total + here))
