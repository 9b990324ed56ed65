"""PyTorch as the oracle for modules: arrays to feed both, and how close is close."""

import numpy as np
import torch

import gt
from gt import nn


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def close(mine: gt.Tensor, other: torch.Tensor, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=tolerance, atol=tolerance)


def grads_agree(ours: nn.Module, theirs: torch.nn.Module, tolerance: float = 5e-5) -> None:
    expected = dict(theirs.named_parameters())
    assert {name for name, _ in ours.named_parameters()} == set(expected)
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None, name
        close(parameter.grad, expected[name].grad, tolerance)  # type: ignore[arg-type]
