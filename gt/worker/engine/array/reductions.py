"""Reductions that NumPy and JAX share."""

from collections.abc import Sequence
from typing import Any


def axes(dim: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if dim is None else tuple(dim)


def sum(xp: Any, x: Any, dim: Sequence[int] | None, keepdim: bool) -> Any:
    return xp.sum(x, axis=axes(dim), keepdims=keepdim)


def mean(xp: Any, x: Any, dim: Sequence[int] | None, keepdim: bool) -> Any:
    if x.size:
        return xp.mean(x, axis=axes(dim), keepdims=keepdim)
    return xp.sum(x, axis=axes(dim), keepdims=keepdim) * xp.nan  # np.mean says so too, but with a warning
