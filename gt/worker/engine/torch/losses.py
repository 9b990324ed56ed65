"""Losses for PyTorch. Gradients are written out, because workers do not use PyTorch's autograd."""

import torch
from torch import Tensor
from torch.nn import functional


def cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    return functional.cross_entropy(
        x,
        target.long(),
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def cross_entropy_grad(
    g: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    dim = min(x.ndim - 1, 1)
    result = torch.softmax(x, dim)
    index, share = _share(g, target, weight, reduction, ignore_index)
    index = index.unsqueeze(dim)
    if weight is None and not label_smoothing:
        result.scatter_add_(dim, index, result.new_full((), -1.0).expand(index.shape))
        return result.mul_(share.unsqueeze(dim))
    truth = torch.full_like(x, label_smoothing / x.shape[dim])
    truth.scatter_add_(dim, index, truth.new_full((), 1 - label_smoothing).expand(index.shape))
    if weight is not None:
        truth *= weight.reshape(-1, *[1] * (x.ndim - 1 - dim))
    return (result * truth.sum(dim, keepdim=True) - truth) * share.unsqueeze(dim)


def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str, ignore_index: int
) -> Tensor:
    return functional.nll_loss(x, target.long(), weight, ignore_index=ignore_index, reduction=reduction)


def nll_loss_grad(
    g: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str, ignore_index: int
) -> Tensor:
    dim = min(x.ndim - 1, 1)
    index, share = _share(g, target, weight, reduction, ignore_index)
    if weight is not None:
        share = share * weight[index]
    return torch.zeros_like(x).scatter_(dim, index.unsqueeze(dim), -share.unsqueeze(dim))


def _share(
    g: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """The class of each row, and its share of the gradient: 0 if the row is ignored."""
    kept = target != ignore_index
    index = torch.where(kept, target, 0).long()
    if reduction != "mean":
        return index, g * kept
    total = kept.sum() if weight is None else (weight[index] * kept).sum()
    # If all rows are ignored, the loss is NaN, but the gradient is 0.
    return index, torch.where(kept, g / total, 0)


def binary_cross_entropy(p: Tensor, y: Tensor, *, reduction: str) -> Tensor:
    return functional.binary_cross_entropy(p, y.to(p.dtype), reduction=reduction)


def binary_cross_entropy_grad(p: Tensor, y: Tensor) -> Tensor:
    return (p - y) / (p * (1 - p)).clamp_(min=1e-12)
