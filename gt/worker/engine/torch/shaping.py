"""Shape ops that PyTorch spells differently."""

from collections.abc import Sequence

import torch


def expand(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return x.expand(tuple(shape))


def repeat(x: torch.Tensor, repeats: Sequence[int]) -> torch.Tensor:
    return x.repeat(tuple(repeats))


def pad(x: torch.Tensor, pads: Sequence[Sequence[int]], value: float) -> torch.Tensor:
    # PyTorch lists the last dimension first.
    return torch.nn.functional.pad(x, [n for pair in reversed(pads) for n in pair], value=value)


def cat(*tensors: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.cat(tensors, dim)


def stack(*tensors: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.stack(tensors, dim)
