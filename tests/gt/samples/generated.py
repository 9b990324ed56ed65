"""Samples of the ops whose row says, in its column `samples`, which calls to make of it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gt.ops import TABLE, Row
from tests.gt.samples.base import BFLOAT16, Sample, bools, floats, ints, signed

EXTREME = np.array([np.nan, np.inf, -np.inf, -1, 0, 2], "float32")
NO_GRADIENT = ("floordiv",)
"""PyTorch has no gradient of these, or says so by an error."""


def rows(kind: str) -> list[Row]:
    """The rows that these calls are made of."""
    return [row for row in TABLE.values() if row.samples is not None and row.samples.of == kind]


def method(row: Row) -> str:
    """The method that users call an op by: both libraries have it."""
    return row.methods[0].names.partition(" ")[0] if row.methods else row.name


def call(row: Row) -> Callable[..., Any]:
    """An op as a function: by Python's operator if it has one, or by its method."""
    if row.operator and row.kind == "BinaryOp":
        return lambda a, b: eval(f"a {SIGNS[row.operator]} b", {"a": a, "b": b})
    name = method(row)
    return lambda a, *more, **options: getattr(a, name)(*more, **options)


SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "gt": ">",
    "ge": ">=",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}


def _pairs(row: Row, pairs: list[tuple[np.ndarray, np.ndarray]], smooth: bool = True) -> list[Sample]:
    return [Sample(row.name, call(row), pair, f"{pair[0].dtype},{pair[1].dtype}", smooth) for pair in pairs]


def arithmetic(row: Row) -> list[Sample]:
    """Two tensors, or a tensor and a number on either side."""
    op, binary, smooth = row.name, call(row), row.name not in NO_GRADIENT
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
        *_pairs(row, pairs, smooth),
        *(Sample(op, lambda a, n=n: binary(a, n), (a,), f"{a.dtype},{n}", smooth) for a, n in numbers),
        *(
            Sample(op, lambda a, n=n: binary(n, a), (a,), f"{n},{a.dtype}", smooth and op != "mod")
            for a, n in numbers
        ),
    ]


def pair(row: Row) -> list[Sample]:
    """Two tensors."""
    return _pairs(
        row,
        [
            (signed(3, 4), 0.7 * floats(4)),  # no quotient is an integer: there they jump
            (floats(2, 3), signed(2, 3, dtype="float64")),
            (ints(2, 3, dtype="int32"), ints(3)),
        ],
    )


def math(row: Row) -> list[Sample]:
    """One tensor, within the domain that the row names."""
    assert row.samples is not None
    low, high = row.samples.low, row.samples.high
    inside = np.linspace(low, high, 12, dtype="float32") + 0.01  # not at a kink, nor where it rounds
    arrays = [inside.reshape(3, 4), floats(0), np.asarray(inside[3]), inside.astype("float64")]
    arrays += [inside[6:].astype("float16"), inside[6:].astype(BFLOAT16), ints(3)]
    return [Sample(row.name, call(row), (array,)) for array in arrays]


def comparison(row: Row) -> list[Sample]:
    """Two tensors, or a tensor and a number on either side, by operator and by method."""
    op, compare, name = row.name, call(row), method(row)
    pairs = [
        (floats(3, 1), floats(4)),
        (ints(2, 3), floats(3)),
        (ints(3, dtype="int32"), ints()),
        (floats(3, dtype=BFLOAT16), floats(3, dtype=BFLOAT16)[::-1].copy()),
        (bools(4), bools(4)[::-1].copy()),
    ]
    return [
        *_pairs(row, pairs),
        Sample(op, lambda a: compare(a, 3), (ints(5),), "int"),
        Sample(op, lambda a: compare(a, 2.5), (ints(5),), "float"),
        Sample(op, lambda a: compare(3, a), (floats(5),), "reflected"),
        Sample(op, lambda a, b: getattr(a, name)(b), (floats(3), floats(3)), "named"),
    ]


def bits(row: Row) -> list[Sample]:
    """Two tensors of integers or, unless they are shifted, of bools; or a tensor and a number."""
    op, binary = row.name, call(row)
    pairs = [(ints(2, 3), ints(3)), (ints(3, dtype="uint8"), ints(3, dtype="uint8"))]
    if "shift" not in op:
        pairs += [(bools(2, 3), bools(3)), (bools(3), ints(3))]
    return [
        *_pairs(row, pairs),
        Sample(op, lambda a: binary(a, 2), (ints(3),), "number"),
        Sample(op, lambda a: binary(a, 2), (ints(3, dtype="uint8"),), "number, uint8"),
    ]


def logical(row: Row) -> list[Sample]:
    """Two tensors, some of whose elements are 0."""
    return [
        Sample(row.name, call(row), (ints(3) - 3, bools(3))),
        Sample(row.name, call(row), (floats(2, 1) - floats(2, 1), signed(3))),
    ]


def test(row: Row) -> list[Sample]:
    """One tensor of floats, of integers, and in half precision."""
    arrays = (EXTREME, ints(3) - 2, floats(3, dtype=BFLOAT16))
    return [Sample(row.name, call(row), (array,)) for array in arrays]


def reduction(row: Row, several: bool = True) -> list[Sample]:
    """Over all dimensions, one, and two."""
    op, reduce = row.name, call(row)
    calls: dict[str, Callable[[Any], Any]] = {
        "all": lambda x: reduce(x),
        "dim=0": lambda x: reduce(x, dim=0),
        "axis=-1,keepdim": lambda x: reduce(x, axis=-1, keepdim=True),
    }
    if several:
        calls["dims"] = lambda x: reduce(x, dim=(0, 2))
    return [
        *(Sample(op, one, (signed(2, 3, 4),), note) for note, one in calls.items()),
        Sample(op, calls["all"], (floats(),)),
        Sample(op, calls["dim=0"], (floats(),), "scalar"),
    ]


def reduction_over_one_dimension(row: Row) -> list[Sample]:
    """Over all dimensions, and over one: PyTorch takes no more."""
    return reduction(row, several=False)


CALLS: dict[str, Callable[[Row], list[Sample]]] = {
    "arithmetic": arithmetic,
    "pair": pair,
    "math": math,
    "comparison": comparison,
    "bits": bits,
    "logical": logical,
    "test": test,
    "reduction": reduction,
    "reduction over one dimension": reduction_over_one_dimension,
}
"""By the name that a row's `Samples.of` has."""

SAMPLES: list[Sample] = [
    sample for row in TABLE.values() if row.samples is not None for sample in CALLS[row.samples.of](row)
]
