"""Samples of ops that select elements, and of methods that compare."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.gt.samples.base import BFLOAT16, Sample, bools, floats, ints, signed
from tests.gt.samples.generated import EXTREME


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
    Sample("invert", lambda x: ~x, (bools(3),)),
    Sample("invert", lambda x: ~x, (ints(3, dtype="uint8"),)),
    Sample("invert", lambda x: x.bitwise_not(), (ints(3),)),
    *_choices(),
    Sample("le", lambda a: a.isclose(a + 1e-6), (floats(3),), "isclose"),
    Sample("le", lambda a: a.isclose(a, equal_nan=True), (EXTREME,), "isclose NaN"),
]
