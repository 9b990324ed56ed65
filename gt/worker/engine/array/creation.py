"""Creation ops that NumPy and JAX share.

For a part of a tensor, `offset` is its start in the tensor, and `global_shape` the shape of that.
"""

from collections.abc import Sequence
from typing import Any

from gt.worker.engine import random
from gt.worker.engine.random import region

Part = Sequence[int] | None


def full(xp: Any, shape: Sequence[int], value: float, dtype: str) -> Any:
    return xp.full(tuple(shape), xp.asarray(value).astype(_numpy_dtype(dtype)))


def arange(
    xp: Any,
    shape: Sequence[int],
    start: float,
    step: float,
    dtype: str,
    offset: Part = None,
    global_shape: Part = None,
) -> Any:
    integral = isinstance(start, int) and isinstance(step, int)
    index = xp.arange(shape[0], dtype="int64" if integral else "float64")
    return start + step * (index + offset[0] if offset else index)


def linspace(
    xp: Any,
    shape: Sequence[int],
    start: float,
    end: float,
    dtype: str,
    offset: Part = None,
    global_shape: Part = None,
) -> Any:
    return _cut(xp.linspace(start, end, (global_shape or shape)[0]), shape, offset)


def eye(xp: Any, shape: Sequence[int], dtype: str, offset: Part = None, global_shape: Part = None) -> Any:
    return _cut(xp.eye(*(global_shape or shape)), shape, offset)


def rand(
    xp: Any, shape: Sequence[int], dtype: str, seed: int, offset: Part = None, global_shape: Part = None
) -> Any:
    return xp.asarray(random.uniform(shape, dtype, seed, region(offset, global_shape)))


def randn(
    xp: Any, shape: Sequence[int], dtype: str, seed: int, offset: Part = None, global_shape: Part = None
) -> Any:
    return xp.asarray(random.normal(shape, dtype, seed, region(offset, global_shape)))


def randint(
    xp: Any,
    shape: Sequence[int],
    low: int,
    high: int,
    dtype: str,
    seed: int,
    offset: Part = None,
    global_shape: Part = None,
) -> Any:
    return xp.asarray(random.integers(shape, low, high, seed, region(offset, global_shape)))


def randperm(
    xp: Any, shape: Sequence[int], dtype: str, seed: int, offset: Part = None, global_shape: Part = None
) -> Any:
    return _cut(xp.asarray(random.permutation((global_shape or shape)[0], seed)), shape, offset)


def bernoulli(
    xp: Any,
    shape: Sequence[int],
    p: float,
    dtype: str,
    seed: int,
    offset: Part = None,
    global_shape: Part = None,
) -> Any:
    return xp.asarray(random.bernoulli(shape, p, seed, region(offset, global_shape)))


def _cut(whole: Any, shape: Sequence[int], offset: Part) -> Any:
    if offset is None:
        return whole
    return whole[tuple(slice(a, a + n) for a, n in zip(offset, shape, strict=True))]


def _numpy_dtype(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype  # NumPy itself has no bfloat16
