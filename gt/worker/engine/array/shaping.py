"""Shape ops that NumPy and JAX share."""

from collections.abc import Sequence
from typing import Any


def transpose(xp: Any, x: Any, dim0: int, dim1: int) -> Any:
    return xp.swapaxes(x, dim0, dim1) if x.ndim else x


def expand(xp: Any, x: Any, shape: Sequence[int]) -> Any:
    return xp.broadcast_to(x, tuple(shape))
