"""A worker that fails in the middle of an exchange reports it to the others: none hangs."""

import re
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

import gt
from gt.client import Client
from gt.client import session as session_module
from gt.errors import WorkerError
from gt.stream.instructions import Exchange, GetData, Upload
from gt.stream.layouts import Partial, Placement, Replicated, Sharded, even
from gt.transport import peers as peers_module
from gt.transport.peers import Peers
from gt.transport.protocol import Member
from gt.worker import Worker
from gt.worker.collectives import exchange as exchange_module
from tests.gt.helpers.servers import Cluster, Process, cluster, connect
from tests.programs import TIMEOUT

NAMES = ("worker_0", "worker_1", "worker_2")
SHAPE = (90, 120)  # large enough for a sum in parts
SPLIT, OTHERWISE = Placement(Sharded(0, even(90, 3)), NAMES), Placement(Sharded(1, even(120, 3)), NAMES)
TERMS, WHOLE = Placement(Partial("sum"), NAMES), Placement(Replicated(), NAMES)
FIRST, SECOND = Placement(Replicated(), NAMES[:1]), Placement(Replicated(), NAMES[1:2])
EXCHANGES = {
    "AllGather": (SPLIT, WHOLE),
    "AllToAll": (SPLIT, OTHERWISE),
    "ReduceScatter": (TERMS, SPLIT),
    "AllReduce": (TERMS, WHOLE),
    "Reduce": (TERMS, FIRST),
    "Move": (SECOND, FIRST),
}
SHAPES = {"in parts": SHAPE, "at once": (3, 12)}


class Group:
    """Workers that exchange tensors of a client, each on a thread of its own."""

    def __init__(self) -> None:
        self.context = zmq.Context()
        self.workers = [Worker(name, "numpy") for name in NAMES]
        self.numbers = iter(range(1000))
        members = {}
        for worker in self.workers:
            peers = worker.peers = Peers(f"inproc://{worker.name}", self.context)
            peers.name = worker.name
            members[worker.name] = Member(peers.address, peers.token)
        for worker in self.workers:
            assert worker.peers is not None
            worker.peers.update_members(1, members)

    def run(self, kind: str, shape: tuple[int, ...], value: float) -> dict[str, Any]:
        """Each worker's part of the result: an array, or the error."""
        source, target = (
            Placement(Sharded(place.layout.axis, even(shape[place.layout.axis], 3)), place.workers)
            if isinstance(place.layout, Sharded)
            else place
            for place in EXCHANGES[kind]
        )
        order = Exchange(kind, next(self.numbers), 0, 1, shape, "float32", source, target, 1)
        results: dict[str, Any] = {}

        def take_part(worker: Worker) -> None:
            work: list[Any] = [0, 1]  # what was there is freed
            if worker.name in source.workers:
                local = source.local_shape(source.workers.index(worker.name), shape)
                work.append(Upload(0, np.full(local, value, np.float32)))
            if worker.name in source.workers + target.workers:
                work.append(order)
            outcome = worker.execute("c", [*work, GetData(1, 1)])
            (fetched,) = outcome.data
            results[worker.name] = fetched.array if fetched.error is None else fetched.error

        threads = [threading.Thread(target=take_part, args=(one,), name=one.name) for one in self.workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        assert not any(thread.is_alive() for thread in threads), "a worker hangs"
        return {name: results[name] for name in target.workers}

    def left(self) -> list[Any]:
        """Pieces that were sent and that no worker waits for."""
        found = []
        for worker in self.workers:
            assert worker.peers is not None
            worker.peers._assign_pieces()
            found += [worker.peers._arrived, worker.peers._given_up]
        return [one for one in found if one]

    def close(self) -> None:
        for worker in self.workers:
            assert worker.peers is not None
            worker.peers.close()
        self.context.destroy(linger=0)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    monkeypatch.setenv("GT_TIMEOUT", "15")
    started = Group()
    yield started
    started.close()


def only_on(victim: str, function: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """The function; on one worker it fails."""

    def sometimes(*arguments: Any) -> Any:
        if threading.current_thread().name == victim:
            raise error
        return function(*arguments)

    return sometimes


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", EXCHANGES)
def test_a_worker_that_cannot_send_a_value_reports_it_to_all_receivers(
    group: Group, kind: str, shape: tuple[int, ...]
):
    engine = group.workers[1].engine
    get = engine.get
    engine.get = only_on("worker_1", get, RuntimeError("the device was lost"))
    errors = group.run(kind, shape, 1.0)
    for name, found in errors.items():
        assert re.match(rf"({kind}|reading the data) failed on worker_1 .*the device was lost", found), name
    engine.get = get
    assert all(isinstance(found, np.ndarray) for found in group.run(kind, shape, 2.0).values())
    assert not group.left()


@pytest.mark.parametrize("kind", EXCHANGES)
def test_what_comes_in_pieces_is_put_together(group: Group, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(peers_module, "PIECE", 1 << 10)
    for value in (1.0, 2.0):
        for found in group.run(kind, SHAPE, value).values():
            terms = 3 if kind in ("AllReduce", "ReduceScatter", "Reduce") else 1
            assert (found == terms * value).all()
    assert not group.left()


INSIDE = ("_send_parts", "_receive_parts", "Total", "copy_into")


@pytest.mark.parametrize("where", INSIDE)
@pytest.mark.parametrize("kind", ["AllGather", "AllToAll", "ReduceScatter", "AllReduce", "Reduce"])
def test_a_worker_out_of_memory_in_an_exchange_reports_it_to_all_receivers(
    group: Group, kind: str, where: str, monkeypatch: pytest.MonkeyPatch
):
    inner = getattr(exchange_module, where)
    with monkeypatch.context() as patch:
        patch.setattr(exchange_module, where, only_on("worker_0", inner, MemoryError("no room")))
        for found in group.run(kind, SHAPE, 1.0).values():
            # Who has been sent all there is to have is not in trouble.
            assert isinstance(found, np.ndarray) or re.match(f"{kind} failed on worker_0.*MemoryError", found)
    for found in group.run(kind, SHAPE, 2.0).values():
        assert (found == (6.0 if kind in ("AllReduce", "ReduceScatter", "Reduce") else 2.0)).all()
    assert not group.left()


def test_a_worker_without_an_engine_fails_its_exchanges_for_all(group: Group):
    group.workers[2].engine_name = "missing"
    for found in group.run("AllReduce", SHAPE, 1.0).values():
        assert "loading the engine failed on worker_2" in found
    group.workers[2].engine_name = "numpy"
    assert (group.run("AllReduce", SHAPE, 2.0)["worker_0"] == 6).all()
    assert not group.left()


# --- over real processes ---

SIGNALS = """
rows: {shard: {axis: 0}}
columns: {shard: {axis: 1}}
all: {replicate: true}
"""


def start(running: Cluster, **environment: str) -> Process:
    """A worker that can be made to fail."""
    worker = running.run(
        "-m", "tests.gt.helpers.broken_worker", "--host", "127.0.0.1", "-p", str(running.port),
        "--engine", "numpy",
        **environment,
    )  # fmt: skip
    worker.says("is ready")
    return worker


@pytest.fixture
def signals(tmp_path: Path) -> Path:
    path = tmp_path / "signals.yaml"
    path.write_text(SIGNALS)
    return path


def works(client: Client) -> bool:
    """Whether all workers compute and exchange for a client."""
    x = client.create(np.ones((96, 96), np.float32))
    return client.fetch(x).sum() == 96 * 96


def test_a_process_that_cannot_read_out_a_value_is_an_error_of_the_read(
    monkeypatch: pytest.MonkeyPatch, signals: Path
):
    with cluster(workers=1) as running:
        start(running, BROKEN_GET="77")
        running.start_worker()
        client, other = connect(running), connect(running)
        monkeypatch.setattr(session_module, "_current", client)
        gt.load_config(signals)
        x, fine = (gt.signal.tensor(gt.ones(300, n), "rows") for n in (77, 78))
        lost = r"failed on worker_1 \(numpy\): RuntimeError: the device was lost"
        for kind, target in (("AllGather", "all"), ("AllToAll", "columns")):
            with pytest.raises(WorkerError, match=f"{kind} {lost}"):
                (gt.signal.tensor(x, target) + 1).numpy()
            assert (gt.signal.tensor(fine, target) + 1).sum().item() == 300 * 78 * 2
        for columns in (3, 300):
            y = gt.signal.tensor(gt.ones(300, columns), "rows")
            with pytest.raises(WorkerError, match=lost):
                (x.T @ y).relu().numpy()
            assert ((fine.T @ y).relu() == 300).all().item()
        assert x.sum().item() == 300 * 77, "what need not be given out is there"
        assert works(other)
        for one in (client, other):
            one.close()


def room_for(worker: Process, nbytes: int) -> None:
    """Have the system refuse a process more than so much more memory, whatever it asks for."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    limit = (int(re.findall(r"VmData:\s+(\d+) kB", status)[0]) << 10) + nbytes
    resource.prlimit(worker.pid, resource.RLIMIT_DATA, (limit, limit))


def goes_on(small: Any, x: Any, other: Client, workers: list[Process]) -> None:
    """Check that further exchanges, the tensor itself, other clients and all processes still work."""
    assert (gt.signal.tensor(small, "columns") + 1).sum().item() == 6000
    assert x.max().item() == 1
    assert works(other)
    assert [worker.popen.poll() for worker in workers] == [None] * 3


def test_a_process_that_runs_out_of_memory_in_an_exchange_is_an_error_of_the_read(
    monkeypatch: pytest.MonkeyPatch, signals: Path
):
    with cluster(workers=0) as running:
        workers = [start(running) for _ in range(3)]
        client, other = connect(running), connect(running)
        monkeypatch.setattr(session_module, "_current", client)
        gt.load_config(signals)
        small = gt.signal.tensor(gt.ones(300, 10), "rows")
        x = gt.signal.tensor(gt.ones(3072, 4096), "rows")  # 16 MB on each
        assert x.sum().item() == 3072 * 4096
        room_for(workers[1], 8 << 20)
        with pytest.raises(WorkerError, match=r"AllToAll failed on worker_1\b.*MemoryError.*--memory"):
            (gt.signal.tensor(x, "columns") + 1).sum().item()
        with pytest.raises(WorkerError, match=r"AllGather failed on worker_1 .*MemoryError.*--memory"):
            (gt.signal.tensor(x, "all") * x).sum().item()
        goes_on(small, x, other, workers)
        for one in (client, other):
            one.close()


def test_a_process_without_memory_for_received_bytes_is_an_error_within_seconds(
    monkeypatch: pytest.MonkeyPatch, signals: Path
):
    """Over sockets there may be no memory for what arrives before the worker itself has looked at it."""
    with cluster(workers=0) as running:
        workers = [start(running, NO_SHARED_MEMORY="1") for _ in range(3)]
        client, other = connect(running), connect(running)
        monkeypatch.setattr(session_module, "_current", client)
        gt.load_config(signals)
        small = gt.signal.tensor(gt.ones(300, 10), "rows")
        x = gt.signal.tensor(gt.ones(3072, 4096), "rows")  # 16 MB on each
        assert (gt.signal.tensor(small, "columns") + x.sum()).min().item() == 3072 * 4096 + 1
        room_for(workers[1], 17 << 20)  # for its part, and not for what it is sent
        # Not that a worker sent nothing for GT_TIMEOUT, which is minutes.
        with pytest.raises(WorkerError, match=r"were lost|AllToAll failed on worker_1\b.*MemoryError"):
            (gt.signal.tensor(x, "columns") + 1).sum().item()
        goes_on(small, x, other, workers)
        for one in (client, other):
            one.close()
