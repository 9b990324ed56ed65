"""Training with hot paths is training: over one worker and over two, in this process and in others."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gt
from examples import train_parallel, train_transformer
from gt.client import Client, session
from gt.client.connection import RemoteConnection
from tests.gt.helpers.hot_server import COMPILER_TIMEOUT
from tests.gt.helpers.servers import eventually
from tests.programs import TIMEOUT, run_python

Program = Callable[[], list[float]]


def cnn(steps: int = 10, batch: int = 48) -> list[float]:
    """Losses of a small network of convolutions."""
    gt.manual_seed(1)
    gt.load_config(train_parallel.SIGNALS)
    nn, rng = gt.nn, np.random.default_rng(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )
    train_parallel.lay_out(model, "data", 2)
    optimizer = gt.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        with gt.signal.context("batch"):
            x = gt.from_numpy(rng.standard_normal((batch, 1, 8, 8), np.float32))
            y = gt.from_numpy(rng.integers(0, 5, batch))
        optimizer.zero_grad()
        loss = gt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [float(loss) for loss in losses]


def wide(steps: int = 10, batch: int = 64) -> list[float]:
    """Losses of an MLP that is large enough to be split over workers."""
    gt.manual_seed(2)
    nn, rng = gt.nn, np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Linear(64, 6))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.05)
    x = gt.from_numpy(rng.standard_normal((batch, 48), np.float32))
    y = gt.from_numpy(rng.integers(0, 6, batch))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = gt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [float(loss) for loss in losses]


def changing() -> list[float]:
    """Losses of a loop whose last batches are larger, and of the next, whose are not."""
    return wide(8) + wide(5, batch=70) + wide(8)


def transformer(steps: int = 10) -> list[float]:
    """Losses of a GPT that is quickly compiled, each worker with its part of every batch."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LAYERS": 1, "WIDTH": 32, "HEADS": 2, "CONTEXT": 16, "BATCH": 8}.items():
            patch.setattr(train_transformer, name, value)
        return train_parallel.train("data", steps, workers=2)


@contextlib.contextmanager
def trained(monkeypatch: pytest.MonkeyPatch, workers: int | None, auto: str) -> Iterator[None]:
    monkeypatch.setenv("GT_AUTO_COMPILE", auto)
    gt.init(workers=workers)
    compilers: list[psutil.Process] = []
    try:
        yield
        if workers is not None:
            compilers = [
                process
                for one in worker_stats()
                for process in psutil.Process(one["pid"]).children(recursive=True)
            ]
    finally:
        gt.close()
        for process in compilers:  # each would compile its current graph, which no other test needs
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def worker_stats() -> list[dict[str, Any]]:
    return list(session.current().get_stats().values())


def until_compiled(program: Program) -> list[list[float]]:
    """The results of a program, run until all workers have compiled it."""
    given: list[list[float]] = []

    def compiling() -> int:
        return sum(one["compiling"] for one in worker_stats())

    def replayed() -> bool:
        given.append(program())
        before = compiling()
        if before:  # let the compiler have the machine until it has done something
            eventually(lambda: compiling() < before or time.sleep(0.2), "compiled", COMPILER_TIMEOUT)
        return all(one["replays"] > 0 for one in worker_stats())

    eventually(replayed, "compiled", COMPILER_TIMEOUT)
    given.append(program())
    return given


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("GT_COMPILE_AFTER", "0")
    monkeypatch.setenv("GT_CACHE_DIR", str(cache))


def variant(program: Program, workers: int, thorough: bool = False) -> Any:
    marks = [pytest.mark.thorough] if thorough else []
    return pytest.param(program, workers, marks=marks, id=f"{program.__name__}-{workers}")


@pytest.mark.parametrize(
    ("program", "workers"),
    [
        variant(changing, 2),
        variant(changing, 1, thorough=True),  # test_hotpaths has compiled loops on one worker
        variant(wide, 1, thorough=True),  # a part of `changing`
        variant(wide, 2, thorough=True),
        variant(cnn, 1, thorough=True),  # convolutions and attention take the compiler long
        variant(cnn, 2, thorough=True),
        variant(transformer, 1, thorough=True),
        variant(transformer, 2, thorough=True),
    ],
)
def test_a_compiled_loop_gives_the_losses_of_an_eager_one(
    monkeypatch: pytest.MonkeyPatch, settings: None, program: Program, workers: int
):
    with trained(monkeypatch, workers, "0"):
        expected = program()
    with trained(monkeypatch, workers, "1"):
        ours = until_compiled(program)
        found = worker_stats()
    assert all(one["replays"] > 0 for one in found)
    assert all(not one["failed_compilations"] for one in found)
    for losses in ours:
        np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-5)


def test_clients_repeat_each_their_own(monkeypatch: pytest.MonkeyPatch, settings: None):
    """Two programs take turns on one worker: each is found, though they are interleaved."""
    monkeypatch.setenv("GT_COMPILE_AFTER", "1000")
    with trained(monkeypatch, 1, "1"):
        first = session.current()
        assert isinstance(first.connection, RemoteConnection)
        second = Client(RemoteConnection(first.connection.address, timeout=TIMEOUT))
        losses: dict[int, list[float]] = {0: [], 1: []}
        loops = []
        for n, client in enumerate((first, second)):
            monkeypatch.setattr(session, "_current", client)
            loops.append((n, client, _steps(n)))
        for _ in range(15):
            for n, client, loop in loops:
                monkeypatch.setattr(session, "_current", client)
                losses[n].append(next(loop))
        second.close()
        monkeypatch.setattr(session, "_current", first)
        (found,) = worker_stats()
    assert found["hot_sequences"] >= 2
    assert found["hot_instructions"] > 100
    assert losses[0][-1] < losses[0][0]
    assert losses[1][-1] < losses[1][0]


def _steps(n: int) -> Iterator[float]:
    """A training loop, a step at a time; that of another client has another shape."""
    rng = np.random.default_rng(n)
    model = gt.nn.Sequential(*[gt.nn.Linear(8, 8) for _ in range(2 + n)])
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1)
    x, y = (gt.from_numpy(rng.standard_normal((4, 8), np.float32)) for _ in range(2))
    while True:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


def test_compile_true_logs_where_a_hot_path_begins_and_ends(
    monkeypatch: pytest.MonkeyPatch, settings: None, tmp_path: Path
):
    signals = tmp_path / "signals.yaml"
    signals.write_text("block: {compile: true}\n")
    gt.load_config(signals)
    with trained(monkeypatch, None, "1"):
        client = session.current()
        x = gt.ones(4)
        for _ in range(3):
            y = x * 3
            with gt.signal.context("block"):
                y = y + 1
                y = y.tanh()
            y = y.exp().sum()
            assert y.item() == pytest.approx(4 * np.exp(np.tanh(4)), rel=1e-5)
        assert client._repeat_builder is not None
        known = client._repeat_builder.detector.sequences.values()
    assert [[step.op for step in one.steps] for one in known if one.explicit] == [["add", "tanh"]]


def test_a_step_is_one_small_message_for_any_number_of_ops(monkeypatch: pytest.MonkeyPatch, settings: None):
    monkeypatch.setenv("GT_COMPILE_AFTER", "1000")
    sizes: list[int] = []
    with trained(monkeypatch, 1, "1"):
        client = session.current()
        assert isinstance(client.connection, RemoteConnection)
        link = client.connection._link
        send = link.send

        def counting(message: Any, frames: Any = ()) -> None:
            from gt.transport import protocol

            sizes.append(len(protocol.encode(message)))
            send(message, frames)

        monkeypatch.setattr(link, "send", counting)
        x, early = gt.ones(4), 0
        for step in range(40):
            for _ in range(300):
                x = (x + 1) * 0.5
            if step == 20:
                client.flush()
                early = sum(sizes)
        client.flush()
        late = sum(sizes) - early
        np.testing.assert_allclose(x.numpy(), np.ones(4))
    ops = 19 * 600
    assert late < 2 * ops, "less than two bytes for an op"


@pytest.mark.thorough  # it compiles what the loops above compile
def test_the_example_prints_detected_and_compiled_sequences_and_the_speedup(tmp_path: Path):
    said = run_python(
        "-m", "examples.hotpath", environment={"GT_CACHE_DIR": str(tmp_path), "GT_COMPILE_AFTER": "0.1"}
    )
    losses = [float(one) for one in re.findall(r"\d+ steps a second, loss (\d\.\d+)", said.stdout)]
    assert losses == [pytest.approx(losses[0], abs=2e-4)] * 2, said.stdout
    assert re.search(r"[1-9]\d* sequence\(s\), [1-9]\d* instructions of repeats", said.stdout), said.stdout
    assert re.search(r"\d+ steps a second, \d+\.\d+ times as fast", said.stdout), said.stdout
    assert re.search(r"[1-9]\d* graph\(s\), compiled in \d+ s, [1-9]\d* replays", said.stdout), said.stdout
