"""The stream: only reads wait, nothing leaks, and an error names the line that it comes from."""

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import gt
from gt.client import Client
from gt.client import session as session_module
from gt.client.client import BATCH
from gt.dispatcher import Dispatcher
from gt.dispatcher.fair_share import CHUNK_SECONDS
from gt.errors import GTError, ProtocolError, WorkerError
from gt.ops import TABLE
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.instructions import GetData, Op
from gt.worker import Worker
from gt.worker import worker as worker_module
from gt.worker.engine.base import Engine
from tests.gt.helpers.servers import eventually
from tests.programs import ROOT, run_python


def events(dispatcher: Dispatcher, event: str) -> list[str]:
    return [entry.details for entry in dispatcher.stream.recent if entry.event == event]


def tensors_held(client: Client) -> int:
    """How many tensors the workers hold, for anybody."""
    gc.collect()
    return sum(stats["tensors"] for stats in client.get_stats().values())


def test_importing_gt_and_shaping_tensors_loads_no_engine():
    code = (
        "import gt, sys; gt.client.client.FLUSH_SECONDS = 60; x = gt.ones(3) + 1; assert x.shape == (3,);"
        "print('torch' in sys.modules)"
    )
    done = run_python("-c", code, fresh=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_networks_and_optimizers_load_when_they_are_first_named():
    code = (
        "import gt, sys; print('gt.client.nn' in sys.modules, {'nn', 'optim', 'save'} <= set(dir(gt)));"
        "print(gt.nn.Linear.__name__, gt.optim.SGD.__name__, gt.save.__name__, gt.load.__name__);"
        "from gt import nn, optim; import gt.nn.functional as F; print(F.relu.__name__);"
        "import gt.optim.lr_scheduler; gt.network"
    )
    done = run_python("-c", code, fails=True)
    assert done.stdout == "False True\nLinear SGD save load\nrelu\n"
    assert done.stderr.endswith("AttributeError: module 'gt' has no attribute 'network'\n")


def test_a_program_without_processes_loads_no_sockets():
    code = "import gt, sys; gt.ones(3).tolist(); print('zmq' in sys.modules, 'jax' in sys.modules)"
    assert run_python("-c", code).stdout == "False False\n"


def test_ops_wait_in_a_batch_until_data_is_read(server: LocalServer, monkeypatch: pytest.MonkeyPatch):
    from gt.client import client

    monkeypatch.setattr(client, "FLUSH_SECONDS", 60)
    server = LocalServer()
    own = Client(LocalConnection(server))
    x = own.create(np.ones(3))
    assert events(server.dispatcher, "RECV") == []
    assert own.fetch(x).tolist() == [1, 1, 1]
    assert len(events(server.dispatcher, "RECV")) == 2


def test_a_full_batch_is_sent_without_a_read(server: LocalServer):
    x = gt.ones(1)
    for _ in range(BATCH):
        x = x + 1
    assert events(server.dispatcher, "RECV")


def test_what_waits_is_sent_after_a_moment(server: LocalServer):
    x = gt.ones(1)
    eventually(lambda: server.worker.get_stats()["tensors"] == 1)
    del x
    eventually(lambda: server.worker.get_stats()["tensors"] == 0)


def test_dropped_tensors_are_freed_on_the_worker(client: Client):
    before = tensors_held(client)
    x = gt.ones(2)
    for _ in range(300):
        x = x + 1
    assert x.tolist() == [301, 301]
    assert tensors_held(client) == before + 1


def test_tensors_are_freed_in_the_middle_of_a_batch_so_that_memory_is_not_held(server: LocalServer):
    """Between two reads only what the user holds is alive, however many ops there were."""
    x = gt.ones(1000)
    for _ in range(20):
        x = x + 1
    x.tolist()
    order = [entry.command for entry in server.dispatcher.stream.recent if entry.event == "WORKER_SEND"]
    frees = [place for place, command in enumerate(order) if command == "WorkerFreeTensor"]
    adds = [place for place, command in enumerate(order) if command == "WorkerBinaryOp"]
    assert frees[0] < adds[3]


def test_a_closed_client_leaves_nothing_behind():
    server = LocalServer("numpy")
    client = Client(LocalConnection(server))
    client.create(np.ones(3))
    client.close()
    assert server.worker.get_stats()["tensors"] == 0
    assert server.dispatcher.get_stats()["handles"] == 0


def test_clients_of_one_server_have_their_own_tensors():
    server = LocalServer("numpy")
    clients = [Client(LocalConnection(server)) for _ in range(2)]
    ids = [client.create(np.full(2, value)) for value, client in enumerate(clients)]
    assert ids == [0, 0]
    for value, client in enumerate(clients):
        assert client.fetch(0).tolist() == [value, value]


def test_tensors_of_two_connections_do_not_mix(monkeypatch: pytest.MonkeyPatch):
    from gt.client import session

    tensors = []
    for _ in range(2):
        monkeypatch.setattr(session, "_current", Client(LocalConnection(LocalServer("numpy"))))
        tensors.append(gt.ones(2))
    with pytest.raises(GTError, match="add mixes tensors of two connections"):
        _ = tensors[0] + tensors[1]


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


def test_threads_that_make_use_and_drop_tensors_do_not_corrupt_the_stream(client: Client):
    """Every thread trains on its own; the results are those of one thread alone."""

    def train(seed: int) -> list[float]:
        data = np.random.default_rng(seed).standard_normal((8, 4)).astype("float32")
        x, w = gt.from_numpy(data), gt.from_numpy(data[:4, :1].copy(), requires_grad=True)
        losses = []
        for _ in range(15):
            loss = ((x @ w).tanh() ** 2).mean()
            loss.backward()
            assert w.grad is not None
            w = (w.detach() - 0.1 * w.grad).requires_grad_()
            losses.append(loss.item())
        return losses

    expected = [train(seed) for seed in range(4)]
    got: dict[int, list[float]] = {}
    threads = [threading.Thread(target=lambda n=n: got.__setitem__(n, train(n))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        np.testing.assert_allclose(got[seed], expected[seed], rtol=1e-6)


def test_a_cell_that_is_run_again_starts_afresh(client: Client):
    """As in Jupyter: names are bound anew while old tensors, tapes and errors are still around."""
    cell = compile(
        "w = gt.ones(3, requires_grad=True)\nloss = (w * w).sum()\nloss.backward()\nresult = w.grad.tolist()",
        "<cell 1>",
        "exec",
    )
    failing = compile("bad = gt.ones(3) + gt.ones(4)", "<cell 2>", "exec")
    names: dict = {"gt": gt}
    for _ in range(5):
        exec(cell, names)
        assert names["result"] == [2, 2, 2]
        with pytest.raises(RuntimeError, match="must match"):
            exec(failing, names)
    names.clear()
    assert gt.ones(2).tolist() == [1, 1]


FORK = """
import gt, os, sys
{start}
x = gt.ones(3) + 1
assert x.tolist() == [2, 2, 2]
pid = os.fork()
if pid == 0:
    try:
        {child}
    except gt.errors.GTError as error:
        print("child:", error, flush=True)
    del x
    y = gt.ones(2) + 2
    print("child's own:", y.tolist(), flush=True)
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("parent:", (x + 1).tolist())
"""


def test_a_forked_child_continues_with_its_own_copy_when_embedded():
    code = FORK.format(start="", child="print('child:', (x + 1).tolist(), flush=True)")
    printed = run_python("-W", "ignore::DeprecationWarning", "-c", code).stdout.splitlines()
    assert printed == ["child: [3.0, 3.0, 3.0]", "child's own: [3.0, 3.0]", "parent: [3.0, 3.0, 3.0]"]


def test_a_forked_child_does_not_touch_the_parents_connection():
    code = FORK.format(start="gt.init(workers=1, engine='numpy')", child="(x + 1).tolist()")
    printed = run_python("-W", "ignore::DeprecationWarning", "-c", code).stdout.splitlines()
    assert printed[0].startswith("child: this tensor belongs to the process that this one was forked from")
    assert printed[1:] == ["child's own: [3.0, 3.0]", "parent: [3.0, 3.0, 3.0]"]


def test_a_failure_on_the_worker_names_op_shapes_worker_and_the_users_line(client: Client):
    huge = 1 << 45  # no machine has this much memory: the engine itself must refuse
    x = gt.ones(huge)
    y = (x + 1).sum()
    with pytest.raises(WorkerError) as caught:
        y.item()
    message = str(caught.value)
    assert f"full(), issued at {__file__}:" in message
    assert "failed on " in message
    assert gt.ones(2).tolist() == [1, 1], "the client and the worker go on"


def test_the_line_is_the_users_own_not_a_library_of_ours(client: Client):
    x = gt.ones(2, requires_grad=True)
    line = test_the_line_is_the_users_own_not_a_library_of_ours.__code__.co_firstlineno
    big = x.expand(1 << 22, 2) * 1
    product = big @ big.transpose(0, 1)
    product.sum().backward()
    assert x.grad is not None
    with pytest.raises(WorkerError, match=rf"issued at {__file__}:({line + 4}|{line + 5}), failed"):
        x.grad.tolist()


def test_a_failed_result_spreads_with_its_cause_not_as_a_missing_tensor(client: Client):
    bad = gt.ones(1 << 45) * 2
    with pytest.raises(WorkerError, match="full"):
        (bad.sum() + gt.ones(1)).numpy()


def test_failures_are_freed_like_values(client: Client):
    before = tensors_held(client)
    bad = gt.ones(1 << 45) * 2
    with pytest.raises(WorkerError):
        bad.tolist()
    del bad
    assert tensors_held(client) == before


def test_a_number_that_cannot_travel_is_refused_at_once_and_loses_nothing(client: Client):
    x = gt.ones(2)
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        _ = x + 2**70
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        gt.full((2,), -(2**64))
    assert (x + (2**63 - 1)).dtype == "float32"
    assert x.tolist() == [1, 1]


def test_data_that_an_engine_cannot_take_fails_that_tensor_only(server: LocalServer, monkeypatch):
    def refuse(array: np.ndarray) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(server.worker.engine, "put", refuse)
    bad = gt.tensor([1.0, 2.0])
    with pytest.raises(WorkerError, match=r"uploading <float32 \[2\], 8 bytes> failed on .*no room"):
        (bad + 1).tolist()
    monkeypatch.undo()
    client = Client(LocalConnection(server))
    assert client.fetch(client.create(np.ones(2))).tolist() == [1, 1]


def test_an_unknown_tensor_is_a_protocol_error_that_names_it():
    client = Client(LocalConnection(LocalServer("numpy")))
    client.emit(GetData(0, 7))
    with pytest.raises(ProtocolError, match="Tensor not found: client c1 has no tensor 7"):
        client.flush()


def test_every_row_names_a_function_that_exists_on_every_engine():
    pytest.importorskip("jax", reason="an extra: pip install tapestry[jax]")
    from gt.worker.engine.base import ENGINES, load_engine

    for name in ENGINES:
        engine = load_engine(name)
        for op, row in TABLE.items():
            assert set(row.engines) == set(ENGINES)
            assert callable(engine.functions[op])


def test_backend_is_another_word_for_engine():
    assert Worker(backend="numpy").engine.name == "numpy"
    with pytest.raises(ValueError, match="no engine is called 'tpu'; there are jax, numpy, pytorch"):
        _ = Worker(backend="tpu").engine


def test_loading_an_engine_is_not_charged_to_the_client_that_came_first(monkeypatch: pytest.MonkeyPatch):
    """It takes seconds for torch: the next chunks would hold one instruction each, and others go first."""
    now = [0.0]
    load = worker_module.load_engine

    def load_slowly(name: str) -> Engine:
        now[0] += 1000
        return load(name)

    monkeypatch.setattr(worker_module, "load_engine", load_slowly)
    monkeypatch.setattr(worker_module.time, "perf_counter", lambda: now[0])
    server = LocalServer("numpy")
    client = Client(LocalConnection(server))
    try:
        monkeypatch.setattr(session_module, "_current", client)
        assert gt.ones(3).tolist() == [1, 1, 1]
        assert now[0] == 1000
        (session,) = server.dispatcher.sessions.values()
        assert session.used < 1
        assert CHUNK_SECONDS / session.cost > 10  # how many instructions the next chunk holds
    finally:
        client.close()


def test_what_goes_wrong_in_the_background_is_raised_by_the_next_call(monkeypatch: pytest.MonkeyPatch):
    client = Client(LocalConnection(LocalServer("numpy")))
    send = client.connection.send

    def fail(batch: list) -> None:
        raise OSError("no way out")

    monkeypatch.setattr(client.connection, "send", fail)
    x = client.create(np.ones(2))
    eventually(lambda: client._flush_error is not None)
    monkeypatch.setattr(client.connection, "send", send)
    with pytest.raises(OSError, match="no way out"):
        client.fetch(x)
    assert client.fetch(x).tolist() == [1, 1], "and what had not been sent was not lost"


def test_a_program_whose_file_name_is_not_unicode_runs_over_processes(tmp_path: Path):
    program = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py"))
    program.write_text("import gt\ngt.init(workers=1, engine='numpy')\nprint((gt.ones(2) + 1).tolist())\n")
    assert run_python(str(program), environment={"PYTHONPATH": str(ROOT)}).stdout == "[2.0, 2.0]\n"


def test_a_tensor_whose_op_could_not_be_sent_is_freed(monkeypatch: pytest.MonkeyPatch, server: LocalServer):
    """The op was issued: as nothing refers to its result, the server would keep it for ever."""
    client = session_module.current()
    x = gt.ones(3)
    client.hold()  # the timer shall not send meanwhile

    def fail() -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(client, "flush_ready", fail)
        client.next_flush = 0
        with pytest.raises(KeyboardInterrupt):
            _ = x + 1
    gc.collect()
    issued = [one.result for one in client._pending if isinstance(one, Op)]
    client.release()
    assert [one for one in client._pending if one in issued] == issued[-1:]
    assert x.tolist() == [1, 1, 1]
