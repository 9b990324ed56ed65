"""Repeated sequences run compiled, with the results that they had before."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gt
from examples import train_transformer
from gt.client import Client, session
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.instructions import Op
from gt.stream.sequences import HotSequence, Step
from gt.worker.compile.background import Background
from gt.worker.compile.graph import MADE, Graph, function_of, mapping_of
from tests.gt.helpers.hot_server import compile_loop, stats
from tests.gt.samples import SAMPLES, Sample, some_of_each_op
from tests.programs import run_python

# --- graphs ---


class Recorder:
    """Remembers the ops that pass."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def process(self, cmd: Any) -> Iterator[Any]:
        if isinstance(cmd, Op):
            self.ops.append(cmd)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {}


def sequence_of(ops: list[Op]) -> HotSequence:
    names: dict[int, int] = {}
    steps = []
    for place, op in enumerate(ops):
        for tensor in op.inputs:
            names.setdefault(tensor, -1 - sum(name < 0 for name in names.values()))
        steps.append(Step(op.op, tuple(names[tensor] for tensor in op.inputs), op.attrs))
        names[op.result] = place
    return HotSequence(steps)


@pytest.mark.parametrize("sample", some_of_each_op(SAMPLES, 6), ids=lambda sample: sample.op)
def test_a_graph_of_an_op_computes_the_ops_result(monkeypatch: pytest.MonkeyPatch, sample: Sample):
    monkeypatch.setenv("GT_AUTO_COMPILE", "0")
    server, recorder = LocalServer(), Recorder()
    client = Client(LocalConnection(server), [recorder])
    monkeypatch.setattr(session, "_current", client)
    inputs = [gt.from_numpy(array) for array in sample.arrays]
    client.hold()  # so that nothing is freed before it was looked at
    result = sample.call(*inputs)
    pending = client._pending
    pending[:] = [one for one in pending if type(one) is not int]
    client.release()
    client.flush()
    ops, values = recorder.ops, next(iter(server.worker.clients.values())).values
    last = {place for place, op in enumerate(ops) if op.result in values}
    functions = server.worker.engine.functions
    sequence = sequence_of(ops)
    mapping = mapping_of(sequence, functions)
    outputs = tuple(n for n, place in enumerate(mapping.steps) if place in last)
    given = []
    outside = {}
    for op, step in zip(ops, sequence.steps, strict=True):
        outside |= {-1 - ref: tensor for ref, tensor in zip(step.inputs, op.inputs, strict=True) if ref < 0}
    for which, place in mapping.outside:
        op = ops[place]
        if which >= 0:
            given.append(values[outside[which]])
        elif which == MADE:
            given.append(server.worker.engine.run(op.op, [], op.attrs))
        else:
            draw: Any = functions[op.op]
            assert op.attrs is not None
            given.append(draw.draw(tuple(values[op.inputs[0]].shape), **op.attrs))
    graph = Graph(
        nodes=tuple(mapping.nodes),
        inputs=tuple((tuple(value.shape), str(value.dtype)) for value in given),
        outputs=outputs,
        numbers=len(mapping.numbers),
    )
    numbers = torch.tensor([ops[place].attrs[name] for place, name in mapping.numbers], dtype=torch.float64)  # type: ignore[index]
    computed = function_of(graph, functions)(*given, numbers)
    assert len(computed) == len(outputs)
    for n, value in zip(outputs, computed, strict=True):
        expected = values[ops[mapping.steps[n]].result]
        assert value.dtype == expected.dtype
        torch.testing.assert_close(value, expected, equal_nan=True)
    del result
    client.close()


# --- loops, really compiled ---


def mlp(batches: int, batch: int = 16, dropout: bool = True) -> list[float]:
    """Losses of a small network: Adam, dropout, a learning rate that changes, a fetch now and then."""
    gt.manual_seed(3)
    rng = np.random.default_rng(0)
    layers = [gt.nn.Linear(20, 32), gt.nn.ReLU(), gt.nn.Dropout(0.3 if dropout else 0.0), gt.nn.Linear(32, 5)]
    model = gt.nn.Sequential(*layers)
    optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for n in range(batches):
        x = gt.from_numpy(rng.standard_normal((batch, 20), np.float32))
        y = gt.from_numpy(rng.integers(0, 5, batch))
        optimizer.param_groups[0]["lr"] = 0.01 / (1 + n // 10)
        optimizer.zero_grad()
        loss = gt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item() if n % 5 == 4 else loss)
    return [float(loss) for loss in losses]


def waves(steps: int) -> list[float]:
    """Values of a loop of a few ops."""
    x, kept = gt.tensor(np.linspace(-2, 2, 8, dtype=np.float32)), []
    for _ in range(steps):
        x = ((x * 0.5 - 1.0).tanh().exp() * 0.25 - x).sin()
        kept.append(x.sum())
    return [one.item() for one in kept]


def eagerly(monkeypatch: pytest.MonkeyPatch, program: Any) -> Any:
    """The results of a program with hot paths off."""
    monkeypatch.setenv("GT_AUTO_COMPILE", "0")
    before = session._current
    client = Client(LocalConnection(LocalServer()))
    monkeypatch.setattr(session, "_current", client)
    result = program()
    client.close()
    monkeypatch.setattr(session, "_current", before)
    return result


def test_a_training_loop_runs_compiled_and_gives_the_same(hot: LocalServer, monkeypatch: pytest.MonkeyPatch):
    compile_loop(hot, lambda: mlp(30))
    before = stats(hot)
    ours = mlp(30)
    after = stats(hot)
    assert after["failed_compilations"] == {}
    assert after["compiled"] >= 1
    assert after["replays"] - before["replays"] >= 20, "a learning rate that changes stays hot"
    np.testing.assert_allclose(ours, eagerly(monkeypatch, lambda: mlp(30)), rtol=1e-4, atol=1e-5)


def test_steps_follow_each_other_in_the_background_and_give_the_same(
    hot: LocalServer, followed: list[bool], monkeypatch: pytest.MonkeyPatch
):
    hot.worker.repeats.background_seconds = 0.0
    compile_loop(hot, lambda: mlp(30))
    followed.clear()
    ours = mlp(30)
    assert sum(followed) > 10
    np.testing.assert_allclose(ours, eagerly(monkeypatch, lambda: mlp(30)), rtol=1e-4, atol=1e-5)


def test_what_follows_a_step_that_fails_runs_eagerly_and_gives_the_same(
    hot: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    hot.worker.repeats.background_seconds = 0.0
    compile_loop(hot, lambda: mlp(30))
    waited = []
    wait = Background.wait

    def failing(background: Background) -> tuple[int, float]:
        waited.append(wait(background))
        return (7, 0.0) if len(waited) == 10 else waited[-1]

    monkeypatch.setattr(Background, "wait", failing)
    ours = mlp(30)
    assert len(waited) >= 10
    assert stats(hot)["fallbacks"]["the compiled function failed"] == 1
    np.testing.assert_allclose(ours, eagerly(monkeypatch, lambda: mlp(30)), rtol=1e-4, atol=1e-5)


def test_a_loop_that_changes_its_shape_continues_eagerly(hot: LocalServer, monkeypatch: pytest.MonkeyPatch):
    def program() -> list[float]:
        return mlp(12) + mlp(8, batch=7) + mlp(12)

    compile_loop(hot, lambda: mlp(30))
    monkeypatch.setenv("GT_COMPILE_AFTER", "inf")  # the other shape is not compiled
    before = stats(hot)["replays"]
    ours = program()
    assert stats(hot)["replays"] > before
    np.testing.assert_allclose(ours, eagerly(monkeypatch, program), rtol=1e-4, atol=1e-5)


def test_a_compiled_loop_reads_tensors_with_other_strides(hot: LocalServer):
    rng = np.random.default_rng(1)
    array = rng.standard_normal((3, 4)).astype(np.float32)

    def program(x: gt.Tensor) -> np.ndarray:
        total, parts = gt.zeros(4, 3), []
        for n in range(30):
            total = ((total * 0.5 + x).tanh() + x * (1.0 + n)).sin() * 2.0 - x
            parts.append(total)
        return np.stack([part.numpy() for part in parts])

    straight = gt.from_numpy(np.ascontiguousarray(array.T))
    eager: list[np.ndarray] = []
    compile_loop(hot, lambda: eager.append(program(straight)))
    expected, _ = eager
    program(straight)
    before = stats(hot)["replays"]
    for turned in (gt.from_numpy(array).T, gt.from_numpy(array).transpose(0, 1)):
        np.testing.assert_allclose(program(turned), expected, rtol=1e-5, atol=1e-6)
    apart = gt.from_numpy(np.repeat(array.T, 2, axis=1))[:, ::2]
    np.testing.assert_allclose(program(apart), expected, rtol=1e-5, atol=1e-6)
    assert stats(hot)["replays"] > before > 0


@pytest.mark.thorough  # test_hot_training has it over processes
def test_a_transformer_runs_compiled_and_gives_the_same(hot: LocalServer, monkeypatch: pytest.MonkeyPatch):
    compile_loop(hot, lambda: train_transformer.train(gt, steps=8))
    _, ours = train_transformer.train(gt, steps=20)
    found = stats(hot)
    assert found["failed_compilations"] == {}
    assert found["replays"] >= 15
    _, theirs = eagerly(monkeypatch, lambda: train_transformer.train(gt, steps=20))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_the_second_run_of_a_program_loads_the_code_of_the_first(hot: LocalServer, cache: Path):
    compile_loop(hot, lambda: mlp(30))
    code = (
        "import os\nfrom gt.client import session\nfrom tests.gt.test_hotpaths import mlp\nmlp(30)\n"
        "os.environ['GT_COMPILE_AFTER'] = '0'\nmlp(30)\n"
        "print(next(iter(session.current().get_stats().values())))"
    )
    environment = {**os.environ, "GT_COMPILE_AFTER": "inf", "GT_CACHE_DIR": str(cache)}
    said = eval(run_python("-c", code, environment=environment).stdout)
    assert said["from_cache"] >= 1
    assert said["replays"] > 10


def test_a_compiler_that_fails_is_called_once_and_the_program_continues(
    hot: LocalServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("GT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CXX", "/nowhere/no-compiler")
    ours = waves(30)
    compile_loop(hot, lambda: waves(60))
    again = waves(60)
    found = stats(hot)
    assert len(found["failed_compilations"]) >= 1
    assert found["replays"] == 0
    assert ours == again[:30]


def test_what_is_held_is_not_lost_when_nothing_follows(hot: LocalServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "inf")
    session.current()._repeat_builder = None  # a client that leaves detection to the worker
    hot.worker.sends_repeats.clear()
    mlp(12)
    x = gt.from_numpy(np.ones((16, 20), np.float32))
    layer = gt.nn.Linear(20, 32)
    y = layer(x)
    session.current().flush()
    hot.worker.execute_held()
    state = next(iter(hot.worker.clients.values()))
    assert state.repeat_builder is not None
    assert not state.repeat_builder.held
    assert y._value.id in state.values


# --- settings ---


def test_hot_paths_can_be_switched_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GT_AUTO_COMPILE", "0")
    server = LocalServer()
    assert server.worker.compiles is False
    assert "compiled" not in server.worker.get_stats()


def test_sequences_that_ran_only_briefly_are_not_compiled():
    code = (
        "from gt.client import session\nfrom tests.gt.test_hotpaths import mlp\nmlp(20)\n"
        "print(next(iter(session.current().get_stats().values()))['compiling'])"
    )
    environment = {**os.environ, "GT_COMPILE_AFTER": "60"}
    assert run_python("-c", code, environment=environment).stdout.strip() == "0"
