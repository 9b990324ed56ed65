"""One client's tensors on several workers: their placement, exchanges, and lost workers."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import Client
from gt.client import connection as remote
from gt.client import session as session_module
from gt.client.connection import RemoteConnection
from gt.errors import WorkerError
from gt.stream.instructions import Op
from gt.stream.layouts import Sharded
from tests.gt.helpers.servers import Cluster, cluster, eventually
from tests.gt.helpers.spread import AnyLayout, using
from tests.gt.helpers.threads import ThreadConnection, ThreadServer
from tests.programs import TIMEOUT


@pytest.fixture
def four() -> Iterator[ThreadServer]:
    server = ThreadServer(4, "numpy")
    with using(server):
        yield server


def layout(x: gt.Tensor) -> str:
    found = x._value.client.get_layouts(x.id)
    return str(found.placements[0])


def commands(server: ThreadServer) -> Counter[str]:
    """How many exchanges there were, by kind."""
    (stats,) = gt.debug.get_dispatcher_stats()["sharding"].values()
    return Counter(stats["commands"])


ALL = "worker_0,worker_1,worker_2,worker_3"


def test_a_large_tensor_is_split_by_default(four: ThreadServer):
    x = gt.randn(128, 64)
    assert layout(x) == f"sharded(0)@{ALL}"
    x.sum().item()
    for link in four.links:
        (state,) = link.worker.clients.values()
        assert state.values[x.id].shape == (32, 64)
    assert x.data.numpy().shape == (128, 64)


def test_random_numbers_do_not_depend_on_the_placement(four: ThreadServer):
    gt.manual_seed(3)
    split = [gt.randn(64, 64).numpy(), gt.rand(5000).numpy(), gt.randperm(3000).numpy(), gt.eye(80).numpy()]
    split += [gt.arange(4000).numpy(), gt.linspace(0, 1, 3000).numpy(), gt.randint(0, 9, (64, 64)).numpy()]
    split += [gt.nn.functional.dropout(gt.ones(64, 64), 0.5).numpy()]
    gt.init()
    gt.manual_seed(3)
    whole = [gt.randn(64, 64).numpy(), gt.rand(5000).numpy(), gt.randperm(3000).numpy(), gt.eye(80).numpy()]
    whole += [gt.arange(4000).numpy(), gt.linspace(0, 1, 3000).numpy(), gt.randint(0, 9, (64, 64)).numpy()]
    whole += [gt.nn.functional.dropout(gt.ones(64, 64), 0.5).numpy()]
    gt.close()
    for one, other in zip(split, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_without_sharding_all_tensors_of_a_client_are_on_one_worker():
    with using(ThreadServer(2, "numpy", enable_sharding=False)) as client:
        x = gt.randn(128, 64)
        assert (x @ x.T).shape == (128, 128)
        assert len(client.get_layouts(x.id).placements[0].workers) == 1
        assert "sharding" not in client.get_dispatcher_stats()


def test_a_data_parallel_step_takes_one_reduce_for_each_parameter(four: ThreadServer, tmp_path: Path):
    signals = tmp_path / "signals.yaml"
    signals.write_text("batch: {shard: {axis: 0}}\nparameters: {replicate: true}\n")
    gt.load_config(signals)
    rng = np.random.default_rng(0)
    with gt.signal.context("parameters"):
        model = gt.nn.Sequential(gt.nn.Linear(32, 64), gt.nn.ReLU(), gt.nn.Linear(64, 8))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        with gt.signal.context("batch"):
            x = gt.from_numpy(rng.standard_normal((64, 32), np.float32))
            y = gt.from_numpy(rng.standard_normal((64, 8), np.float32))
        optimizer.zero_grad()
        gt.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    step()
    before = commands(four)
    step()
    exchanged = commands(four) - before
    assert sum(exchanged[kind] for kind in ("AllReduce", "ReduceScatter", "Reduce")) == 4
    assert set(exchanged) <= {"AllReduce", "Create", "Move"}
    assert exchanged["Move"] <= 1, "the gradient of the loss, one number"
    assert [layout(p) for p in model.parameters()] == [f"replicated@{ALL}"] * 4


def test_exchanges_can_be_read_on_the_tape(
    four: ThreadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log = tmp_path / "tape.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    a = gt.randn(64, 64)
    (a.T @ a).relu().sum().item()
    text = log.read_text()
    sent = [line for line in text.splitlines() if "WORKER_SEND" in line]
    assert sum("WorkerReduceScatter" in line or "WorkerAllReduce" in line for line in sent) == 4
    assert "from=partial(sum)@" in text
    assert sum("op=randn" in line for line in sent) == 4


def test_a_failure_on_one_worker_is_raised_by_the_read_and_nothing_hangs(four: ThreadServer):
    table, index = gt.randn(50, 64), np.zeros(4096, np.int64)
    index[4000] = 99  # in the last worker's part
    bad = gt.nn.functional.embedding(gt.from_numpy(index), table)
    with pytest.raises(WorkerError, match=r"embedding.* failed on worker_3"):
        bad.sum().item()
    with pytest.raises(WorkerError, match=r"embedding.* failed on worker_3"):
        (bad.T @ bad).numpy()
    assert (gt.ones(4096) * 2).sum().item() == 8192


def test_a_late_worker_is_used_for_new_tensors_and_existing_ones_stay():
    server = ThreadServer(1, "numpy")
    with using(server):
        old = gt.ones(64, 64)
        assert old.sum().item() == 4096
        server.add_worker()
        new = gt.ones(64, 64) * 2
        assert layout(new) == "sharded(0)@worker_0,worker_1"
        assert layout(old) == "replicated@worker_0"
        assert (old + new).sum().item() == 3 * 4096
        server.add_worker()
        newest = gt.ones(66, 64)
        assert layout(newest) == "sharded(0)@worker_0,worker_1,worker_2"
        assert (newest[:64] + new).sum().item() == 3 * 4096


def test_a_lost_worker_loses_only_the_tensors_without_another_copy(four: ThreadServer, tmp_path: Path):
    signals = tmp_path / "signals.yaml"
    signals.write_text("all: {replicate: true}\nthird: {replicate: [2]}\n")
    gt.load_config(signals)
    split = gt.ones(64, 64)
    with gt.signal.context("all"):
        everywhere = gt.ones(64, 64)
    with gt.signal.context("third"):
        third = gt.tensor([1.0])
    assert split.sum().item() == 4096
    assert third.item() == 1
    four.lose_worker(2)
    for lost in (split, third, split + everywhere):
        with pytest.raises(WorkerError, match="worker_2 is gone, and its tensors are lost"):
            lost.numpy()
    assert everywhere.sum().item() == 4096
    again = gt.ones(64, 64)
    assert layout(again) == "sharded(0)@worker_0,worker_1,worker_3"
    assert (again @ everywhere).sum().item() == 64**3


def test_a_worker_that_leaves_during_an_exchange_is_an_error_for_waiting_workers(four: ThreadServer):
    x = gt.randn(256, 256)
    x.sum().item()
    busy = threading.Event()
    four.links[1]._queue.put(lambda: busy.wait(TIMEOUT) and None)  # the others wait for it in the exchange
    result = (x.T @ x).relu()
    result._value.client.flush()
    time.sleep(0.1)
    four.lose_worker(1)
    with pytest.raises(WorkerError, match="worker_1 is gone"):
        result.numpy()
    busy.set()
    assert (gt.ones(4096) * 2).sum().item() == 8192


def test_an_op_that_would_not_fit_is_refused_and_others_run():
    with using(ThreadServer(2, "numpy", memory={0: 1 << 20, 1: 1 << 20})):
        small = gt.ones(256, 256)
        assert small.sum().item() == 65536
        with pytest.raises(WorkerError, match=r"MemoryError: the result takes .* has .* left.*--memory"):
            gt.ones(1024, 1024).sum().item()
        assert (small + 1).sum().item() == 2 * 65536


def test_workers_with_unequal_memory_get_unequal_parts():
    with using(ThreadServer(2, "numpy", memory={0: 1 << 20, 1: 3 << 20})):
        x = gt.ones(1000, 400)  # half of it would not fit the first
        assert x.sum().item() == 400_000
        (placement,) = x._value.client.get_layouts(x.id).placements
        assert placement.layout == Sharded(0, (250, 750))


def test_workers_of_different_engines_share_a_tensor():
    pytest.importorskip("jax", reason="an extra: pip install tapestry[jax]")
    server = ThreadServer(1, "numpy")
    server.add_worker(engine="pytorch")
    server.add_worker(engine="jax")
    with using(server):
        a = np.random.default_rng(0).standard_normal((96, 96)).astype(np.float32)
        x = gt.from_numpy(a)
        np.testing.assert_allclose((x.T @ x).softmax(0).numpy().sum(0), np.ones(96), rtol=1e-4)
        half = gt.from_numpy(a).to("bfloat16")
        np.testing.assert_allclose(half.sum(0).float().numpy(), a.sum(0), rtol=0.1, atol=0.3)


def test_two_clients_exchange_at_once_and_neither_waits_for_ever():
    server = ThreadServer(3, "numpy")
    clients = [Client(ThreadConnection(server)) for _ in range(3)]
    results: dict[int, float] = {}

    def work(number: int) -> None:
        client = clients[number]
        x = client.create(np.full((96, 96), number + 1.0, np.float32))
        for _ in range(20):
            product = client.next_id()
            client.emit(Op(product, "matmul", (x, x), None, 0))
            scaled = client.next_id()
            client.emit(
                Op(scaled, "mul", (product,), {"scalar": 1 / (96 * (number + 1)), "reflected": False}, 0)
            )
            x = scaled
        results[number] = float(client.fetch(x).mean())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert {n: round(value, 3) for n, value in results.items()} == {0: 1.0, 1: 2.0, 2: 3.0}
    for client in clients:
        client.close()


# --- over real processes ---


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster(workers=3, engine="pytorch") as started:
        yield started


def connected(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client(RemoteConnection(running.address, timeout=TIMEOUT))
    monkeypatch.setattr(session_module, "_current", client)
    return client


def test_several_processes_give_the_results_of_one(running: Cluster, monkeypatch: pytest.MonkeyPatch):
    client = connected(running, monkeypatch)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((301, 200), np.float32), rng.standard_normal((200, 77), np.float32)
    x, y = gt.from_numpy(a, requires_grad=True), gt.from_numpy(b, requires_grad=True)
    ((x @ y).softmax(0) * 3).sum(1).square().mean().backward()
    import torch

    p, q = torch.from_numpy(a).requires_grad_(), torch.from_numpy(b).requires_grad_()
    ((p @ q).softmax(0) * 3).sum(1).square().mean().backward()
    for mine, other in ((x, p), (y, q)):
        assert mine.grad is not None
        assert other.grad is not None
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-3, atol=1e-7)
    for n in range(5):  # shared memory is used again, and by no two at once
        np.testing.assert_array_equal(gt.from_numpy(a + n).numpy(), a + n)
    stats = client.get_stats()
    assert sum(worker["peer_bytes_sent"] for worker in stats.values()) > 0
    client.close()
    eventually(
        lambda: not any(worker["tensors"] for worker in _stats(running).values()), what="everything is freed"
    )


def test_without_shared_memory_each_worker_is_sent_its_own_bytes(
    running: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote, "host", lambda: "")  # as from another machine
    client = connected(running, monkeypatch)
    a = np.random.default_rng(0).standard_normal((500, 130), np.float32)
    x = gt.from_numpy(a)
    assert layout(x).startswith("sharded(0)")
    np.testing.assert_array_equal(x.numpy(), a)
    np.testing.assert_allclose((x * 2).sum(1).numpy(), 2 * a.sum(1), rtol=1e-4, atol=1e-4)
    client.close()


def test_a_worker_that_rejoins_under_its_name_is_a_new_worker(monkeypatch: pytest.MonkeyPatch):
    with cluster(workers=1, engine="numpy") as started:
        named = started.start_worker("--id", "bob")
        client = connected(started, monkeypatch)
        old = gt.ones(64, 64)
        assert old.sum().item() == 4096
        named.kill()
        started.start_worker("--id", "bob")
        with pytest.raises(WorkerError, match="bob is gone"):
            (old.T @ old).numpy()
        new = gt.ones(64, 64)
        assert layout(new) == "sharded(0)@worker_0,bob"
        assert (new.T @ new).sum().item() == 64**3
        client.close()


def _stats(running: Cluster) -> dict[str, Any]:
    observer = Client(RemoteConnection(running.address, timeout=TIMEOUT))
    try:
        return observer.get_stats()
    finally:
        observer.close()


def test_a_process_that_joins_late_is_used_and_a_killed_one_is_not(monkeypatch: pytest.MonkeyPatch):
    with cluster(workers=1, engine="numpy") as started:
        client = connected(started, monkeypatch)
        old = gt.ones(100, 100)
        assert old.sum().item() == 10_000
        started.start_worker()
        new = gt.ones(100, 100)
        assert (new @ old).sum().item() == 1_000_000
        assert layout(new) == "sharded(0)@worker_0,worker_1"
        assert layout(old) == "replicated@worker_0"
        started.processes[1].kill()  # the first worker
        for lost in (old, new):
            with pytest.raises(WorkerError, match="worker_0 is gone, and its tensors are lost"):
                lost.numpy()
        assert gt.ones(100, 100).sum().item() == 10_000
        started.processes[2].kill()
        # What the server still sends to it, because it does not know of its end, is lost.
        eventually(lambda: not client.get_dispatcher_stats()["workers"])
        waits = gt.ones(10)
        waits._value.client.flush()
        started.start_worker()
        assert waits.sum().item() == 10
        client.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_in_an_exchange_is_an_error_within_seconds(
    how: signal.Signals, monkeypatch: pytest.MonkeyPatch
):
    with cluster(workers=3, engine="numpy") as started:
        clients = [Client(RemoteConnection(started.address, timeout=TIMEOUT)) for _ in range(2)]
        monkeypatch.setattr(session_module, "_current", clients[0])
        victim = started.processes[2].pid
        tensors = [client.create(np.ones((512, 512), np.float32)) for client in clients]
        for client, x in zip(clients, tensors, strict=True):
            assert client.fetch(x).shape == (512, 512)
        os.kill(victim, signal.SIGSTOP)  # it takes part in nothing any more
        products = []
        for client, x in zip(clients, tensors, strict=True):
            turned, product, used = client.next_id(), client.next_id(), client.next_id()
            client.emit(Op(turned, "transpose", (x,), {"dim0": 0, "dim1": 1}, 0))
            client.emit(Op(product, "matmul", (turned, x), None, 0))
            client.emit(Op(used, "relu", (product,), None, 0))
            client.flush()
            products.append(used)
        if how == signal.SIGKILL:
            os.kill(victim, signal.SIGKILL)
        for client, product in zip(clients, products, strict=True):
            with pytest.raises(WorkerError, match=r"worker_1 is gone"):
                client.fetch(product)
        for client in clients:  # and the other workers go on
            again = client.create(np.ones((512, 512), np.float32))
            assert client.fetch(again).sum() == 512 * 512
            client.close()
        if how == signal.SIGSTOP:
            os.kill(victim, signal.SIGKILL)


def test_a_failed_term_reaches_all_workers_of_the_reduction(four: ThreadServer, tmp_path: Path):
    """Large sums are added up in parts, in two rounds: the cause of a failure goes through both."""
    signals = tmp_path / "signals.yaml"
    signals.write_text("all: {replicate: true}\n")
    gt.load_config(signals)
    index = np.zeros(4096, np.int64)
    index[1500] = 99  # in the second worker's part
    bad = gt.nn.functional.embedding(gt.from_numpy(index), gt.randn(50, 128))
    with gt.signal.context("all"):
        total = bad.T @ bad
    for x in (total, total + 1, total.sum()):
        with pytest.raises(WorkerError, match=r"embedding.* failed on worker_1"):
            x.numpy()
    assert (gt.ones(4096) * 2).sum().item() == 8192


def test_no_client_hangs_while_workers_come_and_go(monkeypatch: pytest.MonkeyPatch):
    """Tensors with random placements, three clients at once: every read ends, with data or an error."""
    monkeypatch.setenv("GT_TIMEOUT", "200")
    server = ThreadServer(3, "numpy", policy=AnyLayout(0))
    clients = [Client(ThreadConnection(server)) for _ in range(3)]
    stop = threading.Event()
    reads, wrong = [0, 0, 0], []

    def work(number: int) -> None:
        client, value = clients[number], float(number + 1)
        while not stop.is_set():
            x = client.create(np.full((12, 8), value, np.float32))
            turned, product = client.next_id(), client.next_id()
            client.emit(Op(turned, "transpose", (x,), {"dim0": 0, "dim1": 1}, 0))
            client.emit(Op(product, "matmul", (turned, x), None, 0))
            try:
                if not (client.fetch(product) == 12 * value * value).all():
                    wrong.append("a client read what is not its own")
            except WorkerError as error:
                if "is gone" not in str(error):
                    wrong.append(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, it should not have been
                wrong.append(repr(error))
                return
            for tensor in (x, turned, product):
                client.emit(tensor)
            reads[number] += 1

    def progress() -> None:
        before = list(reads)
        eventually(lambda: wrong or all(now > then + 3 for now, then in zip(reads, before, strict=True)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for lost in range(4):
        progress()
        server.add_worker()
        progress()
        server.lose_worker(lost)
    stop.set()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
    assert min(reads) > 0
    for client in clients:
        client.close()
