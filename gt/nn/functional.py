"""Layers, activations and losses as plain functions, usually imported as `F`.

Names, arguments and results are PyTorch's, except where a docstring notes a difference.
"""

import sys
import warnings
from typing import Any

from gt.client.client import PACKAGE
from gt.errors import ShapeError
from gt.ops import shapes
from gt.tensors.functions.base import function
from gt.tensors.functions.convolution import adaptive_avg_pool2d, avg_pool2d, conv1d, conv2d, max_pool2d
from gt.tensors.functions.creation import ones
from gt.tensors.functions.indexing import embedding, one_hot
from gt.tensors.functions.normalization import layer_norm, rms_norm
from gt.tensors.functions.products import linear, scaled_dot_product_attention
from gt.tensors.functions.random_numbers import dropout
from gt.tensors.tensor import Tensor

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool2d",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
    "tanh",
]

# --- losses ---


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of the squared differences. Different shapes are broadcast, with a warning."""
    input, target = _broadcast(input, target)
    return input._apply("mse_loss", target, reduction=_checked(reduction))


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of the absolute differences. Different shapes are broadcast, with a warning."""
    input, target = _broadcast(input, target)
    return _reduce((input - target).abs(), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Squared differences where they are below beta, absolute ones elsewhere."""
    if beta < 0:
        raise ValueError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction)
    return _reduce(_huber(input, target, beta) * (1 / beta), reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Squared differences where they are below delta, absolute ones elsewhere."""
    if delta <= 0:
        raise ValueError("huber_loss does not support non-positive values for delta.")
    return _reduce(_huber(input, target, delta), reduction)


def _huber(input: Tensor, target: Tensor, knee: float) -> Tensor:
    input, target = _broadcast(input, target)
    distance = (input - target).abs()
    # c * (d - c / 2) with c = min(d, knee) is the parabola below the knee, and its tangent above it.
    small = distance.clamp(max=knee)
    return small * (distance - small * 0.5)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The binary cross entropy of probabilities and targets between 0 and 1."""
    if input.shape != target.shape:
        raise ShapeError(
            f"Using a target size ({list(target.shape)}) that is different to the input size "
            f"({list(input.shape)}) is deprecated. Please ensure they have the same size."
        )
    if weight is None:
        return input._apply("binary_cross_entropy", target, reduction=_checked(reduction))
    return _reduce(input._apply("binary_cross_entropy", target, reduction="none") * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross entropy of the sigmoid of scores, and targets between 0 and 1."""
    if input.shape != target.shape:
        raise ShapeError(
            f"Target size ({list(target.shape)}) must be the same as input size ({list(input.shape)})"
        )
    op = "binary_cross_entropy_with_logits"
    if weight is None and pos_weight is None:
        return input._apply(op, target, reduction=_checked(reduction))
    if pos_weight is None:
        losses = input._apply(op, target, reduction="none")
    else:
        # For targets of 1, the loss is log(1 + exp(-x)), the term that pos_weight scales.
        softplus = input._apply(op, ones(input.shape, dtype=input.dtype), reduction="none")
        losses = (1 - target) * input + ((pos_weight - 1) * target + 1) * softplus
    return _reduce(losses if weight is None else losses * weight, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of a softmax over scores (dimension 1, or the only one) and the targets.

    Targets are a class index for each row, or probabilities in the shape of the scores.
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.is_floating_point() and target.shape == input.shape:
        return _soft_cross_entropy(input, target, weight, _checked(reduction), label_smoothing)
    return input._apply(
        "cross_entropy",
        *(target,) if weight is None else (target, weight),
        reduction=_checked(reduction),
        ignore_index=ignore_index,
        label_smoothing=float(label_smoothing),
    )


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    dim = min(input.ndim - 1, 1)
    count = input.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / count
    if weight is not None:
        target = target * weight.reshape(-1, *[1] * (input.ndim - 1 - dim))
    losses = -(log_softmax(input, dim) * target)
    if reduction == "none":
        return losses.sum(dim)
    # The mean is over rows: over everything but the classes.
    return losses.sum() / max(input.numel() // max(count, 1), 1) if reduction == "mean" else losses.sum()


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability (dimension 1, or the only one) of the true class."""
    return input._apply(
        "nll_loss",
        *(target,) if weight is None else (target, weight),
        reduction=_checked(reduction),
        ignore_index=ignore_index,
    )


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities from the target's probabilities."""
    if log_target:
        losses = target.exp() * (target - input)
    else:
        # Where the target is 0, the loss is 0; log(1) avoids 0 * -inf.
        logs = target.where(target > 0, 1).log()
        losses = target * (logs - input)
    if reduction == "batchmean":
        return losses.sum() / max(input.shape[0] if input.ndim else 1, 1)
    return _reduce(losses, reduction)


def _checked(reduction: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction: use 'mean', 'sum' or 'none'")
    return reduction


def _reduce(losses: Tensor, reduction: str) -> Tensor:
    return {"mean": Tensor.mean, "sum": Tensor.sum, "none": lambda x: x}[_checked(reduction)](losses)


def _broadcast(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({list(target.shape)}) that is different to the input size "
        f"({list(input.shape)}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=_stacklevel_of_user(),
    )
    shape = shapes.broadcast(input.shape, target.shape)
    return input.expand(shape), target.expand(shape)


def _stacklevel_of_user() -> int:
    """The `stacklevel` of the first line outside of GT, for a warning that the caller issues."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, levels = frame.f_back, levels + 1
    return levels


# --- activations ---


def relu(input: Tensor) -> Tensor:
    """Each element, or 0 where it is negative."""
    return input.relu()


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Each element, or a small part of it where it is negative."""
    return input.leaky_relu(negative_slope)


def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Each element, or `alpha * (exp(x) - 1)` where it is negative."""
    return input.elu(alpha)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Each element times the probability that a standard normal variable is below it."""
    return input.gelu(approximate)


def silu(input: Tensor) -> Tensor:
    """Each element times its sigmoid."""
    return input.silu()


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(x)), a smooth relu."""
    return input.softplus(beta, threshold)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)) of each element."""
    return input.sigmoid()


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of the sigmoid, exact also where that rounds to 0."""
    return input.logsigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of each element."""
    return input.tanh()


def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The softmax along a dimension: exp(x) divided by its sum."""
    return input.softmax(dim, dtype)


def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The logarithm of the softmax along a dimension."""
    return input.log_softmax(dim, dtype)


# --- layers ---

pad = function(Tensor.pad)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along a dimension, divided by their norm."""
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)
