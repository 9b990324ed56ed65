"""Convolution and pooling for PyTorch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

Pair = Sequence[int]


def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> torch.Tensor:
    return torch.conv2d(x, weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups)


def _conv2d_backward(g: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, which: int, **attrs: Any) -> Any:
    wanted = [which == 0, which == 1, False]
    window = (attrs["stride"], attrs["padding"], attrs["dilation"])
    return torch.ops.aten.convolution_backward(
        g, x, weight, None, *map(list, window), False, [0, 0], attrs["groups"], wanted
    )[which]


def conv2d_input_grad(g: torch.Tensor, weight: torch.Tensor, shape: Sequence[int], **attrs: Any) -> Any:
    # Only the input's shape matters, so one number stands for all of its elements.
    return _conv2d_backward(g, g.new_empty(1).expand(tuple(shape)), weight, 0, **attrs)


def conv2d_weight_grad(g: torch.Tensor, x: torch.Tensor, shape: Sequence[int], **attrs: Any) -> Any:
    return _conv2d_backward(g, x, g.new_empty(1).expand(tuple(shape)), 1, **attrs)


def max_pool2d(x: torch.Tensor, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> torch.Tensor:
    return torch.max_pool2d(x, tuple(kernel), tuple(stride), tuple(padding), tuple(dilation))


def max_pool2d_indices(
    x: torch.Tensor, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> torch.Tensor:
    window = (kernel, stride, padding, dilation)
    return torch.ops.aten.max_pool2d_with_indices(x, *map(list, window))[1]


def avg_pool2d(x: torch.Tensor, kernel: Pair, stride: Pair, padding: Pair) -> torch.Tensor:
    return F.avg_pool2d(x, tuple(kernel), tuple(stride), tuple(padding))


def avg_pool2d_grad(
    g: torch.Tensor, kernel: Pair, stride: Pair, padding: Pair, shape: Sequence[int]
) -> torch.Tensor:
    x = g.new_empty(1).expand(tuple(shape))
    result = F.avg_pool2d(x.to("meta"), tuple(kernel), tuple(stride), tuple(padding)).shape
    if g.shape != result:  # PyTorch does not check it, and would write beyond the result
        raise ValueError(f"a gradient of shape {list(g.shape)} does not fit a result of {list(result)}")
    return torch.ops.aten.avg_pool2d_backward(
        g, x, list(kernel), list(stride), list(padding), False, True, None
    )
