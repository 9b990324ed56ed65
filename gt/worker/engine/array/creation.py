"""Creation ops that NumPy and JAX share."""

from collections.abc import Sequence
from typing import Any

from gt.worker.engine.random import normal, uniform


def full(xp: Any, shape: Sequence[int], value: float, dtype: str) -> Any:
    return xp.full(tuple(shape), value, dtype)


def arange(xp: Any, shape: Sequence[int], start: float, step: float, dtype: str) -> Any:
    return start + step * xp.arange(shape[0])


def rand(xp: Any, shape: Sequence[int], dtype: str, seed: int) -> Any:
    return xp.asarray(uniform(shape, dtype, seed))


def randn(xp: Any, shape: Sequence[int], dtype: str, seed: int) -> Any:
    return xp.asarray(normal(shape, dtype, seed))
