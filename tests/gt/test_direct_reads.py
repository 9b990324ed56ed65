"""A client on another host reads straight from the workers; where it cannot reach them, by the dispatcher."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import Client
from gt.client import connection as remote
from gt.client import session as session_module
from gt.client.connection import RemoteConnection
from gt.errors import WorkerError
from gt.stream.instructions import ArrayData, Part
from gt.transport import direct_reads
from gt.transport.direct_reads import DirectReadClient, DirectReadServer
from gt.transport.protocol import Data
from tests.gt.helpers.servers import Cluster, cluster, eventually
from tests.programs import TIMEOUT

A = np.random.default_rng(0).standard_normal((500, 1300)).astype(np.float32)


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster(workers=3, engine="numpy") as started:
        yield started


@pytest.fixture
def far(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client as from another machine: it sees none of the workers' shared memory."""
    monkeypatch.setattr(remote, "host", lambda: "")
    client = Client(RemoteConnection(running.address, timeout=TIMEOUT))
    monkeypatch.setattr(session_module, "_current", client)
    yield client
    client.close()


def given(client: Client) -> int:
    """How many bytes workers have handed out by direct reads."""
    return sum(worker["direct_bytes_sent"] for worker in client.get_stats().values())


def test_shards_come_straight_from_the_workers(far: Client):
    x = gt.from_numpy(A)

    def is_read_directly() -> bool:
        before = given(far)
        np.testing.assert_array_equal(x.numpy(), A)
        return given(far) - before == A.nbytes

    eventually(is_read_directly, what="the workers are reached")
    np.testing.assert_array_equal((x * 2).T.numpy(), 2 * A.T)
    assert x[0, :5].tolist() == A[0, :5].tolist(), "what is small goes inside its message"


def test_a_tensor_on_one_worker_comes_straight_from_it(far: Client):
    x = gt.from_numpy(A)
    total = gt.tensor(2.0) * x[:1].expand(200, 1300)

    def one_is_read_directly() -> bool:
        before = given(far)
        np.testing.assert_array_equal(total.numpy(), np.repeat(2 * A[:1], 200, 0))
        return given(far) > before

    eventually(one_is_read_directly, what="a worker is reached")


def test_threads_that_read_at_once_get_their_own(far: Client):
    tensors = [gt.from_numpy(A + n) for n in range(4)]
    wrong: list[int] = []

    def read(n: int) -> None:
        for _ in range(5):
            if not np.array_equal(tensors[n].numpy(), A + n):
                wrong.append(n)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_where_no_worker_can_be_reached_the_dispatcher_passes_data_on(
    running: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote, "host", lambda: "")
    monkeypatch.setattr(direct_reads.DirectReadClient, "connect", lambda *_: None)  # as behind a firewall
    client = Client(RemoteConnection(running.address, timeout=TIMEOUT))
    monkeypatch.setattr(session_module, "_current", client)
    x, before = gt.from_numpy(A), given(client)
    np.testing.assert_array_equal(x.numpy(), A)
    assert given(client) == before
    client.close()


def test_a_worker_that_is_lost_is_an_error_and_others_are_still_read(
    running: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote, "host", lambda: "")
    with cluster(workers=2, engine="numpy") as started:
        client = Client(RemoteConnection(started.address, timeout=TIMEOUT))
        monkeypatch.setattr(session_module, "_current", client)
        x = gt.from_numpy(A)
        np.testing.assert_array_equal(x.numpy(), A)
        started.processes[2].kill()
        with pytest.raises(WorkerError, match="worker_1 is gone"):
            x.numpy()
        started.start_worker()
        np.testing.assert_array_equal(gt.from_numpy(A).numpy(), A)
        client.close()


# --- one worker ---


def whole(request: int, server: str = "") -> Data:
    return Data(request, ArrayData((4,), "uint8", 0), None, None, server)


@pytest.fixture
def server() -> Iterator[DirectReadServer]:
    server = DirectReadServer("tcp://127.0.0.1:*")
    yield server
    server.close()


def collected(reads: DirectReadClient) -> list[Any]:
    return [(message.request, bytes(frames[0].buffer)) for message, frames in reads.receive()]


def test_data_is_sent_only_to_a_client_that_presents_the_token(server: DirectReadServer):
    reads = {token: DirectReadClient(token) for token in ("right", "wrong")}
    lost: list[Any] = []
    for one in reads.values():
        one.connect({"a": server.address}, lambda *what: lost.append(what))
    eventually(lambda: server.send("right", whole(1), memoryview(b"data")))
    assert not server.send("unknown", whole(2), memoryview(b"data"))
    assert eventually(lambda: collected(reads["right"])) == [(1, b"data")]
    assert collected(reads["wrong"]) == []
    assert lost == []
    for one in reads.values():
        one.close()


def test_a_value_that_never_arrived_is_an_error_once_its_worker_has_left(server: DirectReadServer):
    reads, lost = DirectReadClient("token"), []
    part = Part((2,), (2,), (4,), 2)
    reads.connect({"a": server.address, "b": server.address}, lambda *what: lost.append(what))
    assert reads.is_settled(Data(1, None, None, part, "a"))
    assert reads.is_settled(Data(2, None, None, None, "b"))
    assert not reads.is_settled(Data(3, None, "it failed"))
    reads.connect({"b": server.address}, lambda *what: lost.append(what))
    ((request, error, which),) = lost
    assert (request, which) == (1, part)
    assert "a is gone, and its tensors are lost" in error
    reads.close()


def test_an_error_that_follows_data_is_not_heard(server: DirectReadServer):
    """A worker that hands out data and dies before it could say so: the dispatcher takes it for undone."""
    reads = DirectReadClient("token")
    reads.connect({"a": server.address}, lambda *_: None)
    eventually(lambda: server.send("token", whole(1), memoryview(b"data")))
    assert eventually(lambda: collected(reads)) == [(1, b"data")]
    assert reads.is_settled(Data(1, None, "a is gone"))
    assert not reads.is_settled(Data(1, None, "a is gone")), "of another request, by then"
    reads.close()
