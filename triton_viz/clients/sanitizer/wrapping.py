"""Detects integer arithmetic that wraps around."""

from collections.abc import Sequence

import numpy as np

from triton_viz.executor.value import Value

EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "shl": np.left_shift}
"""The ops that may wrap around, by name, with NumPy's functions for 64-bit integers."""


def wrapped_lanes(name: str, operands: Sequence[Value], result: Value) -> np.ndarray | None:
    """The lanes in which signed integers wrapped around, of shape (L,); None if there are none."""
    if result.affine is not None or len(operands) != 2:
        return None  # affine results do not wrap around
    kind = result.data.dtype
    if kind.kind != "i" or kind.itemsize > 4:
        return None
    a, b = (operand.data.astype(np.int64) for operand in operands)
    if name == "shl":
        b = np.clip(b, 0, 31)
    wrapped = EXACT[name](a, b) != result.data
    return wrapped.reshape(len(wrapped), -1).any(axis=1) if wrapped.any() else None
