"""Calls of every op in the table, for the tests that compare GT with PyTorch.

A sample is a function that works on both libraries' tensors, and the arrays to call it with. Each group of
the op table has a module of them beside this one.
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
