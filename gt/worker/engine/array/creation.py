"""Creation ops that NumPy and JAX share."""

from collections.abc import Sequence
from typing import Any

from gt.worker.engine import random


def full(xp: Any, shape: Sequence[int], value: float, dtype: str) -> Any:
    return xp.full(tuple(shape), xp.asarray(value).astype(_held(dtype)))


def arange(xp: Any, shape: Sequence[int], start: float, step: float, dtype: str) -> Any:
    whole = isinstance(start, int) and isinstance(step, int)
    return start + step * xp.arange(shape[0], dtype="int64" if whole else "float64")


def linspace(xp: Any, shape: Sequence[int], start: float, end: float, dtype: str) -> Any:
    return xp.linspace(start, end, shape[0])


def eye(xp: Any, shape: Sequence[int], dtype: str) -> Any:
    return xp.eye(*shape)


def rand(xp: Any, shape: Sequence[int], dtype: str, seed: int) -> Any:
    return xp.asarray(random.uniform(shape, dtype, seed))


def randn(xp: Any, shape: Sequence[int], dtype: str, seed: int) -> Any:
    return xp.asarray(random.normal(shape, dtype, seed))


def randint(xp: Any, shape: Sequence[int], low: int, high: int, dtype: str, seed: int) -> Any:
    return xp.asarray(random.integers(shape, low, high, seed))


def randperm(xp: Any, shape: Sequence[int], dtype: str, seed: int) -> Any:
    return xp.asarray(random.permutation(shape[0], seed))


def bernoulli(xp: Any, shape: Sequence[int], p: float, dtype: str, seed: int) -> Any:
    return xp.asarray(random.chances(shape, p, seed))


def _held(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype  # NumPy itself has no bfloat16
