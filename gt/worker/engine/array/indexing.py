"""Indexing ops that NumPy and JAX share.

An array of JAX never changes: where NumPy assigns to a copy, JAX has `x.at[key].set(y)`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


def _basic(index: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(*entry) if isinstance(entry, list | tuple) else entry for entry in index)


def _by_arrays(x_shape: Sequence[int], dims: Sequence[int], picks: Sequence[Any]) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * len(x_shape)
    for dim, pick in zip(dims, picks, strict=True):
        key[dim] = _in_range(pick, dim, x_shape[dim], -x_shape[dim])
    return tuple(key)


def _in_range(pick: Any, dim: int, size: int, low: int = 0) -> Any:
    """The same indices. Raises IndexError if one is out of range, which JAX would ignore."""
    if pick.size:
        for number in (int(pick.min()), int(pick.max())):
            if not low <= number < size:
                raise IndexError(f"index {number} is out of bounds for dimension {dim} with size {size}")
    return pick


def _put(x: Any, key: tuple[Any, ...], y: Any, add: bool = False) -> Any:
    if hasattr(x, "at"):
        return x.at[key].add(y) if add else x.at[key].set(y)
    result = x.copy()
    if add:
        np.add.at(result, key, y)
    else:
        result[key] = y
    return result


def getitem(xp: Any, x: Any, index: Sequence[Any]) -> Any:
    return x[_basic(index)]


def getitem_grad(xp: Any, g: Any, index: Sequence[Any], shape: Sequence[int]) -> Any:
    return _put(xp.zeros(tuple(shape), g.dtype), _basic(index), g)


def setitem(xp: Any, x: Any, y: Any = None, *, index: Sequence[Any], value: float = 0) -> Any:
    return _put(x, _basic(index), value if y is None else y)


def index(xp: Any, x: Any, *picks: Any, dims: Sequence[int]) -> Any:
    return x[_by_arrays(x.shape, dims, picks)]


def index_grad(xp: Any, g: Any, *picks: Any, dims: Sequence[int], shape: Sequence[int]) -> Any:
    return _put(xp.zeros(tuple(shape), g.dtype), _by_arrays(shape, dims, picks), g, add=True)


def index_put(
    xp: Any, x: Any, *rest: Any, dims: Sequence[int], accumulate: bool, value: float | None = None
) -> Any:
    y, picks = (rest[0], rest[1:]) if value is None else (value, rest)
    return _put(x, _by_arrays(x.shape, dims, picks), y, accumulate)


def gather(xp: Any, x: Any, index: Any, dim: int) -> Any:
    return x[_along(index, dim, x.shape)]


def gather_grad(xp: Any, g: Any, index: Any, dim: int, shape: Sequence[int]) -> Any:
    return _put(xp.zeros(tuple(shape), g.dtype), _along(index, dim, shape), g, add=True)


def scatter(xp: Any, x: Any, index: Any, source: Any = None, *, dim: int, value: float = 0) -> Any:
    y = value if source is None else source[tuple(slice(n) for n in index.shape)]
    return _put(x, _along(index, dim, x.shape), y)


def scatter_add(xp: Any, x: Any, index: Any, source: Any, dim: int) -> Any:
    y = source[tuple(slice(n) for n in index.shape)]
    return _put(x, _along(index, dim, x.shape), y, add=True)


def _along(index: Any, dim: int, shape: Sequence[int]) -> tuple[Any, ...]:
    """The key of the elements that `index` names along one dimension, and its own position in the others."""
    if not shape:
        return ()
    key: list[Any] = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    key[dim] = _in_range(index, dim, shape[dim])
    return tuple(key)


def embedding(xp: Any, weight: Any, index: Any, padding_idx: int) -> Any:
    return weight[_in_range(index, 0, weight.shape[0])]


def embedding_grad(xp: Any, g: Any, index: Any, rows: int, padding_idx: int) -> Any:
    g = g * (index != padding_idx)[..., None]
    return _put(xp.zeros((rows, g.shape[-1]), g.dtype), (index,), g, add=True)


def argsort(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    if not x.ndim:
        return xp.zeros((), "int64")
    if not descending:
        return xp.argsort(x, axis=dim, stable=True)
    # Sorting backwards twice keeps equal elements in their order, which sorting -x would also do, but not for
    # unsigned numbers.
    backwards = xp.argsort(xp.flip(x, dim), axis=dim, stable=True)
    return x.shape[dim] - 1 - xp.flip(backwards, dim)


def topk(xp: Any, x: Any, k: int, dim: int, largest: bool) -> Any:
    order = argsort(xp, x, dim, largest)
    return xp.take(order, np.arange(k), axis=dim) if x.ndim else order


def one_hot(xp: Any, x: Any, num_classes: int) -> Any:
    if x.size and int(x.min()) < 0:
        raise ValueError("Class values must be non-negative.")
    if x.size and int(x.max()) >= num_classes:
        raise ValueError("Class values must be smaller than num_classes.")
    return x[..., None] == xp.arange(num_classes)
