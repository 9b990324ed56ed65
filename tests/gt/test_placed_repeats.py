"""A repeat over several workers is placed as before, and does what placing its ops one by one does."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from gt.client import Client, session
from gt.dispatcher.sharding import placed_repeats
from gt.dispatcher.sharding.policy import Cluster
from gt.errors import ProtocolError, WorkerError
from gt.ops import Spec
from gt.stream.instructions import Lost, Op, Site
from gt.stream.layouts import Placement
from gt.stream.repeat_builder import RepeatBuilder
from gt.stream.repeats import Repeat, RepeatEncoder, cut_runs, repeat_of, runs_of, weight
from gt.stream.sequences import HotSequence, Step
from tests.gt.helpers.placed import ByShape, Spread, assert_same, encoded
from tests.gt.helpers.spread import Servers, using
from tests.gt.helpers.threads import ThreadConnection, ThreadServer
from tests.gt.test_sharded_programs import Program
from tests.gt.test_sharded_programs import servers as servers

# --- programs ---


def captured(program: Callable[[], Any], workers: int = 2, policy: Any = None) -> tuple[list[Any], Any]:
    """What a program sends to a dispatcher, with repeats in it, and what it gives."""
    server = ThreadServer(workers, "numpy", policy=policy)
    batches: list[Any] = []
    receive = server.dispatcher.receive

    def listen(client: str, sequence: int, instructions: Any, frames: Any = ()) -> None:
        batches.append(list(instructions))
        receive(client, sequence, instructions, frames)

    server.dispatcher.receive = listen
    with using(server):
        return batches, program()


def mlp(steps: int = 16, rate: Callable[[int], float] = lambda n: 0.1) -> list[float]:
    """Losses of a network that is spread over workers; in evaluation every now and then."""
    gt.manual_seed(3)
    nn, rng = gt.nn, np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Dropout(0.25), nn.Linear(64, 6))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = gt.from_numpy(rng.standard_normal((64, 48), np.float32))
    y = gt.from_numpy(rng.integers(0, 6, 64))
    losses = []
    for n in range(steps):
        optimizer.param_groups[0]["lr"] = rate(n)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [float(loss) for loss in losses]


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


def test_the_policy_is_asked_again_for_what_is_made_out_of_nothing():
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


# --- what it costs ---


class Steps:
    """Writes a loop over split tensors, by hand: a step is a chain of ops, each of which frees its input.

    The first one is a product with a number: the learning rate, so to say.
    """

    def __init__(self, ops: int, shape: Sequence[int] = (32, 4)) -> None:
        pick = random.Random(7)
        self.ops = ["mul"] + [pick.choice(["add", "sub", "tanh", "sin", "maximum"]) for _ in range(ops - 1)]
        self.templates: dict[Any, Any] = {}
        self.attrs = {"shape": list(shape), "value": 1.0, "dtype": "float32"}
        self.x = 1
        self.next = 2

    def begin(self) -> list[Any]:
        return [Site(0, "here.py:1"), Op(0, "full", (), self.attrs, 0), Op(1, "full", (), self.attrs, 0)]

    def step(self, rate: float) -> list[Any]:
        out: list[Any] = []
        scaled: dict[str, Any] = {"scalar": rate, "reflected": False}
        for op in self.ops:
            result, self.next = self.next, self.next + 1
            inputs = (self.x,) if op in ("mul", "tanh", "sin") else (self.x, 0)
            out += [Op(result, op, inputs, scaled if op == "mul" else None, 0), self.x]
            self.x = result
        if not self.templates:
            self.sequence = HotSequence(
                Step(one.op, (n - 1, -2)[: len(one.inputs)], one.attrs) for n, one in enumerate(out[::2])
            )
        before, repeat = repeat_of(
            self.sequence, [one for one in out if isinstance(one, Op)], out, self.templates
        )
        return [*before, repeat]


@pytest.mark.parametrize("rate", [lambda n: 0.5, lambda n: 0.5 / (n + 1)], ids=["same", "changing"])
def test_what_a_step_costs_does_not_grow_with_its_ops(rate: Callable[[int], float]):
    def last_step(ops: int) -> list[tuple[int, int, int]]:
        """Of each worker: how many items it is sent for a step, of how many bytes, standing for how much."""
        steps, spread = Steps(ops), Spread(2)
        spread.receive(steps.begin())
        tellers = {name: RepeatEncoder() for name in spread.links}
        sizes: list[tuple[int, int, int]] = []
        for n in range(12):
            spread.receive(steps.step(rate(n)))
            sizes = []
            for name, link in spread.links.items():
                size = len(encoded(tellers[name].encode(link.sent)))
                sizes.append((len(link.sent), size, weight(link.sent)))
                link.sent.clear()
        assert spread.again > 5
        return sizes

    for (items, size, _), (more, larger, stands_for) in zip(last_step(30), last_step(300), strict=True):
        assert items == more <= 3
        assert stands_for >= 300
        assert larger <= size + 16 < 200


def test_numbers_that_are_skipped_need_not_be_said_one_by_one():
    """Ops that only one worker carries out leave gaps in the numbers of the others."""
    spread, repeat_builder = Spread(2), RepeatBuilder(patient=True)
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


def test_pieces_of_a_stream_count_what_their_repeats_stand_for():
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
    told = [
        n for first, count in zip(runs[::2], runs[1::2], strict=True) for n in range(first, first + count)
    ]
    assert told == numbers[start:stop]


# --- when something is different ---


def test_another_layout_another_rate_and_another_shape_fall_back_and_recover():
    steps, other = Steps(24), Steps(24, (30, 5))
    batches: list[Any] = [steps.begin()]
    marks = []
    for n in range(60):
        if n == 20:  # from now on a copy of this tensor lies otherwise too
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


def test_a_worker_that_dies_meanwhile_fails_what_it_had_and_nothing_else():
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


def test_a_client_that_repeats_what_it_has_not_is_refused():
    steps, spread = Steps(24), Spread(2)
    spread.receive(steps.begin())
    for _ in range(10):
        spread.receive(steps.step(0.5))
    bad = next(one for one in steps.step(0.5) if isinstance(one, Repeat))
    bad.inputs = [1 << 40 for _ in bad.inputs]
    with pytest.raises(ProtocolError, match="Tensor not found"):
        spread.receive([bad])


def test_what_is_never_placed_alike_again_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(placed_repeats, "MAX_RECORDED_OPS", 200)
    monkeypatch.setattr(placed_repeats, "MAX_KEYS_SEEN", 2)
    steps = Steps(24)
    batches: list[Any] = [steps.begin(), *[steps.step(0.5 if n % 5 else 0.0) for n in range(60)]]
    assert assert_same(batches, 2).again > 5


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
    laid = [
        one for one in recent if one.event == "LAYOUT" and one.details.startswith(f"tensor_id={steps.x} ")
    ]
    assert "layout=sharded(0)@worker_0,worker_1" in laid[0].details


@pytest.mark.timeout(300)
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
