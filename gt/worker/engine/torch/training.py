"""Dropout and optimizer updates in PyTorch's words."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from gt.worker.engine.random import place, uniform

F = TypeVar("F", bound=Callable[..., Tensor])


def dropout(
    x: Tensor, p: float, seed: int, at: Sequence[int] | None = None, of: Sequence[int] | None = None
) -> Tensor:
    return _dropped(x, p, _keep(tuple(x.shape), p, seed, at, of).to(x.device))


def _keep(
    shape: tuple[int, ...],
    p: float,
    seed: int,
    at: Sequence[int] | None = None,
    of: Sequence[int] | None = None,
) -> Tensor:
    return torch.as_tensor(uniform(shape, "float32", seed, place(at, of)) >= p)


def _dropped(x: Tensor, p: float, drawn: Tensor) -> Tensor:
    return x * drawn * (1 / (1 - p) if p < 1 else 0.0)


# In a compiled sequence, random numbers are drawn before, and numbers that change are tensors.
dropout.draw, dropout.given = _keep, _dropped  # type: ignore[attr-defined]


def run_time(*names: str) -> Callable[[F], F]:
    """These numbers may be tensors: then they are given anew each time a compiled sequence runs."""

    def mark(function: F) -> F:
        function.run_time = names  # type: ignore[attr-defined]
        return function

    return mark


@run_time("x_scale", "y_scale")
def weighted_sum(x: Tensor, y: Tensor, x_scale: float | Tensor, y_scale: float | Tensor) -> Tensor:
    if isinstance(x_scale, Tensor) or isinstance(y_scale, Tensor):
        return x * _as(x_scale, x) + y * _as(y_scale, x)
    return torch.add(x if x_scale == 1 else x * x_scale, y, alpha=y_scale)


def _as(number: float | Tensor, x: Tensor) -> float | Tensor:
    return number.to(x.dtype) if isinstance(number, Tensor) else number


@run_time("decay")
def average_of_squares(average: Tensor, gradient: Tensor, decay: float | Tensor) -> Tensor:
    if isinstance(decay, Tensor):
        decay = decay.to(average.dtype)
        return average * decay + gradient * gradient * (1 - decay)
    return (average * decay).addcmul_(gradient, gradient, value=1 - decay)


@run_time("rate", "shrink", "correction", "eps")
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
        rate, shrink, correction, eps = (_as(number, x) for number in (rate, shrink, correction, eps))
        return x * shrink - rate * direction / (squares.sqrt() / correction + eps)
    size = squares.sqrt().div_(correction).add_(eps)
    return torch.addcdiv(x if shrink == 1 else x * shrink, direction, size, value=-rate)


def total_norm(*xs: Tensor, order: float) -> Tensor:
    norms = [torch.linalg.vector_norm(x, order) for x in xs]
    return torch.linalg.vector_norm(torch.stack(norms), order).to(xs[0].dtype)
