"""Creation ops that NumPy and JAX share.

A part of a tensor is told the place it begins `at`, and the shape that it is a part `of`.
"""

from collections.abc import Sequence
from typing import Any

from gt.worker.engine import random
from gt.worker.engine.random import place

Part = Sequence[int] | None


def full(xp: Any, shape: Sequence[int], value: float, dtype: str) -> Any:
    return xp.full(tuple(shape), xp.asarray(value).astype(_held(dtype)))


def arange(
    xp: Any, shape: Sequence[int], start: float, step: float, dtype: str, at: Part = None, of: Part = None
) -> Any:
    integral = isinstance(start, int) and isinstance(step, int)
    index = xp.arange(shape[0], dtype="int64" if integral else "float64")
    return start + step * (index + at[0] if at else index)


def linspace(
    xp: Any, shape: Sequence[int], start: float, end: float, dtype: str, at: Part = None, of: Part = None
) -> Any:
    return _cut(xp.linspace(start, end, (of or shape)[0]), shape, at)


def eye(xp: Any, shape: Sequence[int], dtype: str, at: Part = None, of: Part = None) -> Any:
    return _cut(xp.eye(*(of or shape)), shape, at)


def rand(xp: Any, shape: Sequence[int], dtype: str, seed: int, at: Part = None, of: Part = None) -> Any:
    return xp.asarray(random.uniform(shape, dtype, seed, place(at, of)))


def randn(xp: Any, shape: Sequence[int], dtype: str, seed: int, at: Part = None, of: Part = None) -> Any:
    return xp.asarray(random.normal(shape, dtype, seed, place(at, of)))


def randint(
    xp: Any,
    shape: Sequence[int],
    low: int,
    high: int,
    dtype: str,
    seed: int,
    at: Part = None,
    of: Part = None,
) -> Any:
    return xp.asarray(random.integers(shape, low, high, seed, place(at, of)))


def randperm(xp: Any, shape: Sequence[int], dtype: str, seed: int, at: Part = None, of: Part = None) -> Any:
    return _cut(xp.asarray(random.permutation((of or shape)[0], seed)), shape, at)


def bernoulli(
    xp: Any, shape: Sequence[int], p: float, dtype: str, seed: int, at: Part = None, of: Part = None
) -> Any:
    return xp.asarray(random.chances(shape, p, seed, place(at, of)))


def _cut(whole: Any, shape: Sequence[int], at: Part) -> Any:
    if at is None:
        return whole
    return whole[tuple(slice(a, a + n) for a, n in zip(at, shape, strict=True))]


def _held(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype  # NumPy itself has no bfloat16
