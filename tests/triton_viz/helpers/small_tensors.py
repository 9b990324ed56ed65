"""Tensors for kernels in tests of the sanitizer."""

import math

import torch


def ints(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


def floats(*shape: int) -> torch.Tensor:
    return torch.arange(1.0, 1 + math.prod(shape)).reshape(shape)
