"""The PyTorch engine: the default."""

from collections.abc import Sequence

import numpy as np
import torch

from gt.worker.engine.base import Engine
from gt.worker.engine.random import normal, uniform


class PyTorchEngine(Engine):
    """Computes with PyTorch. Gradients are GT's own, so PyTorch's are off."""

    name = "pytorch"

    def put(self, array: np.ndarray) -> torch.Tensor:
        """Take an array in."""
        return torch.from_numpy(array)

    def get(self, value: torch.Tensor) -> np.ndarray:
        """Give a value out."""
        return value.numpy()


def cast(x: torch.Tensor, dtype: str) -> torch.Tensor:
    return x.to(getattr(torch, dtype))


def expand(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return x.expand(tuple(shape))


def full(shape: Sequence[int], value: float, dtype: str) -> torch.Tensor:
    return torch.full(tuple(shape), value, dtype=getattr(torch, dtype))


def arange(shape: Sequence[int], start: float, step: float, dtype: str) -> torch.Tensor:
    return (start + step * torch.arange(shape[0])).to(getattr(torch, dtype))


def rand(shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
    return torch.from_numpy(uniform(shape, dtype, seed))


def randn(shape: Sequence[int], dtype: str, seed: int) -> torch.Tensor:
    return torch.from_numpy(normal(shape, dtype, seed))
