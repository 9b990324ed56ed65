"""Machine integers: division toward zero, bitwise operations, and wrap-around."""

from triton_viz.dsls.triton.symbolic.expression import (
    ZERO,
    Reason,
    add,
    atom,
    choose,
    is_zero,
    multiply,
    negate,
    not_negative,
    number,
    of,
    scale,
    subtract,
    unknown,
)
from triton_viz.dsls.triton.symbolic.nodes import INFINITE, Sum

_ZERO_DIVISION = Reason("a division by zero")


class IntegerType:
    """An integer type: its bits and bounds."""

    __slots__ = ("bits", "high", "low", "signed")

    def __init__(self, bits: int, signed: bool):
        self.bits, self.signed = bits, signed
        self.low = -(1 << (bits - 1)) if signed else 0
        self.high = self.low + (1 << bits) - 1


def wrap(a: Sum, type_: IntegerType) -> Sum:
    """An integer converted to a type: if it does not fit, it wraps around."""
    if a.within(type_.low, type_.high):
        return a
    # Inner wraps of the same width are redundant.
    for one, by in a.terms:
        if one.op == "wrap" and one.args[1] == type_.bits:
            inner = scale(one.args[0], by)
            return wrap(add(Sum(a.const, tuple(t for t in a.terms if t[0] is not one)), inner), type_)
    # Multiples of 2**bits do not change the result.
    width = 1 << type_.bits
    low_const = (a.const - type_.low) % width + type_.low
    terms = tuple((one, by) for one, by in a.terms if by % width)
    if not terms:
        return number(low_const)
    a = Sum(low_const if low_const != a.const else a.const, terms)
    if a.within(type_.low, type_.high):
        return a
    return of(atom("wrap", (a, type_.bits, type_.signed), type_.low, type_.high))


def divide(a: Sum, b: Sum) -> Sum:
    """a / b, toward zero."""
    return _quotient(a, b)[0]


def remainder(a: Sum, b: Sum) -> Sum:
    """The remainder of a division toward zero: it has the dividend's sign."""
    return _quotient(a, b)[1]


def _quotient(a: Sum, b: Sum) -> tuple[Sum, Sum]:
    if b.low <= 0 <= b.high:
        guess = unknown(-INFINITE, INFINITE, _ZERO_DIVISION, (a, b))
        if b.is_const:
            return guess, guess
        by_zero = is_zero(b)
        quotient, rest = _general(a, b)
        return choose(by_zero, guess, quotient), choose(by_zero, guess, rest)
    if b.is_const:
        if b.const < 0:
            quotient, rest = _by_constant(a, -b.const)
            return negate(quotient), rest
        return _by_constant(a, b.const)
    if a.low >= 0 and b.low > a.high:
        return ZERO, a
    return _general(a, b)


def _by_constant(a: Sum, by: int) -> tuple[Sum, Sum]:
    if by == 1:
        return a, ZERO
    if -by < a.low and a.high < by:
        return ZERO, a
    if a.is_const:
        quotient = abs(a.const) // by * (1 if a.const >= 0 else -1)
        return number(quotient), number(a.const - quotient * by)
    if a.const % by == 0 and not any(n % by for _, n in a.terms):
        return Sum(a.const // by, tuple((one, n // by) for one, n in a.terms)), ZERO
    if a.low >= 0:
        # (by * x + rest) / by is x + rest / by if the rest is not negative.
        whole = Sum(a.const // by, tuple((one, n // by) for one, n in a.terms if n % by == 0))
        rest = Sum(a.const % by, tuple((one, n) for one, n in a.terms if n % by))
        if whole.terms or whole.const:
            if rest.low >= 0:
                quotient, left = _by_constant(rest, by)
                return add(whole, quotient), left
        elif (nested := _nested(a, by)) is not None:
            return nested
    quotient = _toward_zero(a.low, by), _toward_zero(a.high, by)
    low = 0 if a.low >= 0 else max(a.low, 1 - by)
    high = 0 if a.high <= 0 else min(a.high, by - 1)
    args = (a, number(by))
    return of(atom("div", args, *quotient)), of(atom("mod", args, low, high))


def _nested(a: Sum, by: int) -> tuple[Sum, Sum] | None:
    """(x / y) / by is x / (y * by)."""
    one = a.single
    if one is None or one.op != "div" or not one.args[1].is_const or one.args[1].const <= 0:
        return None
    quotient, _ = _by_constant(one.args[0], one.args[1].const * by)
    return quotient, of(atom("mod", (a, number(by)), 0, min(a.high, by - 1)))


def _toward_zero(a: int, by: int) -> int:
    return a // by if a >= 0 else -(-a // by)


def _general(a: Sum, b: Sum) -> tuple[Sum, Sum]:
    most = max(abs(a.low), abs(a.high))
    least = 1 if b.low <= 0 <= b.high else min(abs(b.low), abs(b.high))
    positive = a.low >= 0 and b.low >= 0
    reach = most // least
    far = min(most, max(abs(b.low), abs(b.high)) - 1)
    quotient = of(atom("div", (a, b), 0 if positive else -reach, reach))
    rest = of(atom("mod", (a, b), 0 if a.low >= 0 else -far, 0 if a.high <= 0 else far))
    return quotient, rest


def absolute(a: Sum) -> Sum:
    """The absolute value."""
    return choose(not_negative(a), a, negate(a))


# --- bits ---


def shift_left(a: Sum, by: Sum, type_: IntegerType) -> Sum:
    """a << by."""
    if by.is_const:
        return wrap(scale(a, 1 << min(by.const, type_.bits)), type_) if by.const >= 0 else _any(type_)
    if by.low >= 0 and by.high < type_.bits:
        return wrap(multiply(a, power_of_two(by)), type_)
    return _any(type_)


def power_of_two(exponent: Sum) -> Sum:
    """2 to a non-negative power."""
    low, high = max(0, exponent.low), max(0, exponent.high)
    return number(1 << low) if low == high else of(atom("power", (exponent,), 1 << low, 1 << high))


def shift_right(a: Sum, by: Sum, type_: IntegerType) -> Sum:
    """a >> by, rounding down."""
    return halved(a, by) if by.low >= 0 and by.high < type_.bits else _any(type_)


def halved(a: Sum, times: Sum) -> Sum:
    """a / 2**times, rounding down."""
    if times.low == times.high or times.high <= 0:
        return floor_divide(a, 1 << max(0, times.low))
    return of(atom("shr", (a, times), min(a.low, 0), max(a.high, 0)))


def floor_divide(a: Sum, by: int) -> Sum:
    """a / by, rounding down."""
    if a.low >= 0:
        return _by_constant(a, by)[0]
    # Add a multiple of the divisor, so that no value is negative.
    up = -(a.low // by)
    return subtract(_by_constant(add(a, number(up * by)), by)[0], number(up))


def bits_and(a: Sum, b: Sum, type_: IntegerType) -> Sum:
    """a & b."""
    if a.is_const:
        a, b = b, a
    if b.is_const:
        mask = b.const
        if mask == 0:
            return ZERO
        if mask > 0 and (mask & (mask + 1)) == 0:  # the lowest bits: a remainder, always positive
            return _low(a, mask + 1)
        if mask < 0 and ((-mask) & (-mask - 1)) == 0:  # all but the lowest bits
            return scale(floor_divide(a, -mask), -mask)
    return bitwise("and", a, b, type_)


def _low(a: Sum, by: int) -> Sum:
    # Adding a multiple of the divisor, so that no value is negative, keeps the remainder.
    up = number(max(0, -(a.low // by)) * by)
    return _by_constant(add(a, up), by)[1]


def bits_or(a: Sum, b: Sum, type_: IntegerType) -> Sum:
    """a | b."""
    return bitwise("or", a, b, type_)


def bits_xor(a: Sum, b: Sum, type_: IntegerType) -> Sum:
    """a ^ b."""
    if type_.signed and b.is_const and b.const == -1:
        return subtract(number(-1), a)
    return bitwise("xor", a, b, type_)


def bitwise(op: str, a: Sum, b: Sum, type_: IntegerType = IntegerType(66, True)) -> Sum:  # noqa: B008 - it is immutable
    """An "and", "or" or "xor" of integers of a type (by default, of the widest one)."""
    if a.is_const and b.is_const:
        return number({"and": a.const & b.const, "or": a.const | b.const, "xor": a.const ^ b.const}[op])
    for one, other in ((a, b), (b, a)):
        if one.is_const and one.const == 0:
            return ZERO if op == "and" else other
    if a == b:
        return ZERO if op == "xor" else a
    low, high = type_.low, type_.high
    if a.low >= 0 and b.low >= 0:
        low = 0 if op != "or" else max(a.low, b.low)
        high = min(a.high, b.high) if op == "and" else (1 << max(a.high, b.high).bit_length()) - 1
    elif op == "and" and max(a.low, b.low) >= 0:
        low, high = 0, a.high if a.low >= 0 else b.high
    return of(atom(op, (a, b), low, high))


def _any(type_: IntegerType) -> Sum:
    return unknown(type_.low, type_.high, Reason("a shift by an integer that may be out of range"))
