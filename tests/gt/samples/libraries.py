"""The same names in both libraries, for samples that call functions rather than methods."""

from collections.abc import Callable
from typing import Any

import torch

import gt


def lib(x: Any) -> Any:
    """The library that a tensor is of."""
    return gt if isinstance(x, gt.Tensor) else torch


def F(x: Any) -> Any:
    """The library's `nn.functional`."""
    return gt.nn.functional if isinstance(x, gt.Tensor) else torch.nn.functional


def gradient(call: Callable[..., Any], by: int = 0) -> Callable[..., Any]:
    """A function that gives a gradient of what `call` gives, to compare ops that exist for gradients."""

    def run(*tensors: Any) -> Any:
        leaves = [x.detach() for x in tensors]
        leaves[by].requires_grad_()
        out = call(*leaves)
        weights = lib(out).arange(out.numel(), dtype=lib(out).float32).reshape(out.shape) / 10 + 1
        (out * weights).sum().backward()
        return leaves[by].grad

    return run
