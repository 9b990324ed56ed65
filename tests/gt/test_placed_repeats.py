"""Replaying the placement of a repeat over several workers has the results of placing its ops one by one."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from gt.client import Client, session
from gt.dispatcher.sharding.policy import Cluster
from gt.ops import Spec
from gt.stream.instructions import Op
from gt.stream.layouts import Placement
from gt.stream.repeat_builder import RepeatBuilder
from gt.stream.repeats import Repeat, RepeatEncoder, cut_runs, runs_of, weight
from tests.gt.helpers.placed import ByShape, Spread, assert_same, encoded
from tests.gt.helpers.placed_programs import Steps, captured, mlp
from tests.gt.helpers.spread import Servers, using
from tests.gt.helpers.threads import ThreadConnection, ThreadServer
from tests.gt.test_sharded_programs import Program
from tests.gt.test_sharded_programs import servers as servers


class Repeated(Program):
    """A random program that does the same every time, to the same leaves."""

    def __init__(self, seed: int, steps: int) -> None:
        super().__init__(seed)
        self.seed = seed
        self.length = steps

    def once(self) -> list[Any]:
        self.random = random.Random(self.seed + 1)
        self.tensors = list(self.leaves)
        for _ in range(self.length):
            self.step()
        return self.tensors[-2:]


@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 20), workers=st.integers(2, 4))
def test_random_programs_give_pytorchs_numbers_time_after_time(servers: Servers, seed: int, workers: int):
    with servers.use(workers, seed):
        program = Repeated(seed, 12)
        late: list[Any] = []
        for n in range(8):
            for mine, theirs in program.once():
                np.testing.assert_allclose(
                    mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-8
                )
                late.append(mine)
            del late[: n % 3]


@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 20), workers=st.integers(2, 4))
def test_random_programs_are_placed_as_op_by_op(seed: int, workers: int):
    def program() -> None:
        repeated = Repeated(seed, 14)
        late: list[Any] = []
        for n in range(10):
            made = repeated.once()
            loss: Any = sum((mine * float(n)).tanh().sum() for mine, _ in made)
            loss.backward()
            late.append(loss)
            repeated.tensors = []
            del late[: n % 4]

    batches, _ = captured(program, workers, ByShape(seed))
    assert_same(batches, workers, lambda: ByShape(seed))


@pytest.mark.parametrize("workers", [2, 3])
def test_a_training_step_is_placed_as_op_by_op(workers: int):
    batches, losses = captured(lambda: mlp(rate=lambda n: 0.1 / (n + 1)), workers)
    assert losses[-1] < losses[0]
    spread = assert_same(batches, workers)
    repeats = sum(isinstance(one, Repeat) for batch in batches for one in batch)
    assert spread.again >= repeats - 4 > 4


def test_the_policy_is_called_again_for_new_tensors_without_inputs():
    def program() -> None:
        for n in range(12):
            x = gt.rand(20, 3) * gt.full((20, 1), float(n)) + gt.rand(2, 3).sum() - gt.rand(4).mean()
            del x

    class Turning(ByShape):
        """Puts small tensors elsewhere every few questions."""

        asked = 0

        def place(self, spec: Spec, cluster: Cluster) -> Placement:
            self.asked = cluster.loads["worker_0"] + len(spec.shape)
            return super().place(spec, cluster)

    gt.manual_seed(0)
    batches, _ = captured(program, 3, ByShape(1))
    assert any(isinstance(one, Repeat) for batch in batches for one in batch)
    for seed in range(6):
        assert_same(batches, 3, lambda seed=seed: Turning(seed))
    assert_same(batches, 3)


@pytest.mark.parametrize("rate", [lambda n: 0.5, lambda n: 0.5 / (n + 1)], ids=["same", "changing"])
def test_what_a_step_costs_does_not_grow_with_its_ops(rate: Callable[[int], float]):
    def last_step(ops: int) -> list[tuple[int, int, int]]:
        """Of each worker: how many items it is sent for a step, of how many bytes, standing for how much."""
        steps, spread = Steps(ops), Spread(2)
        spread.receive(steps.begin())
        encoders = {name: RepeatEncoder() for name in spread.links}
        sizes: list[tuple[int, int, int]] = []
        for n in range(12):
            spread.receive(steps.step(rate(n)))
            sizes = []
            for name, link in spread.links.items():
                size = len(encoded(encoders[name].encode(link.sent)))
                sizes.append((len(link.sent), size, weight(link.sent)))
                link.sent.clear()
        assert spread.again > 5
        return sizes

    for (items, size, _), (more, larger, stands_for) in zip(last_step(30), last_step(300), strict=True):
        assert items == more <= 3
        assert stands_for >= 300
        assert larger <= size + 16 < 200


def test_skipped_ids_are_not_sent_one_by_one():
    """Ops that only one worker carries out leave gaps in the numbers of the others."""
    spread, repeat_builder = Spread(2), RepeatBuilder(hold_complete=True)
    large, small = ({"shape": s, "value": 1.0, "dtype": "float32"} for s in ([64, 4], [2]))
    spread.receive([Op(0, "full", (), large, 0), Op(1, "full", (), small, 0)])
    x, y, number = 0, 1, 2
    encoder, sizes = RepeatEncoder(), []
    for _ in range(12):
        out: list[Any] = []
        for _ in range(64):
            out += [Op(number, "add", (x, x), None, 0), x, Op(number + 1, "add", (y, y), None, 0), y]
            x, y, number = number, number + 1, number + 2
        spread.receive([*repeat_builder.build(out), *repeat_builder.release()])
        sizes.append(len(encoded(encoder.encode(spread.links["worker_1"].sent))))
        spread.links["worker_1"].sent.clear()
    assert spread.again > 5
    assert sizes[-1] < 100


def test_pieces_of_a_stream_count_the_instructions_of_their_repeats():
    steps, spread = Steps(100), Spread(2)
    spread.receive(steps.begin())
    for _ in range(12):
        spread.receive(steps.step(0.5))
    assert spread.again
    for link in spread.links.values():
        for chunk in link.chunks[-3:]:
            assert sum(isinstance(one, Repeat) for one in chunk) == 1
            assert weight(chunk) >= 200


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True), st.data())
def test_runs_are_cut_as_the_numbers_they_stand_for(numbers: list[int], data: st.DataObject):
    start = data.draw(st.integers(0, len(numbers) - 1))
    stop = data.draw(st.integers(start + 1, len(numbers)))
    runs = cut_runs(runs_of(numbers), start, stop)
    reported = [
        n for first, count in zip(runs[::2], runs[1::2], strict=True) for n in range(first, first + count)
    ]
    assert reported == numbers[start:stop]


# --- as users see it ---


def test_the_tape_shows_the_ops_of_every_worker_with_their_lines_and_layouts():
    steps, spread = Steps(12), Spread(2)
    spread.receive(steps.begin())
    for _ in range(12):
        spread.receive(steps.step(0.5))
    assert spread.again > 5
    recent = spread.dispatcher.stream.recent[-400:]
    last = f"result={spread.name}_{steps.x} "
    sent = [one for one in recent if one.event == "WORKER_SEND" and last in one.details + " "]
    done = [one for one in recent if one.event == "WORKER_RECV" and last in one.details + " "]
    assert (
        {one.source for one in sent} == {one.source for one in done} == {"WORKER worker_0", "WORKER worker_1"}
    )
    assert all("op=" in one.details for one in sent)
    layouts = [
        one for one in recent if one.event == "LAYOUT" and one.details.startswith(f"tensor_id={steps.x} ")
    ]
    assert "layout=sharded(0)@worker_0,worker_1" in layouts[0].details


def test_over_processes_training_is_the_same_with_repeats_and_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def trained(auto: str) -> tuple[list[float], dict[str, Any]]:
        monkeypatch.setenv("GT_AUTO_COMPILE", auto)
        monkeypatch.setenv("GT_INSTRUCTION_LOG", str(tmp_path / f"{auto}.log"))
        gt.init(workers=2)
        try:
            losses = mlp(40)
            (stats,) = session.current().get_dispatcher_stats()["sharding"].values()
            return losses, stats
        finally:
            gt.close()

    plain, without = trained("0")
    losses, stats = trained("1")
    np.testing.assert_allclose(losses, plain, rtol=1e-4)
    assert without["repeats_placed_again"] == 0
    assert stats["repeats_placed_again"] > 20
    assert stats["ops"] == without["ops"]
    assert stats["commands"] == without["commands"]

    def ops(name: str) -> Counter[str]:
        lines = (tmp_path / name).read_text().splitlines()
        sent = [line for line in lines if "WORKER_SEND" in line and " op=" in line]
        return Counter(line.split(" op=")[1].split()[0] for line in sent)

    assert ops("1.log") == ops("0.log")


@pytest.fixture
def client() -> Iterator[Client]:
    server = ThreadServer(2, "numpy")
    with using(server) as client:
        yield client


def test_two_clients_repeat_without_touching_each_other(client: Client):
    connection = client.connection
    assert isinstance(connection, ThreadConnection)
    other = Client(ThreadConnection(connection._threads))
    try:
        mine, theirs = gt.ones(64, 64), other
        for _ in range(20):
            mine = ((mine * 0.5 + 1).tanh() - (mine * 0.25).sin()).cos() + 0.5
        assert np.isfinite(mine.numpy()).all()
        stats = client.get_dispatcher_stats()["sharding"]
        assert {one["repeats_placed_again"] > 0 for one in stats.values()} == {True, False}
        assert theirs.fetch(theirs.create(np.ones(2))).tolist() == [1, 1]
    finally:
        other.close()
