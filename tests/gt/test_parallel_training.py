"""Training over several workers gives the losses of training on one: by data, by tensors, in a pipeline, or
as the policy chooses. A small transformer, and a small network of convolutions."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from examples import train_parallel
from examples.train_transformer import batches, make_model
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer
from tests.programs import run_python

STEPS = 3


def train_gpt() -> list[float]:
    """The same steps as those of the example, without a signal."""
    model = make_model(gt)
    optimizer = gt.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for x, y in zip(*batches(STEPS), strict=True):
        loss = gt.nn.functional.cross_entropy(
            model(gt.from_numpy(x)).flatten(0, 1), gt.from_numpy(y).flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


SIGNALS = """
batch: {shard: {axis: 0}}
everywhere: {replicate: true}
channels: {shard: {axis: 0}}
stage0: {replicate: [0], backward: stage0}
stage1: {replicate: [1], backward: stage1}
"""


def train_cnn(how: str, signals: Path) -> list[float]:
    """Convolutions, pooling, batch norm, a linear layer; SGD with momentum, gradients clipped."""
    signals.write_text(SIGNALS)
    gt.load_config(signals)
    nn, rng = gt.nn, np.random.default_rng(0)
    gt.manual_seed(0)
    body = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3)
    )
    head = nn.Sequential(nn.Flatten(), nn.Linear(8 * 4 * 4, 10))
    wanted = {"data": ("everywhere",) * 2, "tensor": ("channels",) * 2, "pipeline": ("stage0", "stage1")}
    for module, signal in zip((body, head), wanted.get(how, ()), strict=False):
        state = module.state_dict()
        module.load_state_dict({name: gt.signal.tensor(value, signal) for name, value in state.items()})
    parameters = [*body.parameters(), *head.parameters()]
    optimizer = gt.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-3)
    losses = []
    for _ in range(STEPS):
        images = gt.from_numpy(rng.standard_normal((16, 3, 12, 12), np.float32))
        labels = gt.from_numpy(rng.integers(0, 10, 16))
        if how == "data":
            images, labels = gt.signal.tensor(images, "batch"), gt.signal.tensor(labels, "batch")
        if how == "pipeline":
            with gt.signal.context("stage0"):
                features = body(images)
            with gt.signal.context("stage1"):
                scores = head(features)
        else:
            scores = head(body(images))
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """The losses of one worker."""
    with using(ThreadServer(1, "pytorch")):
        gpt = train_gpt()
    with using(ThreadServer(1, "pytorch")):
        cnn = train_cnn("", tmp_path_factory.mktemp("one") / "signals.yaml")
    return {"gpt": gpt, "cnn": cnn}


HOW = ("as the policy says", "data", "tensor", "pipeline")


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("how", HOW)
def test_a_transformer_learns_the_same(alone: dict[str, list[float]], how: str, workers: int):
    train: Callable[[], Any] = (
        train_gpt if how == HOW[0] else lambda: train_parallel.train(how, STEPS, workers)
    )
    with using(ThreadServer(workers, "pytorch")) as client:
        np.testing.assert_allclose(train(), alone["gpt"], rtol=1e-4)
        assert client.get_dispatcher_stats()["handles"] == 0, "nothing is left behind"


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("how", HOW)
def test_a_network_of_convolutions_learns_the_same(
    alone: dict[str, list[float]], how: str, workers: int, tmp_path: Path
):
    with using(ThreadServer(workers, "pytorch")):
        np.testing.assert_allclose(train_cnn(how, tmp_path / "signals.yaml"), alone["cnn"], rtol=1e-4)


@pytest.mark.parametrize(
    ("how", "workers"),
    [
        ("pipeline", 2),
        ("tensor", 1),
        pytest.param("data", 2, marks=pytest.mark.thorough),  # the tests above have these in one process
        pytest.param("tensor", 2, marks=pytest.mark.thorough),
    ],
)
def test_the_example_learns_the_same_over_processes(alone: dict[str, list[float]], how: str, workers: int):
    done = run_python("-m", "examples.train_parallel", how, "--steps", f"{STEPS}", "--workers", f"{workers}")
    losses = [float(number) for number in re.findall(r"(?:step +0 +|last )loss (\S+)", done.stdout)]
    np.testing.assert_allclose(losses, [alone["gpt"][0], alone["gpt"][-1]], atol=2e-4)
    assert ("exchanges between workers: {" in done.stdout) == (workers > 1)
