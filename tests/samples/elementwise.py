"""Samples of elementwise ops."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.samples.base import Sample, floats, ints, signed

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "truediv": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def _binary(op: str, call: Callable[[Any, Any], Any]) -> list[Sample]:
    pairs = [
        (floats(3, 4), floats(3, 4)[::-1].copy()),
        (floats(3, 1), floats(4)),
        (floats(), floats(2, 3)),
        (floats(0, 3), floats(3)),
        (floats(2, 3), floats(2, 3, dtype="float64")),
        (ints(2, 3), ints(3)),
        (ints(2, 3), floats(2, 3)),
        (ints(2, 3, dtype="int32"), ints()),
    ]
    numbers = [(floats(2, 3), 2.5), (floats(2, 3), 3), (ints(3), 2), (ints(3), 1.5)]
    return [
        *(Sample(op, call, pair, f"{pair[0].dtype},{pair[1].dtype}") for pair in pairs),
        *(Sample(op, lambda a, n=n: call(a, n), (a,), f"{a.dtype},{n}") for a, n in numbers),
        *(Sample(op, lambda a, n=n: call(n, a), (a,), f"{n},{a.dtype}") for a, n in numbers),
    ]


def _unary(op: str) -> list[Sample]:
    arrays = [floats(3, 4), floats(), floats(0), floats(5, dtype="float64"), floats(2, 2, dtype="float16")]
    if op in ("neg", "relu", "tanh", "sigmoid", "exp"):
        arrays += [signed(4, 5), ints(3)]
    return [Sample(op, lambda x: getattr(x, op)(), (array,)) for array in arrays]


SAMPLES: list[Sample] = [
    *(sample for op, call in ARITHMETIC.items() for sample in _binary(op, call)),
    *(sample for op in ("exp", "log", "sqrt", "tanh", "sigmoid", "relu") for sample in _unary(op)),
    Sample("neg", lambda x: -x, (signed(3, 4),)),
    Sample("neg", lambda x: -x, (ints(3),)),
    Sample("pow", lambda x: x**0, (np.array([0, 1, -2], "float32"),), "to the 0"),
    Sample("pow", lambda x: 0**x, (np.array([0, 1, 2], "float32"),), "of 0"),
    Sample("pow", lambda x: (-2.0) ** x, (np.array([1, 2], "float32"),), "of -2"),
]
