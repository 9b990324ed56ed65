"""Creation ops that PyTorch spells differently."""

from collections.abc import Sequence

import numpy as np
import torch

from gt.worker.engine import random


def full(shape: Sequence[int], value: float, dtype: str) -> torch.Tensor:
    return torch.full(tuple(shape), value, dtype=getattr(torch, dtype))


def arange(shape: Sequence[int], start: float, step: float, dtype: str) -> torch.Tensor:
    # In 64 bits: rounding happens once, at the end.
    whole = isinstance(start, int) and isinstance(step, int)
    index = torch.arange(shape[0], dtype=torch.int64 if whole else torch.float64)
    return (start + step * index).to(getattr(torch, dtype))


def linspace(shape: Sequence[int], start: float, end: float, dtype: str) -> torch.Tensor:
    return torch.linspace(start, end, shape[0], dtype=getattr(torch, dtype))


def eye(shape: Sequence[int], dtype: str) -> torch.Tensor:
    return torch.eye(*shape, dtype=getattr(torch, dtype))


def rand(shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
    return _taken_in(random.uniform(shape, dtype, seed), dtype)


def randn(shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
    return _taken_in(random.normal(shape, dtype, seed), dtype)


def randint(shape: Sequence[int], low: int, high: int, dtype: str, seed: int) -> torch.Tensor:
    return _taken_in(random.integers(shape, low, high, seed), dtype)


def randperm(shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
    return _taken_in(random.permutation(shape[0], seed), dtype)


def bernoulli(shape: Sequence[int], p: float, dtype: str, seed: int) -> torch.Tensor:
    return _taken_in(random.chances(shape, p, seed), dtype)


def _taken_in(array: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.as_tensor(array).to(getattr(torch, dtype))
