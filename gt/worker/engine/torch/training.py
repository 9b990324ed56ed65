"""Dropout and optimizer updates for PyTorch."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gt.worker.engine.random import region, uniform
from gt.worker.engine.torch.numbers import in_float32, like


def dropout(
    x: Tensor,
    p: float,
    seed: int,
    offset: Sequence[int] | None = None,
    global_shape: Sequence[int] | None = None,
) -> Tensor:
    return _dropped(x, p, _keep(tuple(x.shape), p, seed, offset, global_shape).to(x.device))


def dropout_mask(
    x: Tensor,
    p: float,
    seed: int,
    offset: Sequence[int] | None = None,
    global_shape: Sequence[int] | None = None,
) -> Tensor:
    return _keep(tuple(x.shape), p, seed, offset, global_shape).to(x.device)


def _keep(
    shape: tuple[int, ...],
    p: float,
    seed: int,
    offset: Sequence[int] | None = None,
    global_shape: Sequence[int] | None = None,
) -> Tensor:
    return torch.as_tensor(uniform(shape, "float32", seed, region(offset, global_shape)) >= p)


def _dropped(x: Tensor, p: float, drawn: Tensor) -> Tensor:
    return x * drawn * (1 / (1 - p) if p < 1 else 0.0)


# For a compiled sequence, random numbers are drawn before the call, and `Row.compiled_numbers` are tensors.
dropout.draw, dropout.given = _keep, _dropped  # type: ignore[attr-defined]
dropout_mask.draw, dropout_mask.given = _keep, lambda x, p, drawn: drawn  # type: ignore[attr-defined]


def weighted_sum(x: Tensor, y: Tensor, x_scale: float | Tensor, y_scale: float | Tensor) -> Tensor:
    if isinstance(x_scale, Tensor) or isinstance(y_scale, Tensor):
        return _weighted_sum(x, y, x_scale=x_scale, y_scale=y_scale)
    return torch.add(x if x_scale == 1 else x * x_scale, y, alpha=y_scale)


@in_float32
def _weighted_sum(x: Tensor, y: Tensor, x_scale: float | Tensor, y_scale: float | Tensor) -> Tensor:
    return x * like(x_scale, x) + y * like(y_scale, x)


def average_of_squares(average: Tensor, gradient: Tensor, decay: float | Tensor) -> Tensor:
    if isinstance(decay, Tensor):
        return _average_of_squares(average, gradient, decay=decay)
    return (average * decay).addcmul_(gradient, gradient, value=1 - decay)


@in_float32
def _average_of_squares(average: Tensor, gradient: Tensor, decay: Tensor) -> Tensor:
    return average * like(decay, average) + gradient * gradient * like(1 - decay, average)


def adaptive_step(
    x: Tensor,
    direction: Tensor,
    squares: Tensor,
    rate: float | Tensor,
    shrink: float | Tensor,
    correction: float | Tensor,
    eps: float | Tensor,
) -> Tensor:
    if isinstance(rate, Tensor):
        return _adaptive_step(x, direction, squares, rate=rate, shrink=shrink, correction=correction, eps=eps)
    size = squares.sqrt().div_(correction).add_(eps)
    return torch.addcdiv(x if shrink == 1 else x * shrink, direction, size, value=-rate)


@in_float32
def _adaptive_step(x: Tensor, direction: Tensor, squares: Tensor, **numbers: Tensor) -> Tensor:
    rate, shrink, correction, eps = (
        like(numbers[name], x) for name in ("rate", "shrink", "correction", "eps")
    )
    return x * shrink - rate * direction / (squares.sqrt() / correction + eps)


def total_norm(*xs: Tensor, order: float) -> Tensor:
    norms = [torch.linalg.vector_norm(x, order) for x in xs]
    return torch.linalg.vector_norm(torch.stack(norms), order).to(xs[0].dtype)
