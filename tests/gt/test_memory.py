"""An op that would not fit is refused, and the worker continues: with an explicit or a default limit."""

import re
from collections import Counter
from pathlib import Path

import pytest

import gt
from gt.client import Client
from gt.client import session as session_module
from gt.client.connection import RemoteConnection
from gt.dispatcher.sharding.policy import Cluster, ShardingPolicy
from gt.dispatcher.worker_pool import shares_of_memory
from gt.errors import WorkerError
from gt.ops import Spec
from gt.stream.layouts import Sharded
from gt.transport.protocol import Member
from gt.worker.limits import machine
from tests.gt.helpers.servers import Process, cluster
from tests.programs import TIMEOUT, run_python

MB = 1 << 20
GB = 1 << 30


def data_limit(worker: Process) -> int:
    """How much memory the system lets a process have."""
    limits = Path(f"/proc/{worker.pid}/limits").read_text()
    (line,) = re.findall(r"Max data size +(\S+)", limits)
    return -1 if line == "unlimited" else int(line)


def test_workers_share_their_machines_memory_and_larger_results_are_refused(monkeypatch: pytest.MonkeyPatch):
    with cluster(workers=2, engine="pytorch") as started:
        client = Client(RemoteConnection(started.address, timeout=TIMEOUT))
        monkeypatch.setattr(session_module, "_current", client)
        small = gt.ones(64, 64)
        assert small.sum().item() == 4096
        for worker in started.processes[1:]:
            assert 0 < data_limit(worker) < 0.75 * machine.total()
        rows = int(machine.total() * 0.8) // 4 // MB * 2  # each of two parts is 0.8 of the machine
        with pytest.raises(WorkerError, match=r"full.* failed on worker_\d .*MemoryError.*--memory"):
            gt.ones(rows, MB).sum().item()
        assert (small + 1).sum().item() == 2 * 4096
        client.close()


def test_parts_are_proportional_to_the_configured_memory_of_workers(monkeypatch: pytest.MonkeyPatch):
    with cluster(workers=0) as started:
        for memory in ("2MB", "16MB"):
            started.start_worker("--memory", memory)
        client = Client(RemoteConnection(started.address, timeout=TIMEOUT))
        monkeypatch.setattr(session_module, "_current", client)
        x = gt.randn(1 << 19)
        (placement,) = client.get_layouts(x.id).placements
        assert placement.layout == Sharded(0, (58254, 466034))
        # Sorting takes all of it on one worker: on the one where it fits.
        values, _ = x.sort()
        assert (values[1:] >= values[:-1]).all().item()
        with pytest.raises(
            WorkerError, match=r"failed on worker_0 .*MemoryError: the result takes .* of 2.0 MB left"
        ):
            gt.ones(1 << 23).sum().item()
        assert x[:10].numpy().shape == (10,)
        client.close()


FILL = """
from gt.stream.instructions import Op
from gt.worker import Worker
from gt.worker.limits import machine
from gt.worker.limits.guard import Guard

room = machine.own() + (300 << 20)
machine.available = lambda: max(1, room - machine.own())  # a machine with little left
worker = Worker("w", {engine!r})
worker.execute("c", [])
room = machine.own() + (300 << 20)
worker.guard = Guard()
for elements in (1 << 18, 1 << 14, 1 << 11):
    made, refused = [], None
    while refused is None:
        numbers = [len(made) * 64 + n for n in range(64)]
        shape = dict(shape=[elements], value=1.0, dtype="float32")
        outcome = worker.execute("c", [Op(n, "full", (), shape, 0) for n in numbers])
        made += [numbers]
        refused = next((one.error for one in outcome.failed), None)
    print(elements, refused)
    worker.execute("c", [n for numbers in made for n in numbers])  # all are freed
    worker.execute_held()
    outcome = worker.execute("c", [Op(0, "full", (), shape, 0), 0])
    print("then", outcome.failed)
"""


@pytest.mark.parametrize("engine", ["pytorch", "numpy"])
def test_many_small_tensors_are_refused_before_the_worker_itself_has_no_memory(engine: str):
    lines = run_python("-c", FILL.format(engine=engine)).stdout.splitlines()
    assert len(lines) == 6
    for refused, afterwards in zip(lines[::2], lines[1::2], strict=True):
        assert "MemoryError: " in refused
        assert "Free tensors, use more workers" in refused
        assert afterwards == "then []"


def test_a_machines_memory_is_shared_by_its_workers():
    members = {
        "a": Member("", "", "here", 8 * GB),
        "b": Member("", "", "here", 8 * GB),
        "c": Member("", "", "there", 8 * GB),
        "d": Member("", "", "", 8 * GB),
        "e": Member("", "", "", 8 * GB),
        "f": Member("", ""),
    }
    assert shares_of_memory(members) == {"a": 4 * GB, "b": 4 * GB, "c": 8 * GB, "d": 8 * GB, "e": 8 * GB}


def cluster_of(capacity: dict[str, int], home: str = "", **loads: int) -> Cluster:
    return Cluster(tuple(capacity), {}, Counter(loads), home, capacity)


def test_parts_are_equal_unless_a_worker_could_not_hold_its_own():
    policy, unequal = ShardingPolicy(), cluster_of({"a": 1 * MB, "b": 3 * MB})
    assert policy.place(Spec((1000, 400), "float32"), unequal).layout == Sharded(0, (500, 500))
    assert policy.place(Spec((1000, 800), "float32"), unequal).layout == Sharded(0, (250, 750))


def test_a_tensor_that_stays_whole_goes_where_there_is_room():
    policy, spec = ShardingPolicy(shard_threshold=1 << 30), Spec((MB,), "float32")
    capacity = {"a": 1 * MB, "b": 64 * MB, "c": 64 * MB}
    assert policy.place(spec, cluster_of(capacity, home="a")).workers == ("b",)
    assert policy.place(spec, cluster_of(capacity, home="b", b=61 * MB)).workers == ("c",)
    assert policy.place(spec, cluster_of(capacity, home="b", b=1 * MB)).workers == ("b",)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "1000", "memory.current": "700", "memory.stat": "inactive_file 200"}, (1000, 500)),
        ({"memory.max": "max", "memory.current": "700", "memory.stat": ""}, None),
        ({"memory.max": "1000"}, None),
    ],
)
def test_a_control_groups_limit_counts(
    files: dict[str, str], expected: tuple[int, int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(machine, "_folders", lambda: [(tmp_path, "memory.max", "memory.current")])
    assert next(machine._groups(), None) == expected
    if expected is not None:
        assert (machine.total(), machine.available()) == (1000, 500)
