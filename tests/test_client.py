"""The stream: nothing waits until data is read, nothing leaks, and a failure says where it came from."""

import threading

import msgspec
import numpy as np
import pytest

import gt
from gt.client import Client
from gt.client.client import BATCH
from gt.dispatcher import Dispatcher
from gt.errors import ProtocolError, WorkerError
from gt.ops import TABLE
from gt.server import local
from gt.transport import protocol
from gt.transport.connection import LocalConnection
from gt.worker import Worker
from tests.programs import run_python


def dispatcher_of(client: Client) -> Dispatcher:
    server = client.connection._server
    assert isinstance(server, Dispatcher)
    return server


def test_importing_gt_and_shaping_tensors_loads_no_engine():
    code = "import gt, sys; x = gt.ones(3) + 1; assert x.shape == (3,); print('torch' in sys.modules)"
    done = run_python("-c", code)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_ops_wait_in_a_batch_until_data_is_read(client: Client):
    x = gt.ones(3) + 1
    received = [entry for entry in dispatcher_of(client).stream.recent if entry.event == "RECV"]
    assert received == []
    assert x.tolist() == [2, 2, 2]


def test_a_full_batch_is_sent_without_a_read(client: Client):
    x = gt.ones(1)
    for _ in range(BATCH):
        x = x + 1
    assert any(entry.event == "RECV" for entry in dispatcher_of(client).stream.recent)


def test_dropped_tensors_are_freed_on_the_worker(client: Client):
    x = gt.ones(2)
    for _ in range(300):
        x = x + 1
    assert x.tolist() == [301, 301]
    assert gt.debug.get_worker_stats()["auto_worker"]["tensors"] == 1


def test_a_closed_client_leaves_nothing_behind():
    server = local.start("numpy")
    client = Client(LocalConnection(server))
    client.create(np.ones(3))
    client.close()
    assert server.get_stats()["auto_worker"]["tensors"] == 0


def test_clients_of_one_server_have_their_own_tensors():
    server = local.start("numpy")
    clients = [Client(LocalConnection(server)) for _ in range(2)]
    ids = [client.create(np.full(2, value)) for value, client in enumerate(clients)]
    assert ids == [0, 0]
    for value, client in enumerate(clients):
        assert client.fetch(0).tolist() == [value, value]


def test_threads_share_a_client(client: Client):
    totals: dict[int, float] = {}

    def count(start: int) -> None:
        x = gt.full((1,), float(start))
        for _ in range(200):
            x = x + 1
        totals[start] = x.sum().item()

    threads = [threading.Thread(target=count, args=(n * 1000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == {n * 1000: n * 1000 + 200 for n in range(4)}


def test_a_failure_on_the_worker_names_op_shapes_worker_and_the_users_line(client: Client):
    huge = 1 << 45  # no machine has this much memory: the engine itself must refuse
    x = gt.ones(huge)
    y = (x + 1).sum()
    with pytest.raises(WorkerError) as caught:
        y.item()
    message = str(caught.value)
    assert f"full(), asked for at {__file__}:" in message
    assert "failed on auto_worker" in message
    assert gt.ones(2).tolist() == [1, 1], "the client and the worker go on"


def test_a_failed_result_spreads_with_its_cause_not_as_a_missing_tensor(client: Client):
    bad = gt.ones(1 << 45) * 2
    with pytest.raises(WorkerError, match="full"):
        (bad.sum() + gt.ones(1)).numpy()


def test_a_number_that_cannot_travel_is_refused_at_once_and_loses_nothing(client: Client):
    x = gt.ones(2)
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        _ = x + 2**70
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        gt.full((2,), -(2**64))
    assert (x + (2**63 - 1)).dtype == "float32"
    assert x.tolist() == [1, 1]


def test_data_that_an_engine_cannot_take_fails_that_tensor_only(client: Client, monkeypatch):
    worker = dispatcher_of(client).worker
    assert isinstance(worker, Worker)

    def refuse(array: np.ndarray) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(worker.engine, "put", refuse)
    bad = gt.tensor([1.0, 2.0])
    with pytest.raises(WorkerError, match=r"taking in <float32 \[2\], 8 bytes> failed on .*no room"):
        (bad + 1).tolist()
    monkeypatch.undo()
    assert client.fetch(client.create(np.ones(2))).tolist() == [1, 1]


def test_an_unknown_tensor_is_a_protocol_error_that_names_it():
    server = local.start("numpy")
    name = server.connect()
    with pytest.raises(ProtocolError, match=f"Tensor not found: client {name} has no tensor 7"):
        server.receive(name, protocol.encode([protocol.GetData(0, 7)]))


@pytest.mark.parametrize("garbage", [b"", b"garbage", protocol.encode([["Op", 1]]), protocol.encode(3)])
def test_bytes_that_are_no_instructions_are_refused(garbage: bytes):
    server = local.start("numpy")
    name = server.connect()
    with pytest.raises(msgspec.DecodeError):
        server.receive(name, garbage)


def test_every_row_names_a_function_that_exists_on_every_engine():
    from gt.worker.engine.base import ENGINES, resolve

    for row in TABLE.values():
        assert set(row.engines) == set(ENGINES)
        for target in row.engines.values():
            assert callable(resolve(target))


def test_backend_is_another_word_for_engine():
    assert Worker(backend="numpy").engine.name == "numpy"
    with pytest.raises(ValueError, match="no engine is called 'tpu'; there are numpy, pytorch"):
        _ = Worker(backend="tpu").engine
