"""Products that NumPy and JAX share."""

from typing import Any


def linear(xp: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    product = x @ weight.T
    return product if bias is None else product + bias


def einsum(xp: Any, *arrays: Any, equation: str) -> Any:
    return xp.einsum(equation, *arrays, optimize=True)
