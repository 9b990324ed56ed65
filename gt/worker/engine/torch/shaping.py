"""Shape ops that PyTorch spells differently."""

from collections.abc import Sequence

import torch


def expand(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return x.expand(tuple(shape))
