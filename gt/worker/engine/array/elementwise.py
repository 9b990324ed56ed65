"""Elementwise ops that NumPy and JAX share."""

from typing import Any


def relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


def sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def cast(xp: Any, x: Any, dtype: str) -> Any:
    # The engine rounds every result to the dtype that the op table says: that is the whole cast.
    return x
