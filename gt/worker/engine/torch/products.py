"""Products that PyTorch spells differently."""

import torch


def einsum(*tensors: torch.Tensor, equation: str) -> torch.Tensor:
    return torch.einsum(equation, *tensors)
