"""Samples of comparisons, truths, bits and choosing."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.samples.base import BFLOAT16, Sample, bools, floats, ints, signed

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}

BITS: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
}

TRUTHS: dict[str, Callable[[Any, Any], Any]] = {
    name: lambda a, b, name=name: getattr(a, name)(b) for name in ("logical_and", "logical_or", "logical_xor")
}


def _comparison(op: str, call: Callable[[Any, Any], Any]) -> list[Sample]:
    pairs = [
        (floats(3, 1), floats(4)),
        (ints(2, 3), floats(3)),
        (ints(3, dtype="int32"), ints()),
        (floats(3, dtype=BFLOAT16), floats(3, dtype=BFLOAT16)[::-1].copy()),
        (bools(4), bools(4)[::-1].copy()),
    ]
    return [
        *(Sample(op, call, pair, f"{pair[0].dtype},{pair[1].dtype}") for pair in pairs),
        Sample(op, lambda a: call(a, 3), (ints(5),), "int"),
        Sample(op, lambda a: call(a, 2.5), (ints(5),), "float"),
        Sample(op, lambda a: call(3, a), (floats(5),), "reflected"),
        Sample(op, lambda a, b: getattr(a, op)(b), (floats(3), floats(3)), "named"),
    ]


def _bits(op: str, call: Callable[[Any, Any], Any]) -> list[Sample]:
    pairs = [(ints(2, 3), ints(3)), (ints(3, dtype="uint8"), ints(3, dtype="uint8"))]
    if "shift" not in op:
        pairs += [(bools(2, 3), bools(3)), (bools(3), ints(3))]
    return [
        *(Sample(op, call, pair, f"{pair[0].dtype},{pair[1].dtype}") for pair in pairs),
        Sample(op, lambda a: call(a, 2), (ints(3),), "number"),
        Sample(op, lambda a: call(a, 2), (ints(3, dtype="uint8"),), "number, uint8"),
    ]


_EXTREME = np.array([np.nan, np.inf, -np.inf, -1, 0, 2], "float32")


def _choices() -> list[Sample]:
    c, a, b = bools(2, 3), signed(2, 3), floats(3)
    blown_up = np.array([0.0, 1.0], "float32")
    calls: list[tuple[str, str, Callable[..., Any], tuple[np.ndarray, ...]]] = [
        ("where", "tensors", lambda c, a, b: a.where(c, b), (c, a, b)),
        ("where", "number on the right", lambda c, a: a.where(c, 0.5), (c, a)),
        ("where", "ints and a float", lambda c, a: a.where(c, 0.5), (c, ints(3))),
        ("where", "mixed", lambda c, a, b: a.where(c, b), (bools(3), ints(2, 1), floats(dtype="float64"))),
        ("where", "bfloat16", lambda c, a: a.where(c, 2), (c, floats(2, 3, dtype=BFLOAT16))),
        # The branch that is not taken is infinite at 0: its slope must not leak into the gradient.
        ("where", "infinite elsewhere", lambda x: (1 / x).where(x > 0, x * 2), (blown_up,)),
        ("masked_fill", "number", lambda a, c: a.masked_fill(c, -1), (a, c)),
        ("masked_fill", "broadcast", lambda a, c: a.masked_fill(c, float("-inf")), (a, bools(3))),
        ("masked_fill", "ints", lambda a, c: a.masked_fill(c, 2.5), (ints(3), bools(3))),
        ("masked_fill", "tensor", lambda a, c, v: a.masked_fill(c, v), (a, c, floats())),
    ]
    return [Sample(op, call, arrays, note) for op, note, call, arrays in calls]


SAMPLES: list[Sample] = [
    *(sample for op, call in COMPARISONS.items() for sample in _comparison(op, call)),
    *(sample for op, call in BITS.items() for sample in _bits(op, call)),
    *(Sample(op, call, (ints(3) - 3, bools(3))) for op, call in TRUTHS.items()),
    *(Sample(op, call, (floats(2, 1) - floats(2, 1), signed(3))) for op, call in TRUTHS.items()),
    Sample("invert", lambda x: ~x, (bools(3),)),
    Sample("invert", lambda x: ~x, (ints(3, dtype="uint8"),)),
    Sample("invert", lambda x: x.bitwise_not(), (ints(3),)),
    Sample("logical_not", lambda x: x.logical_not(), (ints(3) - 2,)),
    *(Sample(op, lambda x, op=op: getattr(x, op)(), (_EXTREME,)) for op in ("isnan", "isinf", "isfinite")),
    Sample("isnan", lambda x: x.isnan(), (ints(3),)),
    Sample("isfinite", lambda x: x.isfinite(), (floats(3, dtype=BFLOAT16),)),
    *_choices(),
    Sample("le", lambda a: a.isclose(a + 1e-6), (floats(3),), "isclose"),
    Sample("le", lambda a: a.isclose(a, equal_nan=True), (_EXTREME,), "isclose NaN"),
]
