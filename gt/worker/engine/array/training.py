"""Dropout and optimizer updates that NumPy and JAX share."""

import math
from collections.abc import Sequence
from typing import Any

from gt.worker.engine.random import region, uniform


def dropout(
    xp: Any,
    x: Any,
    p: float,
    seed: int,
    offset: Sequence[int] | None = None,
    global_shape: Sequence[int] | None = None,
) -> Any:
    keep = xp.asarray(uniform(x.shape, "float32", seed, region(offset, global_shape)) >= p)
    return x * keep * (1 / (1 - p) if p < 1 else 0.0)


def dropout_mask(
    xp: Any,
    x: Any,
    p: float,
    seed: int,
    offset: Sequence[int] | None = None,
    global_shape: Sequence[int] | None = None,
) -> Any:
    return xp.asarray(uniform(x.shape, "float32", seed, region(offset, global_shape)) >= p)


def weighted_sum(xp: Any, x: Any, y: Any, x_scale: float, y_scale: float) -> Any:
    return x * x_scale + y * y_scale


def average_of_squares(xp: Any, average: Any, gradient: Any, decay: float) -> Any:
    return average * decay + gradient * gradient * (1 - decay)


def adaptive_step(
    xp: Any, x: Any, direction: Any, squares: Any, rate: float, shrink: float, correction: float, eps: float
) -> Any:
    return x * shrink - rate * direction / (xp.sqrt(squares) / correction + eps)


def total_norm(xp: Any, *xs: Any, order: float) -> Any:
    if math.isinf(order):
        return xp.stack([abs(x).max() for x in xs]).max()
    return sum((abs(x) ** order).sum() for x in xs) ** (1 / order)
