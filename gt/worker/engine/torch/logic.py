"""Ops that select elements by a condition, for PyTorch."""

from typing import Any

import torch


def where(
    condition: torch.Tensor, *tensors: torch.Tensor, input: float | None, other: float | None
) -> torch.Tensor:
    left: Any = tensors[0] if input is None else input
    right: Any = tensors[-1] if other is None else other
    return torch.where(condition, left, right)
