"""Elementwise ops that PyTorch spells differently."""

import torch


def cast(x: torch.Tensor, dtype: str) -> torch.Tensor:
    return x.to(getattr(torch, dtype))
