"""Repeated sequences of programs on the device run compiled, with the CPU's results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gt.torch  # noqa: F401 - registers the device
from gt.server.embedded import LocalServer
from gt.worker.engine.base import load_engine
from gt.worker.engine.torch import aten
from tests.gt.helpers.hot_server import compile_loop, stats


def _model(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(dropout), nn.Linear(16, 4))
    return nn.Sequential(*layers).train()


def _losses(
    device: str, optimizer: Callable[[Any], Any], steps: int = 24, dropout: float = 0.0
) -> list[float]:
    model = _model(dropout).to(device)
    chosen = optimizer(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(chosen, 0.99)
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(32, 8, generator=generator), torch.randint(0, 4, (32,), generator=generator)
    x, y = x.to(device), y.to(device)
    losses: list[torch.Tensor] = []
    for _ in range(steps):
        chosen.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        chosen.step()
        schedule.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(lambda parameters: torch.optim.AdamW(parameters, lr=1e-2), id="AdamW"),
        pytest.param(
            lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
            id="SGD",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_training_loop_runs_compiled_and_gives_the_cpus_losses(hot: LocalServer, optimizer: Any):
    compile_loop(hot, lambda: _losses("tapestry", optimizer))
    before = stats(hot)
    ours = _losses("tapestry", optimizer)
    after = stats(hot)
    assert after["failed_compilations"] == {}
    assert after["replays"] - before["replays"] >= 12, "rates and bias corrections that change stay hot"
    np.testing.assert_allclose(ours, _losses("cpu", optimizer), rtol=1e-4, atol=1e-5)


def test_dropout_drops_the_same_elements_in_compiled_steps(hot: LocalServer):
    found: list[list[float]] = []

    def run() -> None:
        found.append(_losses("tapestry", lambda given: torch.optim.SGD(given, lr=0.1), dropout=0.5))

    compile_loop(hot, run)
    before = stats(hot).get("replays", 0)
    run()
    assert stats(hot)["failed_compilations"] == {}
    assert stats(hot)["replays"] - before >= 12
    np.testing.assert_allclose(found[2], found[0], rtol=1e-4, atol=1e-5)


def test_a_repeat_of_ops_that_run_eagerly_has_the_ops_results(hot: LocalServer, monkeypatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "1000000")

    def program(device: str) -> list[float]:
        x, kept = torch.linspace(-2, 2, 12, device=device).reshape(3, 4), []
        for n in range(40):
            values, places = x.sort(dim=1)
            y = torch.addcmul(values, places.to(x.dtype), x, value=0.5 / (n + 1))
            x = torch.cat([y.clamp(-3, 3), x.roll(1, 0)], 0)[1:4] * 0.5
            kept.append(x.std().item() if n % 7 == 3 else 0.0)
        return [*kept, *x.flatten().tolist()]

    np.testing.assert_allclose(program("tapestry"), program("cpu"), rtol=1e-5, atol=1e-6)
    assert stats(hot)["hot_instructions"] > 0


def test_ops_that_draw_without_the_streams_seeds_are_not_compiled():
    def draws(op: str, **attrs: object) -> bool:
        return aten.function(f"aten::{op}").draws(attrs)  # type: ignore[attr-defined]

    assert draws("poisson")
    assert not draws("sort")
    attention = "_scaled_dot_product_flash_attention_for_cpu"
    assert draws(attention, dropout_p=0.5)
    assert not draws(attention, dropout_p=0.0)
    assert not draws(attention)


@pytest.mark.parametrize("op", sorted(aten.COMPILED_FORMS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_an_op_with_a_tensor_for_its_number_is_the_op(op: str, dtype: torch.dtype):
    (name,), function = aten.COMPILED_FORMS[op]
    ours = load_engine("pytorch").functions[op]
    count = sum(str(one.type) == "Tensor" for one in ours._function._schema.arguments)  # type: ignore[attr-defined]
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.rand(5, generator=generator).add(0.5).to(dtype) for _ in range(count)]
    expected = ours(*inputs, **{name: 0.3})
    found = function(*inputs, **{name: torch.tensor(0.3, dtype=torch.float64)})
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)
