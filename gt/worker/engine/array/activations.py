"""Activations that NumPy and JAX share."""

import math
from typing import Any

from gt.worker.engine.array.elementwise import erf


def relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0)


def sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def hardtanh(xp: Any, x: Any, min_val: float, max_val: float) -> Any:
    return xp.minimum(xp.maximum(x, min_val), max_val)


def leaky_relu(xp: Any, x: Any, negative_slope: float) -> Any:
    return xp.where(x > 0, x, x * negative_slope)


def elu(xp: Any, x: Any, alpha: float) -> Any:
    return xp.where(x > 0, x, alpha * xp.expm1(x))


def gelu(xp: Any, x: Any, approximate: str) -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(xp, x * math.sqrt(0.5)))


def silu(xp: Any, x: Any) -> Any:
    return x * sigmoid(xp, x)


def softplus(xp: Any, x: Any, beta: float, threshold: float) -> Any:
    scaled = x * beta
    return xp.where(scaled > threshold, x, xp.logaddexp(scaled, 0) / beta)


def softmax(xp: Any, x: Any, dim: int) -> Any:
    return xp.exp(log_softmax(xp, x, dim))


def log_softmax(xp: Any, x: Any, dim: int) -> Any:
    if not x.size:
        return x
    rows = xp.atleast_1d(x)  # PyTorch accepts dimension 0 of a tensor without dimensions
    shifted = rows - xp.max(rows, axis=dim, keepdims=True)
    return (shifted - xp.log(xp.sum(xp.exp(shifted), axis=dim, keepdims=True))).reshape(x.shape)
