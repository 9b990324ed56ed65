"""Samples of elementwise ops, besides those that are made from their rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.gt.samples.base import Sample, bools, floats, ints, signed
from tests.gt.samples.generated import EXTREME, NO_GRADIENT


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
    pair, integers = (floats(2, 3), 0.7 * signed(3)), (ints(2, 3) - 3, ints(3))
    calls: list[tuple[str, str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
        ("add", "alpha", lambda a, b: a.add(b, alpha=2), pair),
        ("add", "alpha, ints", lambda a, b: a.add(b, alpha=2), integers),
        ("sub", "alpha", lambda a, b: a.sub(b, alpha=0.5), pair),
        ("mul", "named", lambda a, b: a.mul(b), pair),
        ("truediv", "named", lambda a, b: a.div(b), pair),
        ("truediv", "trunc", lambda a, b: a.div(b, rounding_mode="trunc"), pair),
        ("truediv", "trunc, ints", lambda a, b: a.div(b, rounding_mode="trunc"), integers),
        ("truediv", "floor, ints", lambda a, b: a.div(b, rounding_mode="floor"), integers),
        ("truediv", "true", lambda a, b: a.true_divide(b), integers),
        ("floordiv", "negative", lambda a, b: a.floor_divide(b), integers),
        ("mod", "negative", lambda a, b: a.remainder(b), integers),
        ("mod", "negative modulus", lambda a, b: a % -b, integers),
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
        Sample(op, call, arrays, note, smooth=op not in NO_GRADIENT and note not in flat)
        for op, note, call, arrays in calls
    ]


SAMPLES: list[Sample] = [
    *_clamp(),
    *_powers(),
    *_named(),
    Sample("neg", lambda x: -x, (signed(3, 4),)),
    Sample("neg", lambda x: -x, (ints(3, dtype="uint8"),)),
    Sample("cast", lambda x: x.nan_to_num(), (EXTREME,), "nan_to_num", smooth=False),
    Sample("maximum", lambda x: x.maximum(-x), (EXTREME,), "of NaN", smooth=False),
    Sample("add", lambda x: x + 250, (ints(3, dtype="uint8"),), "wraps"),
    Sample("sub", lambda x: x - 5, (ints(3, dtype="uint8"),), "wraps"),
    Sample("mul", lambda x: x * -1, (ints(3, dtype="uint8"),), "wraps"),
    Sample("cast", lambda x: x.bfloat16() * 3, (floats(3),), "bfloat16"),
]
