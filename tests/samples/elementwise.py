"""Samples of elementwise ops."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.samples.base import BFLOAT16, Sample, bools, floats, ints, signed

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
}

PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "fmod": lambda a, b: a.fmod(b),
    "maximum": lambda a, b: a.maximum(b),
    "minimum": lambda a, b: a.minimum(b),
    "atan2": lambda a, b: a.atan2(b),
}
"""Functions of two tensors."""

MATH = (
    *("abs", "sign", "square", "reciprocal", "sqrt", "rsqrt", "exp", "exp2", "expm1"),
    *("log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "round", "trunc"),
)
"""Functions of one tensor, which both libraries have as methods."""

# Where they are defined: (from, to).
_DOMAIN = {
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.9, 0.9)),
    **dict.fromkeys(("sqrt", "rsqrt", "log", "log2", "log10", "log1p"), (0.1, 2.0)),
    "acosh": (1.1, 3.0),
}

_FLAT = ("floordiv",)
"""PyTorch has no gradient of these, or says so by an error."""


def binary(op: str, call: Callable[[Any, Any], Any]) -> list[Sample]:
    """A function of two tensors, or of a tensor and a number on either side."""
    pairs = [
        (floats(3, 4), signed(3, 4)[::-1].copy()) if op != "pow" else (floats(3, 4), signed(3, 4)),
        (floats(3, 1), floats(4)),
        (floats(), floats(2, 3)),
        (floats(0, 3), floats(3)),
        (floats(2, 3), floats(2, 3, dtype="float64")),
        (ints(2, 3), ints(3)),
        (ints(2, 3), floats(2, 3)),
        (ints(2, 3, dtype="int32"), ints()),
        (floats(2, 3, dtype=BFLOAT16), floats(3, dtype=BFLOAT16)[::-1].copy()),
    ]
    numbers = [(floats(2, 3), 2.5), (floats(2, 3), 3), (ints(3), 2), (ints(3), 1.5)]
    return [
        *(Sample(op, call, pair, f"{pair[0].dtype},{pair[1].dtype}", op not in _FLAT) for pair in pairs),
        *(Sample(op, lambda a, n=n: call(a, n), (a,), f"{a.dtype},{n}", op not in _FLAT) for a, n in numbers),
        *(
            Sample(op, lambda a, n=n: call(n, a), (a,), f"{n},{a.dtype}", op not in (*_FLAT, "mod"))
            for a, n in numbers
        ),
    ]


def _pair(op: str, call: Callable[[Any, Any], Any]) -> list[Sample]:
    pairs = [
        (signed(3, 4), 0.7 * floats(4)),  # no quotient is whole: there they jump
        (floats(2, 3), signed(2, 3, dtype="float64")),
        (ints(2, 3, dtype="int32"), ints(3)),
    ]
    return [Sample(op, call, pair, f"{pair[0].dtype},{pair[1].dtype}") for pair in pairs]


def _unary(op: str) -> list[Sample]:
    low, high = _DOMAIN.get(op, (-2.0, 2.0))
    inside = np.linspace(low, high, 12, dtype="float32") + 0.01  # not at a kink, nor where it rounds
    arrays = [inside.reshape(3, 4), floats(0), np.asarray(inside[3]), inside.astype("float64")]
    arrays += [inside[6:].astype("float16"), inside[6:].astype(BFLOAT16), ints(3)]
    return [Sample(op, lambda x: getattr(x, op)(), (array,)) for array in arrays]


def _clamp() -> list[Sample]:
    x = np.array([-2, -1, -0.5, 0, 0.5, 1, 2], "float32")  # two of them at the bounds
    calls: dict[str, Callable[..., Any]] = {
        "both": lambda x: x.clamp(-1, 1),
        "min": lambda x: x.clamp(min=-0.5),
        "max": lambda x: x.clamp(max=0.5),
        "crossed": lambda x: x.clamp(1, -1),
        "clamp_min": lambda x: x.clamp_min(0.5),
        "clamp_max": lambda x: x.clamp_max(0.5),
    }
    return [
        *(Sample("clamp", call, (x,), note) for note, call in calls.items() if note != "crossed"),
        Sample("clamp", calls["crossed"], (x,), "crossed", smooth=False),
        Sample("clamp", calls["both"], (ints(5),)),
        Sample("clamp", calls["min"], (ints(5),), "ints by a float"),
        Sample("clamp", lambda x: x.clamp(0, 1), (bools(3),), "bools"),
        Sample("clamp", lambda x, a, b: x.clamp(a, b), (x, x[::-1].copy(), floats(7)), "by tensors"),
    ]


def _powers() -> list[Sample]:
    bases = np.array([0, 0, 0, 2, -2], "float32")
    exponents = np.array([0, 1, 2.5, 0, 3], "float32")
    return [
        Sample("pow", lambda x: x**0, (np.array([0, 1, -2], "float32"),), "to the 0"),
        Sample("pow", lambda x: x**2, (signed(3),), "squared"),
        Sample("pow", lambda x: 0**x, (np.array([0, 1, 2], "float32"),), "of 0"),
        Sample("pow", lambda x: (-2.0) ** x, (np.array([1, 2], "float32"),), "of -2"),
        Sample("pow", lambda a, b: a**b, (bases[:4], exponents[:4]), "by tensors, at 0"),
    ]


def _named() -> list[Sample]:
    pair, whole = (floats(2, 3), 0.7 * signed(3)), (ints(2, 3) - 3, ints(3))
    calls: list[tuple[str, str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
        ("add", "alpha", lambda a, b: a.add(b, alpha=2), pair),
        ("add", "alpha, ints", lambda a, b: a.add(b, alpha=2), whole),
        ("sub", "alpha", lambda a, b: a.sub(b, alpha=0.5), pair),
        ("mul", "named", lambda a, b: a.mul(b), pair),
        ("truediv", "named", lambda a, b: a.div(b), pair),
        ("truediv", "trunc", lambda a, b: a.div(b, rounding_mode="trunc"), pair),
        ("truediv", "trunc, ints", lambda a, b: a.div(b, rounding_mode="trunc"), whole),
        ("truediv", "floor, ints", lambda a, b: a.div(b, rounding_mode="floor"), whole),
        ("truediv", "true", lambda a, b: a.true_divide(b), whole),
        ("floordiv", "negative", lambda a, b: a.floor_divide(b), whole),
        ("mod", "negative", lambda a, b: a.remainder(b), whole),
        ("mod", "negative modulus", lambda a, b: a % -b, whole),
        ("mod", "signs", lambda a, b: a % b, (signed(3, 4), 0.7 * signed(4))),
        ("fmod", "signs", lambda a, b: a.fmod(b), (signed(3, 4), 0.7 * signed(4))),
        ("fmod", "number", lambda a: a.fmod(0.3), (signed(3, 4),)),
        ("pow", "named", lambda a: a.pow(2), (signed(3),)),
        ("sub", "lerp", lambda a, b: a.lerp(b, 0.25), (floats(2, 3), signed(2, 3))),
        ("sub", "lerp by a tensor", lambda a, b, w: a.lerp(b, w), (floats(3), signed(3), floats(3))),
        ("add", "addcmul", lambda a, b, c: a.addcmul(b, c, value=0.5), (floats(3), signed(3), floats(2, 3))),
        ("add", "addcdiv", lambda a, b, c: a.addcdiv(b, c), (floats(3), signed(3), floats(2, 3))),
        ("round", "decimals", lambda a: a.round(decimals=1), (signed(5),)),
        ("round", "negative decimals", lambda a: a.round(decimals=-1), (signed(5) * 20,)),
        ("round", "halves", lambda a: a.round(), (np.array([-1.5, -0.5, 0.5, 1.5, 2.5], "float32"),)),
        ("trunc", "frac", lambda a: a.frac(), (signed(5),)),
        ("abs", "at 0", lambda a: abs(a), (np.array([-1, 0, 2], "float32"),)),
        ("maximum", "ties", lambda a, b: a.maximum(b), (np.ones(3, "float32"), np.ones(3, "float32"))),
        ("minimum", "ties", lambda a, b: a.minimum(b), (np.ones(3, "float32"), np.ones(1, "float32"))),
        ("maximum", "bools", lambda a, b: a.maximum(b), (bools(3), bools(4)[1:].copy())),
        ("sqrt", "at 0", lambda a: a.sqrt(), (np.array([0, 1], "float32"),)),
        ("sign", "bools", lambda a: a.sign(), (bools(3),)),
        ("square", "bools", lambda a: a.square(), (bools(3),)),
    ]
    flat = ("floor", "trunc", "negative")
    return [
        Sample(op, call, arrays, note, smooth=op not in _FLAT and note not in flat)
        for op, note, call, arrays in calls
    ]


_EXTREME = np.array([np.nan, np.inf, -np.inf, -1, 0, 2], "float32")

SAMPLES: list[Sample] = [
    *(sample for op, call in ARITHMETIC.items() for sample in binary(op, call)),
    *(sample for op, call in PAIRS.items() for sample in _pair(op, call)),
    *(sample for op in MATH for sample in _unary(op)),
    *_clamp(),
    *_powers(),
    *_named(),
    Sample("neg", lambda x: -x, (signed(3, 4),)),
    Sample("neg", lambda x: -x, (ints(3, dtype="uint8"),)),
    Sample("cast", lambda x: x.nan_to_num(), (_EXTREME,), "nan_to_num", smooth=False),
    Sample("maximum", lambda x: x.maximum(-x), (_EXTREME,), "of NaN", smooth=False),
    Sample("add", lambda x: x + 250, (ints(3, dtype="uint8"),), "wraps"),
    Sample("sub", lambda x: x - 5, (ints(3, dtype="uint8"),), "wraps"),
    Sample("mul", lambda x: x * -1, (ints(3, dtype="uint8"),), "wraps"),
    Sample("cast", lambda x: x.bfloat16() * 3, (floats(3),), "bfloat16"),
]
