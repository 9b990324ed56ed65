"""Functions that make tensors."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from gt.client.base import Number, check_dtype, check_number, create, upload
from gt.client.methods.shaping import Size, as_shape
from gt.client.session import current
from gt.client.tensor import Tensor
from gt.errors import DTypeError
from gt.ops import dtypes

__all__ = ["arange", "from_numpy", "full", "manual_seed", "ones", "rand", "randn", "tensor", "zeros"]

_seed = 0
_draws = itertools.count()


def tensor(data: Any, dtype: str | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of this data: numbers, nested lists, an array.

    As in PyTorch, Python floats become float32. Whole numbers become float32 too if a gradient is asked.
    """
    if isinstance(data, Tensor):
        data = np.asarray(data)
    array = np.asarray(data)
    if dtype is None:
        dtype = array.dtype.name
        if not hasattr(data, "dtype"):
            dtype = {"float64": "float32"}.get(dtype, dtype)
        if requires_grad and dtype in dtypes.DTYPES and not dtypes.is_float(dtype):
            dtype = "float32"
    return upload(current(), array.astype(check_dtype(dtype)), requires_grad)


def from_numpy(array: np.ndarray, requires_grad: bool = False) -> Tensor:
    """A tensor of an array's data, in the array's dtype. A copy: the array may change afterwards."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy() takes an array, not {type(array).__name__}; use gt.tensor()")
    return tensor(array, requires_grad=requires_grad)


def full(
    shape: Sequence[SupportsIndex], value: Number, dtype: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of one value everywhere."""
    dtype = check_dtype(dtype or dtypes.of_scalar(check_number(value)))
    return create(current(), "full", requires_grad, shape=as_shape((shape,)), value=value, dtype=dtype)


def zeros(*shape: Size, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    return full(as_shape(shape), 0, dtype, requires_grad)


def ones(*shape: Size, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return full(as_shape(shape), 1, dtype, requires_grad)


def arange(start: Number, end: Number | None = None, step: Number = 1, dtype: str | None = None) -> Tensor:
    """Numbers from start (0 if only the end is given) up to, and without, end."""
    if end is None:
        start, end = 0, start
    if step == 0:
        raise ValueError("step must be nonzero")
    whole = all(isinstance(check_number(n), int) for n in (start, end, step))
    dtype = check_dtype(dtype or ("int64" if whole else "float32"))
    shape = (max(0, math.ceil((end - start) / step)),)
    return create(current(), "arange", shape=shape, start=start, step=step, dtype=dtype)


def rand(*shape: Size, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """Random numbers, evenly spread over [0, 1)."""
    return _random("rand", as_shape(shape), dtype, requires_grad)


def randn(*shape: Size, dtype: str = "float32", requires_grad: bool = False) -> Tensor:
    """Random numbers from the standard normal distribution."""
    return _random("randn", as_shape(shape), dtype, requires_grad)


def manual_seed(seed: int) -> None:
    """Start the random numbers over: the same seed gives the same numbers, on every engine."""
    global _seed, _draws
    if not isinstance(seed, int):
        raise TypeError(f"a seed is a whole number, and this is {seed!r}")
    _seed, _draws = seed, itertools.count()


def _random(op: str, shape: tuple[int, ...], dtype: str, requires_grad: bool) -> Tensor:
    if not dtypes.is_float(check_dtype(dtype)):
        raise DTypeError(f"{op} makes floating point numbers, not {dtype}")
    return create(current(), op, requires_grad, shape=shape, dtype=dtype, seed=next_seed())


def next_seed() -> int:
    """A seed for one draw: far from the others, so that no draw continues another, and fit for the wire."""
    return (_seed * 0x9E3779B97F4A7C15 + next(_draws) * 0xD1342543DE82EF95) % 2**63
