"""Models that torch.compile sends as graphs train to the CPU's losses and parameters."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import gt
import gt.torch
from gt.server.embedded import LocalServer
from tests.gt.helpers.hot_server import compiled, stats

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Tied(nn.Module):
    """Tied weights, a buffer that counts, and a keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.calls: torch.Tensor
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor, *, scale: float = 2.0) -> torch.Tensor:
        self.calls += 1
        return self.second(torch.nn.functional.gelu(self.first(x))) * scale


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))


def _cnn() -> nn.Module:
    layers = (nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(36, 3))


def _transformer(dropout: float = 0.0) -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)


def _llama() -> nn.Module:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
    )
    return transformers.LlamaForCausalLM(config)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "MLP": (_mlp, lambda: torch.randn(5, 6)),
    "tied": (Tied, lambda: torch.randn(5, 6)),
    "CNN": (_cnn, lambda: torch.randn(4, 2, 8, 8)),
    "CNN, channels last": (
        lambda: _cnn().to(memory_format=torch.channels_last),  # type: ignore[call-overload]
        lambda: torch.randn(4, 2, 8, 8).to(memory_format=torch.channels_last),
    ),
    "transformer": (_transformer, lambda: torch.randn(2, 5, 8)),
    "Llama": (_llama, lambda: torch.randint(0, 32, (2, 7))),
}

_sgd: Callable[[Any], torch.optim.Optimizer] = lambda parameters: torch.optim.SGD(  # noqa: E731 - an argument
    parameters, lr=0.1, momentum=0.9
)


def _train(
    model: nn.Module,
    call: Any,
    batches: list[torch.Tensor],
    optimizer: Any = _sgd,
    compile_step: bool = False,
    device: str = "cpu",
) -> list[float]:
    """Train, with a learning rate that changes; the losses."""
    chosen = optimizer(model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(chosen, 0.9)
    step = torch.compile(chosen.step, backend="tapestry") if compile_step else chosen.step
    losses = []
    for batch in batches:
        x = batch.to(device)
        loss = call(x).square().mean() if x.is_floating_point() else call(input_ids=x, labels=x).loss
        loss.backward()
        step()
        schedule.step()
        chosen.zero_grad()
        losses.append(loss.item())
    return losses


def _compare(name: str, steps: int = 4, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    make, batch = MODELS[name]
    theirs = make().train()
    ours = copy.deepcopy(theirs).to("tapestry")
    batches = [batch() for _ in range(steps)]
    called = torch.compile(ours, backend="tapestry")
    found = _train(ours, called, batches, device="tapestry", **options)
    expected = _train(theirs, theirs, batches, **{**options, "compile_step": False})
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
    for (path, one), other in zip(theirs.state_dict().items(), ours.state_dict().values(), strict=True):
        torch.testing.assert_close(other.cpu(), one, rtol=1e-3, atol=1e-4, msg=lambda m, p=path: f"{p}: {m}")
    theirs.eval()
    ours.eval()
    with torch.no_grad():
        pair = [call(one) for call, one in ((called, batches[0].to("tapestry")), (theirs, batches[0]))]
    pair = [one if isinstance(one, torch.Tensor) else one.logits for one in pair]
    torch.testing.assert_close(pair[0].cpu(), pair[1], rtol=1e-3, atol=1e-4)
    return ours


@pytest.mark.parametrize("name", MODELS)
def test_a_compiled_model_trains_as_on_the_cpu(name: str):
    _compare(name)


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(_sgd, marks=pytest.mark.thorough),
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
        pytest.param(
            lambda parameters: torch.optim.Adam(parameters, foreach=False), marks=pytest.mark.thorough
        ),
    ],
    ids=["SGD", "AdamW", "Adam"],
)
def test_a_compiled_optimizer_steps_as_on_the_cpu(optimizer: Any):
    _compare("MLP", steps=6, optimizer=optimizer, compile_step=True)


def test_a_training_step_is_a_repeat_forward_and_one_backward_over_processes():
    gt.init(workers=1)
    _compare("tied", steps=6)
    (worker,) = gt.debug.get_worker_stats().values()
    counts = sorted(worker["repetitions"].values())
    assert counts[-2:] == [6, 7], "backward; forward, and once more in evaluation"


def test_dropout_is_that_of_eager_mode():
    def losses(compile_it: bool) -> list[float]:
        torch.manual_seed(3)
        model = _transformer(0.3).to("tapestry").train()
        called = torch.compile(model, backend="tapestry") if compile_it else model
        batches = [torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))] * 4
        return _train(model, called, batches, device="tapestry")

    ours = losses(True)
    assert len(set(ours)) == 4
    torch.testing.assert_close(ours, losses(False), rtol=1e-4, atol=1e-5)


def test_autocast_is_part_of_the_graph():
    torch.manual_seed(0)
    model = _mlp()
    x = torch.randn(5, 6)
    ours = copy.deepcopy(model).to("tapestry")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(x)
    with torch.autocast("tapestry", dtype=torch.bfloat16):
        found = torch.compile(ours, backend="tapestry")(x.to("tapestry"))
    assert found.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(found.cpu(), expected, rtol=0.05, atol=0.05)
    found.float().sum().backward()
    expected.float().sum().backward()
    for one, other in zip(model.parameters(), ours.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(other.grad.cpu(), one.grad, rtol=0.05, atol=0.05)


def test_a_step_leaves_no_tensors_behind():
    model = _mlp().to("tapestry")
    called = torch.compile(model, backend="tapestry")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(5, 6, device="tapestry")

    def steps(count: int) -> int:
        for _ in range(count):
            optimizer.zero_grad()
            called(x).square().mean().backward()
            optimizer.step()
        return sum(worker["tensors"] for worker in gt.debug.get_worker_stats().values())

    assert steps(3) >= steps(30)


def test_workers_compile_the_graphs_and_give_the_same(hot: LocalServer):
    def function(x: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
        return (x @ x.t()).relu() * rate + torch.rand(4, device=x.device)

    called = torch.compile(function, backend="tapestry")
    x = torch.randn(4, 3, device="tapestry")
    rates = [torch.tensor(0.25 + 0.1 * n) for n in range(8)]
    for rate in rates:
        called(x, rate)
    compiled(hot)
    before = stats(hot)
    torch.manual_seed(5)
    found = [called(x, rate).cpu() for rate in rates[:4]]
    after = stats(hot)
    assert after["failed_compilations"] == {}
    assert after["replays"] - before["replays"] == 4
    torch.manual_seed(5)
    torch.testing.assert_close(found, [function(x, rate).cpu() for rate in rates[:4]])
