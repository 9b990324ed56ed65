"""The NumPy engine: the reference. Slower, no dependencies, easy to read."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gt.ops import Row, Spec
from gt.worker.engine.base import Engine
from gt.worker.engine.random import normal, uniform


class NumpyEngine(Engine):
    """Computes with NumPy, and holds results to the op table's dtypes where NumPy has other habits."""

    name = "numpy"

    def put(self, array: np.ndarray) -> np.ndarray:
        """Take an array in."""
        return array

    def get(self, value: np.ndarray) -> np.ndarray:
        """Give a value out."""
        return value

    def run(self, row: Row, inputs: Sequence[np.ndarray], attrs: dict[str, Any]) -> np.ndarray:
        """Compute one op. Infinities and NaNs are values here, as in PyTorch, not warnings."""
        spec = row.infer(tuple(Spec(x.shape, x.dtype.name) for x in inputs), attrs)
        with np.errstate(all="ignore"):
            return np.asarray(super().run(row, inputs, attrs)).astype(spec.dtype, copy=False)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def cast(x: np.ndarray, dtype: str) -> np.ndarray:
    return x.astype(dtype)


def sum(x: np.ndarray, dim: Sequence[int] | None, keepdim: bool) -> np.ndarray:
    return np.sum(x, axis=None if dim is None else tuple(dim), keepdims=keepdim)


def mean(x: np.ndarray, dim: Sequence[int] | None, keepdim: bool) -> np.ndarray:
    axis = None if dim is None else tuple(dim)
    if x.size:
        return np.mean(x, axis=axis, keepdims=keepdim)
    return np.sum(x, axis=axis, keepdims=keepdim) * np.nan  # np.mean says so too, but with a warning


def transpose(x: np.ndarray, dim0: int, dim1: int) -> np.ndarray:
    return np.swapaxes(x, dim0, dim1) if x.ndim else x


def expand(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    return np.broadcast_to(x, shape)


def full(shape: Sequence[int], value: float, dtype: str) -> np.ndarray:
    return np.full(shape, value, dtype)


def arange(shape: Sequence[int], start: float, step: float, dtype: str) -> np.ndarray:
    return (start + step * np.arange(shape[0])).astype(dtype)


def rand(shape: Sequence[int], dtype: str, seed: int) -> np.ndarray:
    return uniform(shape, dtype, seed)


def randn(shape: Sequence[int], dtype: str, seed: int) -> np.ndarray:
    return normal(shape, dtype, seed)
