"""Forward-mode differentiation of ops that are one instruction of the device, and several ops on a CPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad, gradcheck
from torch.nn import functional as F

import gt.torch  # noqa: F401 - registers the device

DEVICE = "tapestry"


def _random(*size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(size))
    return torch.randn(size, generator=generator, dtype=torch.float64)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")
def test_gradients_of_a_linear_layer_are_checked_in_every_mode():
    x, weight, bias = (_random(*size).to(DEVICE).requires_grad_() for size in ((3, 4), (2, 4), (2,)))
    options = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda *given: F.linear(*given).tanh(), (x, weight, bias), **options)


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(4, 4), (3, 4)),
    "gru": (lambda: nn.GRU(4, 3), (3, 2, 4)),
    "lstm": (lambda: nn.LSTM(4, 3), (3, 2, 4)),
    "cells": (lambda: nn.Sequential(nn.GRUCell(4, 4), nn.GRUCell(4, 3)), (2, 4)),
    "attention": (lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (2, 3, 4)),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:`torch.jit.script`")
def test_a_directional_derivative_is_the_difference_quotient(name: str):
    make, size = MODULES[name]
    torch.manual_seed(0)
    model, x = make().double().to(DEVICE), _random(*size).to(DEVICE)

    def run(given: torch.Tensor) -> Any:
        result = model(given)
        return result[0] if isinstance(result, tuple) else result

    pushed: Any = torch.func.jvp(run, (x,), (torch.ones_like(x),))[1]
    difference = (run(x + 1e-6) - run(x - 1e-6)) / 2e-6
    torch.testing.assert_close(pushed.cpu(), difference.detach().cpu(), rtol=1e-4, atol=1e-7)


def test_a_linear_layer_is_one_instruction_again_afterwards():
    x = torch.ones(2, 2, device=DEVICE, requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        tangent: Any = forward_ad.unpack_dual(F.linear(dual, x)).tangent
        assert tangent.tolist() == [[2.0, 2.0]] * 2
    assert type(F.linear(x, x).grad_fn).__name__ == "LinearBackward0"


def test_gradients_of_each_example_of_a_model_with_attention():
    torch.manual_seed(0)
    here = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    x = torch.randn(3, 5, 4)
    found = []
    for device in ("cpu", DEVICE):
        model = here.to(device)

        def loss(parameters: Any, one: torch.Tensor, model: nn.Module = model) -> torch.Tensor:
            return torch.func.functional_call(model, parameters, (one[None],)).pow(3).sum()

        # The parameters require gradients, as they do in a model.
        gradients = torch.func.grad(loss)(dict(model.named_parameters()), x[0].to(device))
        found.append({name: one.cpu() for name, one in gradients.items()})
    torch.testing.assert_close(found[1], found[0])
