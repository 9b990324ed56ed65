"""Accesses that are noted and not done, for a client that needs no real data."""

from typing import Any

import numpy as np

from triton_viz.dsls.triton.ops.types import compute_dtype
from triton_viz.executor.value import Value


def skipped_load(pointers: Value, *_: Any, **__: Any) -> Value:
    """Zeros of the right shape and type, the same for all lanes."""
    dtype = pointers.dtype.element_ty
    zero = np.zeros((1,) * (1 + len(pointers.shape)), compute_dtype(dtype))
    return Value(np.broadcast_to(zero, (1, *pointers.shape)), dtype)


def skipped_store(*_: Any, **__: Any) -> None:
    """Nothing."""
