"""Losses that NumPy and JAX share."""

from typing import Any


def _reduce(xp: Any, losses: Any, reduction: str, total: Any = None) -> Any:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.sum() / xp.asarray(losses.size if total is None else total, losses.dtype)


def _log_softmax(xp: Any, x: Any, dim: int) -> Any:
    shifted = x - x.max(dim, keepdims=True) if x.size else x
    return shifted - xp.log(xp.exp(shifted).sum(dim, keepdims=True))


def _rows(xp: Any, target: Any, weight: Any, ignore_index: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """For each row: the class, whether it counts, its weight, and the weights' sum."""
    kept = target != ignore_index
    index = xp.where(kept, target, 0).astype("int64")
    each = (xp.ones(target.shape, dtype) if weight is None else weight[index]) * kept
    return index, kept, each, each.sum()


def _pick(xp: Any, x: Any, index: Any, dim: int) -> Any:
    return xp.take_along_axis(x, xp.expand_dims(index, dim), dim).squeeze(dim)


def _one_hot(xp: Any, index: Any, count: int, dim: int) -> Any:
    return xp.moveaxis(index[..., None] == xp.arange(count), -1, dim)


def _along(weight: Any, x: Any, dim: int) -> Any:
    return 1 if weight is None else weight.reshape(-1, *[1] * (x.ndim - 1 - dim))


def cross_entropy(
    xp: Any,
    x: Any,
    target: Any,
    weight: Any = None,
    *,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Any:
    dim = min(x.ndim - 1, 1)
    logs = _log_softmax(xp, x, dim)
    index, kept, each, total = _rows(xp, target, weight, ignore_index, x.dtype)
    _check(index, x.shape[dim])
    losses = -_pick(xp, logs, index, dim) * each
    if label_smoothing:
        smooth = -(logs * _along(weight, x, dim)).sum(dim) * kept / x.shape[dim]
        losses = (1 - label_smoothing) * losses + label_smoothing * smooth
    return _reduce(xp, xp.where(kept, losses, 0), reduction, total)


def cross_entropy_grad(
    xp: Any,
    g: Any,
    x: Any,
    target: Any,
    weight: Any = None,
    *,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Any:
    dim = min(x.ndim - 1, 1)
    index, kept, _, total = _rows(xp, target, weight, ignore_index, x.dtype)
    truth = _one_hot(xp, index, x.shape[dim], dim) * (1 - label_smoothing) + label_smoothing / x.shape[dim]
    truth = truth * _along(weight, x, dim)
    # If all rows are ignored, the loss is NaN, but the gradient is 0.
    share = xp.where(kept, g / total, 0) if reduction == "mean" else g * kept
    slope = xp.exp(_log_softmax(xp, x, dim)) * truth.sum(dim, keepdims=True) - truth
    return slope * xp.expand_dims(share, dim)


def nll_loss(xp: Any, x: Any, target: Any, weight: Any = None, *, reduction: str, ignore_index: int) -> Any:
    dim = min(x.ndim - 1, 1)
    index, kept, each, total = _rows(xp, target, weight, ignore_index, x.dtype)
    _check(index, x.shape[dim])
    losses = xp.where(kept, -_pick(xp, x, index, dim) * each, 0)
    return _reduce(xp, losses, reduction, total)


def nll_loss_grad(
    xp: Any, g: Any, x: Any, target: Any, weight: Any = None, *, reduction: str, ignore_index: int
) -> Any:
    dim = min(x.ndim - 1, 1)
    index, kept, each, total = _rows(xp, target, weight, ignore_index, x.dtype)
    share = xp.where(kept, g / total, 0) * each if reduction == "mean" else g * each
    return _one_hot(xp, index, x.shape[dim], dim) * -xp.expand_dims(share, dim)


def _check(index: Any, count: int) -> None:
    if index.size and not (int(index.min()) >= 0 and int(index.max()) < count):
        raise IndexError(f"Target {int(index.max())} is out of bounds.")


def mse_loss(xp: Any, x: Any, y: Any, *, reduction: str) -> Any:
    return _reduce(xp, (x - y) ** 2, reduction)


def binary_cross_entropy(xp: Any, p: Any, y: Any, *, reduction: str) -> Any:
    if p.size and not (float(p.min()) >= 0 and float(p.max()) <= 1):
        raise ValueError("all elements of input should be between 0 and 1")
    logs, others = xp.maximum(xp.log(p), -100), xp.maximum(xp.log1p(-p), -100)
    return _reduce(xp, -(y * logs + (1 - y) * others), reduction)


def binary_cross_entropy_grad(xp: Any, p: Any, y: Any) -> Any:
    return (p - y) / xp.maximum(p * (1 - p), 1e-12)


def binary_cross_entropy_with_logits(xp: Any, x: Any, y: Any, *, reduction: str) -> Any:
    return _reduce(xp, xp.maximum(x, 0) - x * y + xp.log1p(xp.exp(-abs(x))), reduction)
