"""Calls of every op in the table, for the tests that compare GT with PyTorch.

A sample is a function that works on both libraries' tensors, and the arrays to call it with.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Sample(NamedTuple):
    """`call(*tensors)` uses the op; it is written once and runs on GT's tensors and on PyTorch's."""

    op: str
    call: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    note: str = ""

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, a.shape)) or "scalar" for a in self.arrays)
        return f"{self.op}-{shapes}-{self.note or self.arrays[0].dtype}"


def floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers between 0.1 and 2, where every function has a value and a finite slope."""
    return np.asarray(0.1 + 1.9 * np.random.default_rng(0).random(shape), dtype)


def signed(*shape: int) -> np.ndarray:
    """Numbers on both sides of zero, none of them at it."""
    return np.where(np.random.default_rng(1).random(shape) < 0.5, -1, 1).astype("float32") * floats(*shape)


def ints(*shape: int, dtype: str = "int64") -> np.ndarray:
    return np.asarray(np.random.default_rng(2).integers(1, 7, shape), dtype)


def bools(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).random(shape) < 0.5


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


def _reduction(op: str) -> list[Sample]:
    calls: dict[str, Callable[[Any], Any]] = {
        "all": lambda x: getattr(x, op)(),
        "dim=0": lambda x: getattr(x, op)(dim=0),
        "dim=-1,keepdim": lambda x: getattr(x, op)(dim=-1, keepdim=True),
        "dims": lambda x: getattr(x, op)(dim=(0, 2)),
    }
    samples = [Sample(op, call, (signed(2, 3, 4),), note) for note, call in calls.items()]
    return [
        *samples,
        Sample(op, calls["all"], (floats(),)),
        Sample(op, calls["dim=0"], (floats(),), "scalar"),
    ]


SAMPLES: list[Sample] = [
    *(sample for op, call in ARITHMETIC.items() for sample in _binary(op, call)),
    *(sample for op in ("exp", "log", "sqrt", "tanh", "sigmoid", "relu") for sample in _unary(op)),
    Sample("neg", lambda x: -x, (signed(3, 4),)),
    Sample("neg", lambda x: -x, (ints(3),)),
    *_reduction("sum"),
    Sample("sum", lambda x: x.sum(), (ints(3, dtype="int32"),)),
    Sample("sum", lambda x: x.sum(dim=1), (bools(3, 4),)),
    *_reduction("mean"),
    Sample("mean", lambda x: x.mean(), (floats(0),), "empty"),
    Sample("pow", lambda x: x**0, (np.array([0, 1, -2], "float32"),), "to the 0"),
    Sample("pow", lambda x: 0**x, (np.array([0, 1, 2], "float32"),), "of 0"),
    Sample("pow", lambda x: (-2.0) ** x, (np.array([1, 2], "float32"),), "of -2"),
    Sample("matmul", lambda a, b: a @ b, (floats(3, 4), floats(4, 2))),
    Sample("matmul", lambda a, b: a @ b, (floats(0, 4), floats(4, 2))),
    Sample("matmul", lambda a, b: a @ b, (ints(2, 2), ints(2, 2))),
    Sample("transpose", lambda x: x.T, (floats(3, 4),)),
    Sample("transpose", lambda x: x.transpose(0, -1), (floats(2, 3, 4),)),
    Sample("transpose", lambda x: x.transpose(0, 0), (floats(),), "scalar"),
    Sample("reshape", lambda x: x.reshape(2, -1), (floats(3, 4),)),
    Sample("reshape", lambda x: x.reshape((12,)), (floats(3, 4),), "tuple"),
    Sample("reshape", lambda x: x.view(1), (floats(),), "view"),
    Sample("expand", lambda x: x.expand(3, 4), (floats(3, 1),)),
    Sample("expand", lambda x: x.expand((2, -1, 4)), (floats(3, 1),), "tuple"),
]
"""Ops over tensors. Ops that make a tensor out of nothing, and casts, have tests of their own."""
