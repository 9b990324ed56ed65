"""Gradient clipping."""

import math
from collections.abc import Iterable
from typing import Any

from gt.autograd.graph import no_grad
from gt.tensors.functions.creation import full
from gt.tensors.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_"]


def _gradients(parameters: Tensor | Iterable[Any]) -> list[tuple[Any, Tensor]]:
    given = [parameters] if isinstance(parameters, Tensor) else parameters
    return [(parameter, parameter.grad) for parameter in given if parameter.grad is not None]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Any],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients together so that their norm, as one vector, is at most `max_norm`.

    Returns the norm before. Does not wait for it, unless `error_if_nonfinite`.
    """
    gradients = _gradients(parameters)
    if not gradients:
        return full((), 0.0)
    with no_grad():
        first, *others = (gradient for _, gradient in gradients)
        norm = first._apply("total_norm", *others, order=float(norm_type))
        if error_if_nonfinite and not math.isfinite(norm.item()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
                "so it cannot be clipped."
            )
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for parameter, gradient in gradients:
            parameter.grad = gradient * scale
    return norm


def clip_grad_value_(parameters: Tensor | Iterable[Any], clip_value: float) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value]."""
    with no_grad():
        for parameter, gradient in _gradients(parameters):
            parameter.grad = gradient.clamp(-clip_value, clip_value)
