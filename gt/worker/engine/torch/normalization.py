"""Normalization for PyTorch."""

from collections.abc import Sequence

import torch


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    *,
    normalized_shape: Sequence[int],
    eps: float,
) -> torch.Tensor:
    return torch.layer_norm(x, tuple(normalized_shape), weight, bias, eps)


def layer_norm_grad(
    g: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    *,
    normalized_shape: Sequence[int],
    eps: float,
) -> torch.Tensor:
    if g.shape != x.shape:  # PyTorch does not check it, and would read beyond the smaller one
        raise ValueError(f"a gradient of shape {list(g.shape)} does not fit a result of {list(x.shape)}")
    shape = list(normalized_shape)
    _, mean, rstd = torch.native_layer_norm(x, shape, weight, None, eps)
    wanted = [True, False, False]
    return torch.ops.aten.native_layer_norm_backward(g, x, shape, mean, rstd, weight, None, wanted)[0]
