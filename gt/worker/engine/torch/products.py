"""Products that PyTorch spells differently."""

import math

import torch


def einsum(*tensors: torch.Tensor, equation: str) -> torch.Tensor:
    return torch.einsum(equation, *tensors)


def linear_weight_grad(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of a linear layer's weight from its output's: one product over all rows of the batch."""
    if g.dim() != 2:
        g, x = (
            g.reshape(math.prod(g.shape[:-1]), g.shape[-1]),
            x.reshape(math.prod(x.shape[:-1]), x.shape[-1]),
        )
    return g.t() @ x
