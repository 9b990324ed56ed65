"""Dropout and optimizer updates in PyTorch's words."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gt.worker.engine.random import place, uniform


def dropout(
    x: Tensor, p: float, seed: int, at: Sequence[int] | None = None, of: Sequence[int] | None = None
) -> Tensor:
    keep = torch.as_tensor(uniform(tuple(x.shape), "float32", seed, place(at, of)) >= p).to(x.device)
    return x * keep * (1 / (1 - p) if p < 1 else 0.0)


def weighted_sum(x: Tensor, y: Tensor, x_scale: float, y_scale: float) -> Tensor:
    return torch.add(x if x_scale == 1 else x * x_scale, y, alpha=y_scale)


def average_of_squares(average: Tensor, gradient: Tensor, decay: float) -> Tensor:
    return (average * decay).addcmul_(gradient, gradient, value=1 - decay)


def adaptive_step(
    x: Tensor, direction: Tensor, squares: Tensor, rate: float, shrink: float, correction: float, eps: float
) -> Tensor:
    size = squares.sqrt().div_(correction).add_(eps)
    return torch.addcdiv(x if shrink == 1 else x * shrink, direction, size, value=-rate)


def total_norm(*xs: Tensor, order: float) -> Tensor:
    norms = [torch.linalg.vector_norm(x, order) for x in xs]
    return torch.linalg.vector_norm(torch.stack(norms), order).to(xs[0].dtype)
