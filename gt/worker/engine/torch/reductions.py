"""Reductions that PyTorch spells differently."""

from collections.abc import Sequence
from typing import Any

import torch

Dims = Any
"""Several dimensions, or None for all. PyTorch takes both, but its annotations do not always allow it."""


def prod(x: torch.Tensor, dim: int | None, keepdim: bool) -> torch.Tensor:
    return torch.prod(x) if dim is None else torch.prod(x, dim, keepdim)


def amax(x: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    return torch.amax(x, () if dim is None else tuple(dim), keepdim)


def amin(x: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    return torch.amin(x, () if dim is None else tuple(dim), keepdim)


def argmax(x: torch.Tensor, dim: int | None, keepdim: bool) -> torch.Tensor:
    return torch.argmax(x, dim, keepdim)


def argmin(x: torch.Tensor, dim: int | None, keepdim: bool) -> torch.Tensor:
    return torch.argmin(x, dim, keepdim)


def var(x: torch.Tensor, dim: Dims, keepdim: bool, correction: float) -> torch.Tensor:
    return torch.var(x, dim, correction=correction, keepdim=keepdim)


def std(x: torch.Tensor, dim: Dims, keepdim: bool, correction: float) -> torch.Tensor:
    return torch.std(x, dim, correction=correction, keepdim=keepdim)


def norm(x: torch.Tensor, dim: Dims, keepdim: bool, p: float) -> torch.Tensor:
    return torch.linalg.vector_norm(x, p, dim, keepdim)


def logsumexp(x: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    return torch.logsumexp(x, tuple(range(x.ndim)) if dim is None else tuple(dim), keepdim)


def all(x: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    return torch.all(x, dim, keepdim)


def any(x: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    return torch.any(x, dim, keepdim)


def cumsum(x: torch.Tensor, dim: int, reverse: bool) -> torch.Tensor:
    if reverse and x.ndim:
        return torch.cumsum(x.flip(dim), dim).flip(dim)
    return torch.cumsum(x, dim)


def cumprod(x: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.cumprod(x, dim)


def take_along(x: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
    whole = index if index.ndim == x.ndim else index.unsqueeze(dim)
    return torch.gather(x, dim, whole).reshape(index.shape)


def put_along(x: torch.Tensor, index: torch.Tensor, dim: int, shape: Sequence[int]) -> torch.Tensor:
    if index.ndim != len(shape):
        x, index = x.unsqueeze(dim), index.unsqueeze(dim)
    return x.new_zeros(tuple(shape)).scatter_(dim, index, x)
