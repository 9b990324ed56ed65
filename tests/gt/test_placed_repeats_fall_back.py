"""Where something differs from the recorded placement, a repeat is placed op by op, with the same results."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import session
from gt.dispatcher.sharding import placed_repeats
from gt.errors import ProtocolError, WorkerError
from gt.stream.instructions import Lost, Op
from gt.stream.repeats import Repeat
from tests.gt.helpers.placed import Spread, assert_same
from tests.gt.helpers.placed_programs import Steps, captured
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer


def test_another_layout_another_rate_and_another_shape_fall_back_and_recover():
    steps, other = Steps(24), Steps(24, (30, 5))
    batches: list[Any] = [steps.begin()]
    marks = []
    for n in range(60):
        if n == 20:  # from now on a copy of this tensor has another layout, too
            batches.append([Op(1 << 20, "softmax", (0,), {"dim": 1}, 0), 1 << 20])
            batches.append([Op(1 << 20, "permute", (0,), {"dims": [1, 0]}, 0)])
            batches.append([Op(1 << 21, "matmul", (0, 1 << 20), None, 0), 1 << 20, 1 << 21])
        if n == 40:
            batches.append([steps.x, 0, *other.begin()[1:]])
            other.next = steps.next
            steps = other
        batches.append(steps.step(0.0 if 30 <= n < 34 else float("inf") if n == 36 else 0.5))
        marks.append(len(batches))
    assert_same(batches, 3)
    spread = Spread(3)
    counts = []
    for batch in batches:
        spread.receive(batch)
        counts.append(spread.again)
    assert counts[marks[19]] < counts[marks[29]] < counts[marks[39]] < counts[marks[59] - 1]


def test_tensors_freed_in_any_order_and_place():
    rng = random.Random(5)
    steps = Steps(20)
    batches: list[Any] = [steps.begin()]
    held: list[int] = []
    for n in range(50):
        number = (1 << 30) + n
        batches.append([Op(number, "full", (), steps.attrs, 0)])
        held.append(number)
        step = steps.step(0.5)
        for one in step:
            if isinstance(one, Repeat):
                gone = [held.pop(rng.randrange(len(held))) for _ in range(rng.randint(0, min(2, len(held))))]
                one.freed = [*gone, *one.freed] if n % 2 else [*one.freed, *gone]
        batches.append(step)
    assert assert_same(batches, 2).again > 10


def test_signals_are_followed_in_repeats(tmp_path: Path):
    path = tmp_path / "signals.yaml"
    path.write_text("columns:\n  shard: {axis: -1}\nfirst:\n  replicate: {workers: [0]}\n")

    def program() -> str:
        gt.load_config(path)
        x = y = gt.ones(64, 6)
        for _ in range(24):
            with gt.signal.context("columns"):
                y = (x * 2 + x).tanh()
            with gt.signal.context("first"):
                z = y.sum(1).sin()
            x = (y.sin() - 1) * y - z.mean()
        return str(y._value.client.get_layouts(y.id).placements[0])

    batches, where = captured(program, 3)
    assert where == "sharded(1)@worker_0,worker_1,worker_2"
    assert assert_same(batches, 3).again > 5


def test_workers_that_join_and_leave_begin_anew():
    steps, spread = Steps(24), Spread(2)
    spread.receive(steps.begin())

    def run(count: int) -> int:
        before = spread.again
        for _ in range(count):
            spread.receive(steps.step(0.5))
        return spread.again - before

    assert run(12) > 5
    spread.add_worker()
    assert run(3) < 3
    assert run(10) > 5
    spread.dispatcher.remove_worker("worker_2", "worker_2 is gone")
    spread.receive([steps.x, 0, *steps.begin()[1:]] if steps.x in spread.sharding.tensor_sharded else [])
    steps.x = 1
    assert run(2) < 2
    assert run(10) > 5
    assert not spread.link.refusals


def test_a_worker_that_dies_meanwhile_fails_only_its_own_tensors():
    server = ThreadServer(3, "numpy", shard_threshold=16)
    with using(server):
        x = gt.ones(64, 8)
        for n in range(60):
            x = (x * 0.5 + 1).tanh() - (x * 0.25).sin().cos() + 0.5
            session.current().flush()
            if n == 40:
                server.lose_worker(2)
        with pytest.raises(WorkerError, match="worker_2 is gone"):
            x.numpy()
        y = gt.ones(64, 8)
        expected = np.ones((64, 8), np.float32)
        for _ in range(30):
            y = (y * 0.5 + 1).tanh() - (y * 0.25).sin().cos() + 0.5
            expected = np.tanh(expected * 0.5 + 1) - np.cos(np.sin(expected * 0.25)) + np.float32(0.5)
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)


def test_lost_tensors_are_lost_in_repeats_too():
    steps, spread = Steps(24), Spread(2)
    spread.receive(steps.begin())
    for _ in range(10):
        spread.receive(steps.step(0.5))
    again = spread.again
    spread.receive([0, Lost([0], "a modifier failed")])
    for _ in range(3):
        spread.receive(steps.step(0.5))
    assert spread.again == again
    assert spread.sharding.lost[steps.x] == "a modifier failed"


def test_a_repeat_of_tensors_that_a_client_does_not_have_is_refused():
    steps, spread = Steps(24), Spread(2)
    spread.receive(steps.begin())
    for _ in range(10):
        spread.receive(steps.step(0.5))
    bad = next(one for one in steps.step(0.5) if isinstance(one, Repeat))
    bad.inputs = [1 << 40 for _ in bad.inputs]
    with pytest.raises(ProtocolError, match="Tensor not found"):
        spread.receive([bad])


def test_placements_that_do_not_recur_are_dropped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(placed_repeats, "MAX_RECORDED_OPS", 200)
    monkeypatch.setattr(placed_repeats, "MAX_KEYS_SEEN", 2)
    steps = Steps(24)
    batches: list[Any] = [steps.begin(), *[steps.step(0.5 if n % 5 else 0.0) for n in range(60)]]
    assert assert_same(batches, 2).again > 5
