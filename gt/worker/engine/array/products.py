"""Products that NumPy and JAX share."""

import math
from typing import Any


def linear(xp: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    product = x @ weight.T
    return product if bias is None else product + bias


def einsum(xp: Any, *arrays: Any, equation: str) -> Any:
    return xp.einsum(equation, *arrays, optimize=True)


def linear_weight_grad(xp: Any, g: Any, x: Any) -> Any:
    rows = math.prod(g.shape[:-1])
    return g.reshape(rows, g.shape[-1]).T @ x.reshape(rows, x.shape[-1])
