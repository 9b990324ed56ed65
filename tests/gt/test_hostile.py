"""What a hostile or unlucky client sends hurts itself only; what is broken off can be gone on with."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.dispatcher import Dispatcher
from gt.errors import ConnectionLost, WorkerError
from gt.server.embedded import LocalServer
from gt.stream.instructions import ArrayData, CreateTensor, GetData, Lost, Op, Site
from gt.transport import protocol, shared_memory
from tests.gt.helpers.servers import Cluster, cluster, connect, eventually, resident_bytes
from tests.gt.test_server import HELLO, Stranger
from tests.programs import run_python


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


def works(running: Cluster) -> bool:
    client = connect(running)
    try:
        return client.fetch(client.create(np.ones(2))).tolist() == [1, 1]
    finally:
        client.close()


def op(result: int, name: str, inputs: tuple[int, ...], attrs: dict[str, Any] | None) -> Op:
    return Op(result, name, inputs, attrs, 0)


@pytest.mark.parametrize(
    "attrs", [{"where": False}, {"out": 1}, {"casting": "unsafe"}, {"order": "F", "x": 1}]
)
def test_an_attribute_that_an_op_does_not_have_is_refused(running: Cluster, attrs: dict[str, Any]):
    """`numpy.exp(x, where=False)` would give whatever was in the memory before, also another's numbers."""
    client = connect(running)
    x = client.create(np.ones(10_000))
    y = client.next_id()
    client.emit(op(y, "exp", (x,), attrs))
    with pytest.raises(WorkerError, match=f"exp has no attribute .*{next(iter(attrs))}"):
        client.fetch(y)
    assert client.fetch(x)[0] == 1
    client.close()


@pytest.mark.parametrize(
    "array",
    [
        ArrayData((1,) * 65, "float32", b"abcd"),
        ArrayData((0, 2**62), "float32", b""),
        ArrayData((2**62,) * 3, "float32", b""),
        ArrayData((2**62,) * 100_000, "float32", b""),
    ],
    ids=["too many dimensions", "none of very many", "too large", "a product that takes for ever"],
)
def test_an_impossible_array_fails_that_tensor_and_takes_no_time(running: Cluster, array: ArrayData):
    client = connect(running)
    client.emit(CreateTensor(client.next_id(), array))
    start = time.monotonic()
    with pytest.raises(WorkerError, match="out of bounds"):
        client.fetch(0)
    assert time.monotonic() - start < 5
    client.close()
    assert works(running)


def test_an_empty_piece_of_shared_memory_fails_that_tensor(running: Cluster):
    name = f"gt-{os.getpid()}-{'a' * 16}-{'b' * 32}"
    (shared_memory.FOLDER / name).touch()
    try:
        client = connect(running)
        client.emit(CreateTensor(client.next_id(), ArrayData((4,), "float32", 0, name)))
        with pytest.raises(WorkerError, match="cannot be read"):
            client.fetch(0)
        client.close()
    finally:
        (shared_memory.FOLDER / name).unlink()
    assert works(running)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_attributes_nested_without_end_are_refused(running: Cluster):
    with Stranger(running) as stranger:
        assert isinstance(stranger.ask(HELLO), protocol.Welcome)
        deep = protocol.Batch(1, [op(0, "full", (), {"shape": nested(900)})])
        assert isinstance(stranger.ask(protocol.encode(deep)), protocol.Refused)
    assert works(running)


def test_a_process_number_that_is_none_is_refused(running: Cluster):
    with Stranger(running) as stranger:
        hello = protocol.encode(protocol.Hello(protocol.VERSION, shared_memory.host(), 2**40))
        assert isinstance(stranger.ask(hello), protocol.Refused)
    assert works(running)


def test_wild_instructions_hurt_nobody(running: Cluster):
    """Ops that are not there, results that are, tensors freed twice, text in place of numbers."""
    client = connect(running)
    x = client.create(np.ones(3))
    wild = [
        op(1, "no_such_op", (x,), None),
        op(2, "add", (x,), None),
        op(3, "sum", (x,), {"dim": "all", "keepdim": 3}),
        op(4, "reshape", (x,), {"shape": [-1, -1, None]}),
        op(5, "full", (), {"shape": [2**40], "value": 1, "dtype": "float32"}),
        op(6, "full", (), {"shape": [2], "value": 1, "dtype": "__class__"}),
        op(7, "cast", (x,), {"dtype": "load"}),
        op(8, "einsum", (x,), {"equation": "i" * 1000 + "->"}),
        op(9, "getitem", (x,), {"index": [[5, 1, 0]]}),
        op(x, "add", (x, x), None),
    ]
    for instruction in wild:
        client.emit(instruction)
    for number in range(1, 10):
        with pytest.raises(WorkerError):
            client.fetch(number)
    assert client.fetch(x).tolist() == [2, 2, 2]
    client.close()
    assert works(running)


def test_two_connections_of_one_program_do_not_disturb_each_others_memory(running: Cluster):
    data = np.ones(100_000)
    for _ in range(5):
        first, second = connect(running), connect(running)
        ids = [client.create(data * n) for n, client in enumerate((first, second))]
        assert first.fetch(ids[0])[5] == 0
        first.close()
        time.sleep(0.15)  # the server has noticed
        assert second.fetch(second.create(data * 7))[5] == 7
        assert second.fetch(ids[1])[5] == 1
        second.close()


def test_a_worker_keeps_no_memory_of_clients_that_left(running: Cluster):
    def segments(pid: int) -> int:
        return len(list(shared_memory.FOLDER.glob(f"gt-{pid}-*")))

    observer = connect(running)
    (pid,) = (stats["pid"] for stats in observer.get_stats().values())
    kept = []
    for _ in range(5):
        client = connect(running)
        kept.append(client.fetch(client.create(np.ones(500_000))))  # an array that outlives its client
        client.close()
    eventually(lambda: segments(pid) <= 2, seconds=5, what="segments are given back")

    before = resident_bytes(pid)
    client = connect(running)
    client.fetch(client.create(np.ones(16_000_000)))[0]
    assert resident_bytes(pid) - before > 100 << 20
    client.close()
    eventually(lambda: resident_bytes(pid) - before < 40 << 20, seconds=2, what="an upload is freed")
    observer.close()
    assert all(array[0] == 1 for array in kept)


# --- broken off ---


def test_an_interrupt_in_the_middle_of_work_leaves_a_program_that_goes_on():
    code = """
import gt, os, signal, threading, time
x = gt.ones(1500, 1500)
x.sum().item()
broken = 0
for _ in range(2):
    y = x
    for _ in range(40):
        y = y @ x * 0.001
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        y.sum().item()
        time.sleep(1)
    except KeyboardInterrupt:
        broken += 1
print(broken, gt.ones(3).tolist(), (x[0, 0] + 1).item())
try:
    y.sum().item()
except gt.errors.WorkerError as error:
    print(error)
"""
    said = run_python("-c", code, environment={"OMP_NUM_THREADS": "1"}).stdout.splitlines()
    assert said[0] == "2 [1.0, 1.0, 1.0] 2.0"
    # The interrupt hits the work itself, or the main thread while another one does the work.
    assert all("interrupted by KeyboardInterrupt" in line for line in said[1:])


def test_work_that_is_broken_off_fails_and_the_rest_goes_on(server: LocalServer, monkeypatch):
    x = gt.ones(3)
    assert x.tolist() == [1, 1, 1]
    functions: Any = server.worker.engine.functions
    before = functions["exp"]

    def interrupted(x: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(functions, "exp", interrupted)
    (session,) = server.dispatcher.sessions.values()
    session.cost = 1e-7  # all three are one chunk, however slow the machine has been so far
    with server_lock():
        done, broken, after = x + 1, x.exp(), x + 2
        with pytest.raises(KeyboardInterrupt):
            broken.tolist()
    monkeypatch.setitem(functions, "exp", before)
    assert done.tolist() == [2, 2, 2]
    for lost in (broken, after):
        with pytest.raises(WorkerError, match="interrupted by KeyboardInterrupt"):
            (lost + 1).tolist()
    assert (x.exp() > 2).tolist() == [True, True, True]


@contextlib.contextmanager
def server_lock() -> Iterator[None]:
    """Keeps the timer from doing the work that this thread is about to do."""
    from gt.client.session import current

    client = current()
    client.hold()
    try:
        yield
    finally:
        client.release()


def test_an_interrupt_while_waiting_for_room_loses_nothing(running: Cluster):
    code = f"""
import gt, os, signal, threading
gt.connect("{running.address}", timeout=20)
x = gt.ones(400, 400)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
y = x
try:
    while True:
        y = (y @ x) * 0.0025
except KeyboardInterrupt:
    pass
print(y[0, 0].item(), gt.ones(2).tolist(), x[0, 0].item())
"""
    assert run_python("-c", code).stdout == "1.0 [1.0, 1.0] 1.0\n"


def test_the_gradient_passed_to_backward_may_change_afterwards():
    w, g = gt.ones(3, requires_grad=True), np.ones(3, np.float32)
    (w * 2).backward(g)
    g[:] = 100
    assert w.grad is not None
    assert w.grad.tolist() == [2, 2, 2]


def test_tensors_of_a_closed_connection_say_so(monkeypatch: pytest.MonkeyPatch):
    from gt.client import session

    monkeypatch.setattr(session, "_current", None)
    x = gt.ones(2)
    gt.close()
    with pytest.raises(ConnectionLost, match="a connection that was closed, by close"):
        _ = x + 1
    with pytest.raises(ConnectionLost, match="a connection that was closed"):
        x.tolist()
    assert gt.ones(2).tolist() == [1, 1], "the next op starts anew"
    gt.close()


@pytest.mark.parametrize("workers", [None, 1])
def test_an_unknown_engine_is_refused_at_once(workers: int | None):
    start = time.monotonic()
    with pytest.raises(ValueError, match="no engine is called 'abacus'; there are jax, numpy, pytorch"):
        gt.init(workers=workers, engine="abacus")
    assert time.monotonic() - start < 2


def test_a_fork_while_work_is_being_done_leaves_both_sound():
    code = """
import gt, os, sys, time
x = gt.ones(600, 600)
x.sum().item()
y = x
for _ in range(60):
    y = y @ x * 0.0016
time.sleep(0.02)  # the stream is being worked on, by another thread
pid = os.fork()
value = round(y[0, 0].item(), 3)
if pid == 0:
    os._exit(0 if gt.ones(2).tolist() == [1, 1] else 1)
print(os.waitpid(pid, 0)[1], gt.ones(2).tolist())
"""
    done = run_python("-W", "ignore", "-c", code, environment={"OMP_NUM_THREADS": "1"})
    assert done.stdout == "0 [1.0, 1.0]\n"


def test_a_full_disk_ends_the_log_and_not_the_program(monkeypatch, server: LocalServer, capsys):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    monkeypatch.setenv("GT_INSTRUCTION_LOG", "/dev/full")
    for _ in range(3):
        assert (gt.ones(2) + 1).tolist() == [2, 2]
    assert capsys.readouterr().err.count("no instruction log: GT_INSTRUCTION_LOG=/dev/full") == 1


def test_a_client_cannot_forge_lines_of_the_log(monkeypatch, tmp_path: Path, server: LocalServer):
    log = tmp_path / "gt.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    from gt.client.session import current

    current().emit(Site(7, "mine.py:1\n   0.000s | #0000 | RECV | CLIENT c9 | forged"))
    gt.ones(1).tolist()
    assert not [
        line
        for line in log.read_text().splitlines()
        if line.startswith("   0.000s | #0000 | RECV | CLIENT c9")
    ]


# --- shares ---


class Recorder:
    """A client's link and a worker's link in one: takes what comes, and answers when told."""

    name = "w"

    def __init__(self) -> None:
        self.work: list[tuple[int, Any]] = []
        self.errors: dict[int, str] = {}

    def send(self, sequence: int, chunk: Any) -> None:
        self.work.append((sequence, chunk))

    def forget(self, client: str) -> None: ...
    def ack(self, sequence: int) -> None: ...
    def data(self, reply: Any) -> None: ...
    def refused(self, error: str) -> None: ...
    def failed(self, request: int, error: str, part: Any = None) -> None:
        self.errors[request] = error


def full(result: int) -> Op:
    return op(result, "full", (), {"shape": [1], "value": 1, "dtype": "float32"})


def test_a_newcomer_does_not_overtake_who_has_worked_for_long():
    dispatcher, link = Dispatcher(), Recorder()
    dispatcher.add_worker(link)
    old = dispatcher.connect(link)
    for number in range(50):
        dispatcher.receive(old, number, [full(number)])
        dispatcher.done(link.work.pop()[0], 60.0, [], [])  # an hour's work, alone
    new = dispatcher.connect(link)
    for number in range(200):
        dispatcher.receive(new, number, [full(number)])
    dispatcher.receive(old, 50, [full(50)])
    served = []
    while link.work:
        sequence, chunk = link.work.pop(0)
        served.append(chunk.session.name)
        dispatcher.done(sequence, 0.1, [], [])
    assert served.index(old) < 20, "its one instruction waits for a few of the newcomer's, not for all"


def test_what_cannot_be_sent_is_its_clients_fault_and_nobody_elses():
    class Refusing(Recorder):
        def send(self, sequence: int, chunk: Any) -> None:
            if any(isinstance(one, Op) and one.op == "cursed" for one in chunk.instructions):
                raise RecursionError("too deep")
            super().send(sequence, chunk)

    dispatcher, link = Dispatcher(), Refusing()
    dispatcher.add_worker(link)
    for _ in range(30):
        bad = dispatcher.connect(link)
        dispatcher.receive(bad, 1, [op(0, "cursed", (), None)])
        assert bad not in dispatcher.sessions
    good = dispatcher.connect(link)
    dispatcher.receive(good, 1, [full(0)])
    assert len(link.work) == 1


def test_a_tensor_that_went_with_its_worker_is_known_as_lost_though_it_was_freed():
    dispatcher, first, second = Dispatcher(), Recorder(), Recorder()
    dispatcher.add_worker(first)
    client = dispatcher.connect(first)
    dispatcher.receive(client, 1, [full(0)])
    dispatcher.done(first.work.pop()[0], 1.0, [], [])
    for number in range(40):  # more than fits the window: the rest waits in the queue
        dispatcher.receive(client, 2 + number, [op(number + 1, "add", (number, number), None), number])
    dispatcher.remove_worker("w", "w is gone")
    dispatcher.receive(client, 99, [GetData(5, 40)])
    assert first.errors == {5: "w is gone"}
    second.name = "v"
    dispatcher.add_worker(second)
    (_, chunk) = second.work[0]
    lost = next(one for one in chunk.instructions if isinstance(one, Lost))
    (later,) = {one.inputs[0] for one in second.work[1][1].instructions if isinstance(one, Op)} or {None}
    assert later in lost.tensors


def test_statistics_beside_other_threads(server: LocalServer):
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            x = gt.ones(2)
            for _ in range(50):
                x = x + 1

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            gt.debug.get_worker_stats()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
