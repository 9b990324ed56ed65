"""Normalization that NumPy and JAX share."""

from collections.abc import Sequence
from typing import Any


def _centered(xp: Any, x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    centered = x - x.mean(axes, keepdims=True)
    return centered, 1 / xp.sqrt((centered * centered).mean(axes, keepdims=True) + eps)


def layer_norm(
    xp: Any, x: Any, weight: Any = None, bias: Any = None, *, normalized_shape: Sequence[int], eps: float
) -> Any:
    axes = tuple(range(-len(normalized_shape), 0))
    centered, scale = _centered(xp, x, axes, eps)
    result = centered * scale
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def layer_norm_grad(
    xp: Any, g: Any, x: Any, weight: Any = None, *, normalized_shape: Sequence[int], eps: float
) -> Any:
    axes = tuple(range(-len(normalized_shape), 0))
    centered, scale = _centered(xp, x, axes, eps)
    normal = centered * scale
    g = g if weight is None else g * weight
    # The output does not depend on the mean and the scale of x, so the gradient has no component along them.
    shift, scaling = g.mean(axes, keepdims=True), (g * normal).mean(axes, keepdims=True)
    return scale * (g - shift - normal * scaling)
