"""A client receives each callback once, also for programs that run again, and on threads."""

import threading
from typing import Any, ClassVar

import pytest
import torch

import triton_viz
from tests.programs import TIMEOUT
from tests.triton_viz.helpers import client_kernels, kernels
from tests.triton_viz.helpers.watching import Vectorized, Watch, traced
from triton_viz.clients import Tracer
from triton_viz.clients.utils import ChunkRecords
from triton_viz.core.client import Client, OpCallbacks
from triton_viz.core.data import Atomic, Load, Op, Other, Store
from triton_viz.core.records.columns import Programs
from triton_viz.executor import executor

pytestmark = pytest.mark.usefixtures("no_launches")


def ints(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int32)


# --- running again ---


class Counting(Vectorized):
    """Counts loads by program, and discards those of programs that run again."""

    def __init__(self, forgets: bool = True) -> None:
        self.forgets, self.discarded = forgets, 0
        self.counts: dict[Any, int] = {}
        self._mine = threading.local()

    def grid_idx_callback(self, grid_idx: Programs) -> None:
        self._mine.programs = [grid_idx.program(lane) for lane in range(grid_idx.lanes)]

    def discard_callback(self) -> None:
        self.discarded += 1
        for program in self._mine.programs if self.forgets else ():
            self.counts.pop(program, None)

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        return OpCallbacks(after_callback=self.lock_fn(self.count) if op_type is Load else None)

    def count(self, **told: Any) -> None:
        for program in self._mine.programs:
            self.counts[program] = self.counts.get(program, 0) + 1


def run_in_groups(client: Any) -> None:
    x, out = torch.ones(6), torch.zeros(6)
    sizes = torch.tensor([1, 2, 1, 2, 3, 3], dtype=torch.int32)
    traced(client, client_kernels.update_in_groups)[(6,)](x, sizes, out)
    assert x.tolist() == [2] * 6, "what was written is undone before it is written again"
    assert out.tolist() == [2, 4, 2, 4, 6, 6]


def test_programs_that_run_again_are_discarded_first():
    client = Counting()
    run_in_groups(client)
    assert client.discarded == 1
    assert client.counts == {(i, 0, 0): 3 for i in range(6)}
    forgetful = Counting(forgets=False)
    run_in_groups(forgetful)
    assert forgetful.counts == {(i, 0, 0): 6 for i in range(6)}, (
        "without discard_callback they would count twice"
    )


def test_a_client_that_is_not_vectorized_never_has_to_forget():
    class Alone(Counting):
        vectorized: ClassVar[bool] = False

        def grid_idx_callback(self, grid_idx: Any) -> None:
            self._mine.programs = [grid_idx]

    client = Alone(forgets=False)
    run_in_groups(client)
    assert (client.discarded, client.counts) == (0, {(i, 0, 0): 3 for i in range(6)})


def test_the_tracer_records_programs_that_ran_again_once():
    run_in_groups("tracer")
    launch = triton_viz.launches[-1]
    assert [[type(op).__name__ for op in launch.at(p)] for p in launch.programs()] == [
        ["Load", "Store", "Load", "Load", "Store"]
    ] * 6


def test_finalize_gives_the_same_twice_and_starts_over_with_the_next_launch():
    tracer = Tracer()
    kernel = traced(tracer, kernels.add)
    x, out = torch.ones(8), torch.zeros(8)
    kernel[(2,)](x, x, out, 8, BLOCK=4)
    first = list(tracer.finalize())
    assert tracer.finalize() == first == triton_viz.launches[-1].records
    assert len(first) == 3
    kernel[(1,)](x, x, out, 4, BLOCK=4)
    assert triton_viz.launches[0].records == first
    assert [op.programs.count for op in tracer.finalize()] == [1, 1, 1]


# --- threads ---


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_viz.config, "num_sms", 4)
    monkeypatch.setattr(executor, "FIRST_LANES", 8)


class Exclusive(Watch):
    """Counts loads, and the threads in its callback, which is locked when the client is made."""

    def __init__(self) -> None:
        self.inside, self.most, self.count = 0, 0, 0
        self.seen: set[int] = set()
        self.meet = threading.Barrier(2)
        self.locked = self.lock_fn(self.enter)

    def grid_idx_callback(self, grid_idx: Any) -> None:
        if grid_idx[0] < 2:
            self.meet.wait(timeout=TIMEOUT)  # so that there are two threads for sure

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        return OpCallbacks(after_callback=self.locked if op_type is Load else None)

    def enter(self, **told: Any) -> None:
        self.seen.add(threading.get_ident())
        self.inside += 1
        self.most = max(self.most, self.inside)
        count = self.count
        threading.Event().wait(0.001)  # lets another thread in, if it may
        self.count = count + 1
        self.inside -= 1


@pytest.mark.parametrize("before", [False, True], ids=["locked after", "locked before"])
def test_lock_fn_lets_one_thread_at_a_time_into_a_callback(before: bool, request: pytest.FixtureRequest):
    """Also if the function was locked before `num_sms` was set."""
    made = Exclusive() if before else None
    request.getfixturevalue("threads")
    client = made or Exclusive()
    x, out = torch.ones(64), torch.zeros(64)
    traced(client, kernels.add)[(64,)](x, x, out, 64, BLOCK=1)
    assert out.tolist() == [2.0] * 64
    assert len(client.seen) > 1
    assert (client.most, client.count) == (1, 128)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("client", [Counting, Watch, Tracer])
def test_threads_keep_the_order_of_atomics_and_do_nothing_twice(client: type[Client]):
    n = 60
    x, tickets, total = torch.ones(n), ints(n), ints(1)
    made = client()
    traced([made, "tracer"], client_kernels.update_then_count)[(n,)](x, tickets, total)
    assert x.tolist() == [2] * n
    assert tickets.tolist() == list(range(n))
    assert total.item() == n
    if isinstance(made, Counting):
        assert made.counts == {(i, 0, 0): 1 for i in range(n)}
    launch = triton_viz.launches[-1]
    for program in launch.programs():
        assert [type(op) for op in launch.at(program)] == [Load, Store, Atomic, Store]
    assert len(launch.records) == 4, "threads do not change what is recorded, or how"


@pytest.mark.usefixtures("threads")
def test_programs_that_run_again_on_threads_are_recorded_once():
    n = 64
    x, out, sizes = torch.ones(n), torch.zeros(n), torch.arange(n, dtype=torch.int32) % 3 + 1
    client = Counting()
    traced([client, "tracer"], client_kernels.update_in_groups)[(n,)](x, sizes, out)
    assert out.tolist() == (2 * sizes).tolist()
    assert client.counts == {(i, 0, 0): 3 for i in range(n)}
    launch = triton_viz.launches[-1]
    assert {len(launch.at(program)) for program in launch.programs()} == {5}


def test_records_kept_by_chunk_come_back_in_the_order_of_programs():
    def op(first: int) -> Other:
        return Other(programs=Programs.of((first, 0, 0), (9, 1, 1)), call_path=(), name="x", inputs=())

    kept = ChunkRecords()
    for first in (4, 0, 2):
        kept.begin(op(first).programs)
        kept.add(op(first))
    kept.discard()
    assert [[record.program[0] for record in chunk] for chunk in kept.chunks()] == [[0], [4]]
