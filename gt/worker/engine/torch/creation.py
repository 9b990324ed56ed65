"""Creation ops that PyTorch spells differently.

For a part of a tensor, `offset` is its start in the tensor, and `global_shape` the shape of that.
"""

from collections.abc import Sequence

import numpy as np
import torch

from gt.worker.engine import random
from gt.worker.engine.random import region

Part = Sequence[int] | None


def full(shape: Sequence[int], value: float, dtype: str) -> torch.Tensor:
    return torch.full(tuple(shape), value, dtype=getattr(torch, dtype))


def arange(
    shape: Sequence[int],
    start: float,
    step: float,
    dtype: str,
    offset: Part = None,
    global_shape: Part = None,
) -> torch.Tensor:
    # In 64 bits: rounding happens once, at the end.
    integral = isinstance(start, int) and isinstance(step, int)
    index = torch.arange(shape[0], dtype=torch.int64 if integral else torch.float64)
    return (start + step * (index + offset[0] if offset else index)).to(getattr(torch, dtype))


def linspace(
    shape: Sequence[int], start: float, end: float, dtype: str, offset: Part = None, global_shape: Part = None
) -> torch.Tensor:
    return _cut(
        torch.linspace(start, end, (global_shape or shape)[0], dtype=getattr(torch, dtype)), shape, offset
    )


def eye(shape: Sequence[int], dtype: str, offset: Part = None, global_shape: Part = None) -> torch.Tensor:
    return _cut(torch.eye(*(global_shape or shape), dtype=getattr(torch, dtype)), shape, offset)


def rand(
    shape: Sequence[int], dtype: str, seed: int, offset: Part = None, global_shape: Part = None
) -> torch.Tensor:
    return _as_dtype(random.uniform(shape, dtype, seed, region(offset, global_shape)), dtype)


def randn(
    shape: Sequence[int], dtype: str, seed: int, offset: Part = None, global_shape: Part = None
) -> torch.Tensor:
    return _as_dtype(random.normal(shape, dtype, seed, region(offset, global_shape)), dtype)


def randint(
    shape: Sequence[int],
    low: int,
    high: int,
    dtype: str,
    seed: int,
    offset: Part = None,
    global_shape: Part = None,
) -> torch.Tensor:
    return _as_dtype(random.integers(shape, low, high, seed, region(offset, global_shape)), dtype)


def randperm(
    shape: Sequence[int], dtype: str, seed: int, offset: Part = None, global_shape: Part = None
) -> torch.Tensor:
    return _cut(_as_dtype(random.permutation((global_shape or shape)[0], seed), dtype), shape, offset)


def bernoulli(
    shape: Sequence[int], p: float, dtype: str, seed: int, offset: Part = None, global_shape: Part = None
) -> torch.Tensor:
    return _as_dtype(random.bernoulli(shape, p, seed, region(offset, global_shape)), dtype)


def _cut(whole: torch.Tensor, shape: Sequence[int], offset: Part) -> torch.Tensor:
    if offset is None:
        return whole
    return whole[tuple(slice(a, a + n) for a, n in zip(offset, shape, strict=True))].clone()


def _as_dtype(array: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.as_tensor(array).to(getattr(torch, dtype))
