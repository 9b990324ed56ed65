"""Ops that select elements by a condition, for NumPy and JAX."""

from typing import Any


def where(xp: Any, condition: Any, *tensors: Any, input: float | None, other: float | None) -> Any:
    left = tensors[0] if input is None else input
    return xp.where(condition, left, tensors[-1] if other is None else other)


def masked_fill(xp: Any, x: Any, mask: Any, value: float) -> Any:
    return xp.where(mask, xp.asarray(value).astype(x.dtype), x)
