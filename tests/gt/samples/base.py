"""Calls of every op in the table, for the tests that compare GT with PyTorch.

A sample is a function that works on both libraries' tensors, and the arrays to call it with. Each group of
the op table has a module of them beside this one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch

import gt


class Sample(NamedTuple):
    """`call(*tensors)` uses the op; it is written once and runs on GT's tensors and on PyTorch's."""

    op: str
    call: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    note: str = ""
    smooth: bool = True
    """Whether the op has a gradient at these arrays, and PyTorch has it too."""

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, a.shape)) or "scalar" for a in self.arrays)
        return f"{self.op}-{shapes}-{self.note or self.arrays[0].dtype}"


def floats(*shape: int, dtype: Any = "float32") -> np.ndarray:
    """Numbers between 0.1 and 2, where every function has a value and a finite slope."""
    return np.asarray(0.1 + 1.9 * np.random.default_rng(0).random(shape), dtype)


def signed(*shape: int, dtype: Any = "float32") -> np.ndarray:
    """Numbers on both sides of zero, none of them at it."""
    sign = np.where(np.random.default_rng(1).random(shape) < 0.5, -1, 1)
    return (sign * floats(*shape)).astype(dtype)


def ints(*shape: int, dtype: Any = "int64") -> np.ndarray:
    return np.asarray(np.random.default_rng(2).integers(1, 7, shape), dtype)


def bools(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).random(shape) < 0.5


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def is_float(array: np.ndarray) -> bool:
    """Whether a gradient may be asked of it."""
    return array.dtype.kind == "f" or array.dtype == BFLOAT16


def to_torch(array: np.ndarray) -> torch.Tensor:
    """PyTorch's tensor of an array, bfloat16 included."""
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(array)


def from_torch(tensor: torch.Tensor) -> np.ndarray:
    """The array of one of PyTorch's tensors; bfloat16 as float32."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def dtype_name(dtype: torch.dtype) -> str:
    """GT's name of one of PyTorch's dtypes."""
    return str(dtype).removeprefix("torch.")


def tolerance(dtype: str) -> float:
    """How far two engines may differ, relative to the value."""
    return {"float16": 2e-3, "bfloat16": 1.6e-2}.get(dtype, 2e-6)


def assert_same(ours: gt.Tensor, theirs: torch.Tensor) -> None:
    """Two libraries' tensors have the same shape, dtype and values."""
    name, expected = dtype_name(theirs.dtype), from_torch(theirs)
    assert (ours.shape, ours.dtype) == (tuple(theirs.shape), name), "inferred on the client"
    sent = ours._value.client.fetch(ours.id)
    assert (sent.shape, sent.dtype.name) == (ours.shape, ours.dtype), "computed by the engine"
    close = tolerance(name)
    np.testing.assert_allclose(np.asarray(ours), expected, rtol=close, atol=close)


def assert_same_gradients(
    result: gt.Tensor, ours: list[gt.Tensor], expected: torch.Tensor, theirs: list[torch.Tensor]
) -> None:
    """Two libraries' results, computed from these tensors, have the same gradients."""
    weights = np.linspace(-1, 1, result.numel()).reshape(result.shape).astype(np.float32)
    result.backward(gt.from_numpy(weights).to(result.dtype))
    expected.backward(torch.from_numpy(weights).to(expected.dtype))
    for mine, other in zip(ours, theirs, strict=True):
        if other.grad is None:
            assert mine.grad is None
            continue
        assert mine.grad is not None
        assert (mine.grad.shape, mine.grad.dtype) == (mine.shape, mine.dtype)
        close = {"float16": 4e-3, "bfloat16": 4e-2}.get(mine.dtype, 1e-5)
        np.testing.assert_allclose(np.asarray(mine.grad), from_torch(other.grad), rtol=close, atol=close)
