"""Creation ops that PyTorch spells differently."""

from collections.abc import Sequence

import torch

from gt.worker.engine.random import normal, uniform


def full(shape: Sequence[int], value: float, dtype: str) -> torch.Tensor:
    return torch.full(tuple(shape), value, dtype=getattr(torch, dtype))


def arange(shape: Sequence[int], start: float, step: float, dtype: str) -> torch.Tensor:
    return (start + step * torch.arange(shape[0])).to(getattr(torch, dtype))


def rand(shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
    return torch.as_tensor(uniform(shape, dtype, seed)).to(getattr(torch, dtype))


def randn(shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
    return torch.as_tensor(normal(shape, dtype, seed)).to(getattr(torch, dtype))
