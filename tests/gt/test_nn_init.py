"""Initial values have PyTorch's distributions."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gt
from gt import nn


def _spread(values: gt.Tensor) -> tuple[float, float, float, float]:
    numbers = values.detach().numpy()
    return float(numbers.mean()), float(numbers.std()), float(numbers.min()), float(numbers.max())


INITS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("uniform_", (-2.0, 3.0), {}),
    ("normal_", (1.0, 2.0), {}),
    ("trunc_normal_", (), {"std": 1.5, "a": -1.0, "b": 2.0}),
    ("kaiming_uniform_", (), {"a": 5**0.5}),
    ("kaiming_uniform_", (), {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", (), {"nonlinearity": "tanh"}),
    ("xavier_uniform_", (2.0,), {}),
    ("xavier_normal_", (), {}),
    ("eye_", (), {}),
    ("constant_", (3.0,), {}),
    ("zeros_", (), {}),
    ("ones_", (), {}),
]


@pytest.mark.parametrize(("name", "args", "settings"), INITS)
def test_initial_values_have_pytorchs_distribution(
    name: str, args: tuple[Any, ...], settings: dict[str, Any]
):
    gt.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = gt.zeros(300, 200), torch.zeros(300, 200)
    assert getattr(nn.init, name)(ours, *args, **settings) is ours
    getattr(torch.nn.init, name)(theirs, *args, **settings)
    expected = (theirs.mean().item(), theirs.std().item(), theirs.min().item(), theirs.max().item())
    scale = max(abs(value) for value in expected)
    wide = "normal" in name and "trunc" not in name  # the largest of many normal numbers varies
    assert _spread(ours)[:2] == pytest.approx(expected[:2], abs=0.02 * scale)
    assert _spread(ours)[2:] == pytest.approx(expected[2:], abs=(0.3 if wide else 0.02) * scale)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.Linear(400, 300),
        lambda m: m.Embedding(300, 200),
        lambda m: m.Conv2d(30, 40, 5),
        lambda m: m.LayerNorm(50),
        lambda m: m.MultiheadAttention(120, 4),
    ],
)
def test_layers_begin_with_pytorchs_distributions(make: Callable[[Any], Any]):
    gt.manual_seed(0)
    torch.manual_seed(0)
    expected = dict(make(torch.nn).named_parameters())
    for name, parameter in make(nn).named_parameters():
        theirs = expected[name]
        scale = max(theirs.abs().max().item(), 1e-9)
        mine, other = _spread(parameter), theirs.detach().numpy()
        few = 0.2 if other.size < 1000 else 0.05
        assert mine[0] == pytest.approx(other.mean(), abs=few * scale), name
        assert mine[1] == pytest.approx(other.std(), abs=few * scale), name


def test_a_seed_makes_a_model_repeatable():
    models = []
    for _ in range(2):
        gt.manual_seed(7)
        models.append(nn.Linear(3, 3).weight.tolist())
    assert models[0] == models[1]
    assert nn.Linear(3, 3).weight.tolist() != models[0]
