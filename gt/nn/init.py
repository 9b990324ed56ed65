"""Initial values, drawn with GT's own random numbers: `gt.manual_seed` makes them repeatable.

Each function gives a tensor new values in place and returns it. The distributions are PyTorch's.
"""

import math
from typing import Any

from gt.autograd.graph import no_grad
from gt.errors import ShapeError
from gt.tensors.functions.creation import arange, full
from gt.tensors.functions.random_numbers import rand, randn
from gt.tensors.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def _fill(tensor: Tensor, values: Tensor) -> Tensor:
    tensor.data.copy_(values)
    return tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform over [a, b)."""
    with no_grad():
        values = rand(tensor.shape, dtype=tensor.dtype)
        return _fill(tensor, values if (a, b) == (0, 1) else values * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """From a normal distribution."""
    with no_grad():
        values = randn(tensor.shape, dtype=tensor.dtype)
        values = values if std == 1 else values * std
        return _fill(tensor, values if mean == 0 else values + mean)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> Tensor:
    """From a normal distribution, truncated to [a, b]."""
    low, high = (math.erf((edge - mean) / std / math.sqrt(2)) for edge in (a, b))
    missed = 1 - (high - low) / 2
    # Values out of bounds are drawn again, until fewer than one in a billion are expected to be left.
    draws = 1 if missed <= 0 else math.ceil(math.log(1e-9) / math.log(missed)) if missed < 1 else 0
    if not 0 < draws <= 200:
        raise ValueError(f"a normal distribution ({mean}, {std}) has too few values in [{a}, {b}]")
    with no_grad():
        values = normal_(tensor, mean, std).data
        for _ in range(draws - 1):
            again = randn(tensor.shape, dtype=tensor.dtype) * std + mean
            values = again.where((values < a) | (values > b), values)
        return _fill(tensor, values.clamp(a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return _fill(tensor, full(tensor.shape, val, dtype=tensor.dtype))


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1)


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = (arange(n) for n in tensor.shape)
    return _fill(tensor, (rows.reshape(-1, 1) == columns).to(tensor.dtype))


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The recommended gain of weights for an activation: it keeps the variance of the signal."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    if nonlinearity in gains:
        return gains[nonlinearity]
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def fans(tensor: Tensor) -> tuple[int, int]:
    """fan_in and fan_out of a weight: the inputs of each output, and the outputs of each input."""
    if tensor.ndim < 2:
        raise ShapeError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Uniform, with a width that preserves the variance through layers with this activation (He et al.)."""
    bound = math.sqrt(3) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Normal, with a width that preserves the variance through layers with this activation (He et al.)."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform, with a width that preserves the variance forward and backward (Glorot and Bengio)."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal, with a width that preserves the variance forward and backward (Glorot and Bengio)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))))
