"""Reductions that NumPy and JAX share."""

from collections.abc import Sequence
from math import inf
from math import prod as product
from typing import Any

Dims = Sequence[int] | None


def axes(dim: Dims) -> tuple[int, ...] | None:
    return None if dim is None else tuple(dim)


def sum(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    return xp.sum(x, axis=axes(dim), keepdims=keepdim)


def mean(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    if x.size:
        return xp.mean(x, axis=axes(dim), keepdims=keepdim)
    return xp.sum(x, axis=axes(dim), keepdims=keepdim) * xp.nan  # NaN, as from np.mean, which also warns


def prod(xp: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    return xp.prod(x, axis=dim, keepdims=keepdim)


def amax(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    return xp.max(x, axis=axes(dim), keepdims=keepdim)


def amin(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    return xp.min(x, axis=axes(dim), keepdims=keepdim)


def argmax(xp: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    return xp.argmax(x, axis=dim, keepdims=keepdim)


def argmin(xp: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    return xp.argmin(x, axis=dim, keepdims=keepdim)


def var(xp: Any, x: Any, dim: Dims, keepdim: bool, correction: float) -> Any:
    # Not np.var, which warns when the divisor is 0; the result is then NaN or infinity.
    axis = axes(dim)
    count = product(n for d, n in enumerate(x.shape) if axis is None or d in axis)
    squares = xp.square(x - mean(xp, x, dim, True))
    return xp.sum(squares, axis=axis, keepdims=keepdim) / xp.asarray(max(count - correction, 0), x.dtype)


def std(xp: Any, x: Any, dim: Dims, keepdim: bool, correction: float) -> Any:
    return xp.sqrt(var(xp, x, dim, keepdim, correction))


def norm(xp: Any, x: Any, dim: Dims, keepdim: bool, p: float) -> Any:
    size, how = xp.abs(x), {"axis": axes(dim), "keepdims": keepdim}
    if p == 0:
        return xp.sum(size != 0, **how)
    if p == inf:
        return xp.max(size, **how)
    if p == -inf:
        return xp.min(size, **how)
    return xp.sum(size**p, **how) ** (1 / p)


def logsumexp(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    if not x.size:
        return xp.log(xp.sum(xp.exp(x), axis=axes(dim), keepdims=keepdim))
    largest = xp.max(x, axis=axes(dim), keepdims=True)
    shift = xp.where(xp.isfinite(largest), largest, 0)
    total = xp.log(xp.sum(xp.exp(x - shift), axis=axes(dim), keepdims=True)) + shift
    return total if keepdim else xp.squeeze(total, axes(dim))


def all(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    return xp.all(x, axis=axes(dim), keepdims=keepdim)


def any(xp: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    return xp.any(x, axis=axes(dim), keepdims=keepdim)


def cumsum(xp: Any, x: Any, dim: int, reverse: bool) -> Any:
    rows = xp.atleast_1d(x)  # PyTorch accepts dimension 0 of a tensor without dimensions
    total = xp.flip(xp.cumsum(xp.flip(rows, dim), dim), dim) if reverse else xp.cumsum(rows, dim)
    return total.reshape(x.shape)


def cumprod(xp: Any, x: Any, dim: int) -> Any:
    return xp.cumprod(xp.atleast_1d(x), dim).reshape(x.shape)


def take_along(xp: Any, x: Any, index: Any, dim: int) -> Any:
    whole = index if index.ndim == x.ndim else xp.expand_dims(index, dim)
    return xp.take_along_axis(x, whole, dim).reshape(index.shape)


def put_along(xp: Any, x: Any, index: Any, dim: int, shape: Sequence[int]) -> Any:
    if index.ndim != len(shape):
        x, index = xp.expand_dims(x, dim), xp.expand_dims(index, dim)
    position = xp.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return xp.where(position == index, x, xp.zeros((), x.dtype))
