"""Creation ops that PyTorch spells differently.

A part of a tensor is told the place it begins `at`, and the shape that it is a part `of`.
"""

from collections.abc import Sequence

import numpy as np
import torch

from gt.worker.engine import random
from gt.worker.engine.random import place

Part = Sequence[int] | None


def full(shape: Sequence[int], value: float, dtype: str) -> torch.Tensor:
    return torch.full(tuple(shape), value, dtype=getattr(torch, dtype))


def arange(
    shape: Sequence[int], start: float, step: float, dtype: str, at: Part = None, of: Part = None
) -> torch.Tensor:
    # In 64 bits: rounding happens once, at the end.
    integral = isinstance(start, int) and isinstance(step, int)
    index = torch.arange(shape[0], dtype=torch.int64 if integral else torch.float64)
    return (start + step * (index + at[0] if at else index)).to(getattr(torch, dtype))


def linspace(
    shape: Sequence[int], start: float, end: float, dtype: str, at: Part = None, of: Part = None
) -> torch.Tensor:
    return _cut(torch.linspace(start, end, (of or shape)[0], dtype=getattr(torch, dtype)), shape, at)


def eye(shape: Sequence[int], dtype: str, at: Part = None, of: Part = None) -> torch.Tensor:
    return _cut(torch.eye(*(of or shape), dtype=getattr(torch, dtype)), shape, at)


def rand(shape: Sequence[int], dtype: str, seed: int, at: Part = None, of: Part = None) -> torch.Tensor:
    return _taken_in(random.uniform(shape, dtype, seed, place(at, of)), dtype)


def randn(shape: Sequence[int], dtype: str, seed: int, at: Part = None, of: Part = None) -> torch.Tensor:
    return _taken_in(random.normal(shape, dtype, seed, place(at, of)), dtype)


def randint(
    shape: Sequence[int], low: int, high: int, dtype: str, seed: int, at: Part = None, of: Part = None
) -> torch.Tensor:
    return _taken_in(random.integers(shape, low, high, seed, place(at, of)), dtype)


def randperm(shape: Sequence[int], dtype: str, seed: int, at: Part = None, of: Part = None) -> torch.Tensor:
    return _cut(_taken_in(random.permutation((of or shape)[0], seed), dtype), shape, at)


def bernoulli(
    shape: Sequence[int], p: float, dtype: str, seed: int, at: Part = None, of: Part = None
) -> torch.Tensor:
    return _taken_in(random.chances(shape, p, seed, place(at, of)), dtype)


def _cut(whole: torch.Tensor, shape: Sequence[int], at: Part) -> torch.Tensor:
    if at is None:
        return whole
    return whole[tuple(slice(a, a + n) for a, n in zip(at, shape, strict=True))].clone()


def _taken_in(array: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.as_tensor(array).to(getattr(torch, dtype))
