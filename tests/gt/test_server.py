"""Servers and workers as processes: how they start, stop, fail and come back."""

import os
import re
import signal
import socket
import struct
import time
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
import zmq

import gt
from gt.client import Client
from gt.client.connection import RemoteConnection
from gt.errors import ConnectionLost, WorkerError
from gt.stream.instructions import ArrayData, CreateTensor, Op
from gt.transport import protocol
from gt.transport.connection import endpoint
from tests.gt.helpers.servers import Cluster, connect, eventually, is_alive


@pytest.fixture
def empty() -> Iterator[Cluster]:
    """A place for a server, and nothing running yet."""
    running = Cluster()
    yield running
    running.stop()


@pytest.fixture
def running(empty: Cluster) -> Cluster:
    """A server and a worker."""
    empty.start_server()
    empty.start_worker()
    return empty


def works(client: Client) -> bool:
    return client.fetch(client.create(np.ones(2))).tolist() == [1, 1]


# --- the command lines ---


@pytest.mark.parametrize("module", ["gt.server", "gt.worker"])
def test_help_names_the_flags(empty: Cluster, module: str):
    process = empty.run("-m", module, "--help")
    assert process.ends() == 0
    for flag in ("-p", "--port", "--host"):
        assert flag in process.output


def test_both_print_a_ready_line_and_stop_cleanly_on_ctrl_c(empty: Cluster):
    server = empty.start_server()
    worker = empty.start_worker("--id", "mine")
    assert f"[gt] server ready on 127.0.0.1:{empty.port}" in server.output
    assert f"[gt] mine (numpy) is ready, working for 127.0.0.1:{empty.port}" in worker.output
    assert worker.interrupt() == 0
    assert "Traceback" not in worker.output
    server.says("mine left")
    assert server.interrupt() == 0
    assert server.output.endswith("[gt] server stopped\n")
    assert "Traceback" not in server.output


def test_a_taken_port_is_refused_politely(empty: Cluster):
    with socket.create_server(("127.0.0.1", empty.port)):
        server = empty.run("-m", "gt.server", "-p", str(empty.port))
        assert server.ends() == 1
    expected = f"[gt] cannot listen on 127.0.0.1:{empty.port}: something else listens there\n"
    assert server.output == expected


def test_a_worker_without_a_server_gives_up_politely(empty: Cluster):
    worker = empty.start_worker("--timeout", "0.5", ready=False)
    assert worker.ends() == 1
    assert worker.output == f"[gt] no server answers at 127.0.0.1:{empty.port} within 0.5 s\n"


@pytest.mark.parametrize("arguments", [("-p", "0"), ("-p", "70000"), ("-p", "many")])
@pytest.mark.parametrize("module", ["gt.server", "gt.worker"])
def test_a_port_that_is_none_is_refused(empty: Cluster, module: str, arguments: tuple[str, ...]):
    process = empty.run("-m", module, *arguments)
    assert process.ends() == 2
    assert "usage:" in process.output


def test_two_workers_of_one_name_are_one_too_many(empty: Cluster):
    empty.start_server()
    empty.start_worker("--id", "twin")
    second = empty.start_worker("--id", "twin", ready=False)
    assert second.ends() == 1
    assert "there is a worker called twin already" in second.output


def test_an_engine_that_is_not_there_is_refused_with_the_choices(empty: Cluster):
    process = empty.run("-m", "gt.worker", "--engine", "abacus")
    assert process.ends() == 2
    assert re.search(r"invalid choice: 'abacus'.*jax.*numpy.*pytorch", process.output)


def test_simple_launch_without_a_test_runs_until_ctrl_c(empty: Cluster):
    system = empty.run("simple_launch.py", "--no-test", "-p", str(empty.port), "--engine", "numpy")
    system.says("is ready")
    test = empty.run("test_simple.py", empty.address)
    assert (test.ends(), test.output.splitlines()[-1]) == (0, "ok")
    assert system.interrupt() == 0
    assert "Traceback" not in system.output


# --- coming and going ---


def test_a_worker_may_start_before_the_server(empty: Cluster):
    worker = empty.start_worker(ready=False)
    time.sleep(0.5)
    empty.start_server()
    worker.says("is ready")
    client = connect(empty)
    assert works(client)
    client.close()


def test_a_client_may_come_before_the_worker(empty: Cluster):
    empty.start_server()
    client = connect(empty)
    x = client.create(np.ones(2))
    client.flush()
    empty.start_worker()
    assert client.fetch(x).tolist() == [1, 1]
    client.close()


def test_without_any_worker_a_fetch_says_so_in_time(empty: Cluster):
    empty.start_server()
    client = connect(empty)
    x = client.create(np.ones(2))
    start = time.monotonic()
    with pytest.raises(WorkerError, match=r"no worker is connected.*python -m gt\.worker"):
        client.fetch(x)
    assert time.monotonic() - start < 15
    empty.start_worker()
    with pytest.raises(WorkerError, match="no worker is connected"):
        client.fetch(x)  # it was given up, and says why
    assert works(client), "new work goes to the worker that has come"
    client.close()


def test_connecting_where_nobody_listens_is_one_clear_error(empty: Cluster):
    start = time.monotonic()
    expected = f"no server answers at 127.0.0.1:{empty.port}.*python -m gt.server -p {empty.port}"
    with pytest.raises(ConnectionLost, match=expected):
        RemoteConnection(empty.address, timeout=0.5)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":", "localhost:http", "localhost:0", ""])
def test_an_address_that_is_none_is_refused_at_once(address: str):
    with pytest.raises(ValueError, match="an address is host:port, as in localhost:12345"):
        gt.connect(address)


def test_a_worker_that_dies_is_an_error_at_the_next_fetch_and_the_next_worker_takes_over(running: Cluster):
    client = connect(running)
    old = client.create(np.ones(2))
    assert client.fetch(old).tolist() == [1, 1]
    running.processes[1].kill()
    start = time.monotonic()
    with pytest.raises(WorkerError, match="worker_0 is gone, and its tensors with it"):
        eventually(lambda: client.fetch(old) is None)
    assert time.monotonic() - start < 5
    dependent = client.next_id()
    client.emit(Op(dependent, "add", (old, old), None, 0))
    running.start_worker()
    with pytest.raises(WorkerError, match="worker_0 is gone"):
        client.fetch(dependent)
    assert works(client)
    client.close()


def test_a_worker_that_dies_while_it_computes_is_an_error_for_who_waits(running: Cluster):
    client = connect(running)
    big = client.create(np.ones((1500, 1500)))
    result = big
    for _ in range(20):
        product = client.next_id()
        client.emit(Op(product, "matmul", (big, result), None, 0))
        result = product
    client.flush()
    time.sleep(0.3)
    running.processes[1].popen.send_signal(signal.SIGKILL)
    with pytest.raises(WorkerError, match="worker_0 is gone"):
        client.fetch(result)
    client.close()


def test_a_worker_that_hangs_counts_as_gone(running: Cluster):
    client = connect(running)
    x = client.create(np.ones(2))
    assert client.fetch(x) is not None
    os.kill(running.processes[1].pid, signal.SIGSTOP)
    start = time.monotonic()
    with pytest.raises(WorkerError, match="worker_0 is gone"):
        client.fetch(x)
    assert time.monotonic() - start < 12
    client.close()
    os.kill(running.processes[1].pid, signal.SIGKILL)


def test_a_server_that_dies_is_an_error_at_the_next_fetch(running: Cluster):
    client = connect(running)
    x = client.create(np.ones(2))
    assert client.fetch(x) is not None
    running.processes[0].kill()
    start = time.monotonic()
    with pytest.raises(ConnectionLost, match=f"the server at {running.address} went away"):
        client.fetch(x)
    assert time.monotonic() - start < 5
    client.close()


def test_a_restarted_server_finds_its_workers_again_and_old_clients_are_told(running: Cluster):
    client = connect(running)
    x = client.create(np.ones(2))
    assert client.fetch(x) is not None
    server, worker = running.processes
    server.kill()
    running.start_server()
    eventually(lambda: worker.read().count("is ready") == 2)
    with pytest.raises(ConnectionLost, match="went away"):
        client.fetch(x)
    again = connect(running)
    assert works(again)
    again.close()
    client.close()


def test_a_server_that_is_there_but_does_not_answer_is_given_up_in_time(running: Cluster, monkeypatch):
    monkeypatch.setenv("GT_TIMEOUT", "1")
    client = connect(running)
    x = client.create(np.ones(2))
    assert client.fetch(x) is not None
    os.kill(running.processes[0].pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        with pytest.raises(ConnectionLost, match=r"has not answered within 1 s, .* set GT_TIMEOUT"):
            client.fetch(x)
        assert time.monotonic() - start < 10
    finally:
        os.kill(running.processes[0].pid, signal.SIGCONT)
    client.close()


# --- what does not belong on the port ---


def raw(running: Cluster) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=10)


def greeting() -> bytes:
    """What a ZeroMQ peer says first."""
    return b"\xff" + b"\0" * 8 + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" * 32


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
    "zeros": bytes(10_000),
    "random": np.random.default_rng(0).bytes(10_000),
    "a truncated greeting": greeting()[:20],
    "a greeting, then garbage": greeting() + np.random.default_rng(1).bytes(1000),
    "an oversized message": greeting() + b"\x02" + struct.pack(">Q", 1 << 60) + b"x" * 1000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_bytes_on_the_port_disturb_nobody(running: Cluster, name: str):
    client = connect(running)
    assert works(client)
    server = running.processes[0]
    for count in range(1, 4):
        with raw(running) as stranger:
            stranger.sendall(GARBAGE[name])
            time.sleep(0.05)
        eventually(lambda count=count: len(server.read().splitlines()) == 2 + count, 5, "one line each")
    said = server.output.splitlines()[2:]
    assert all("refused an unknown peer" in line or "ended without a hello" in line for line in said), said
    assert works(client)
    newcomer = connect(running)
    assert works(newcomer)
    newcomer.close()
    client.close()
    assert running.processes[0].popen.poll() is None


class Stranger:
    """Speaks ZeroMQ, and says what it likes."""

    def __init__(self, running: Cluster) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(endpoint(running.address))

    def ask(self, *parts: bytes) -> protocol.ToClient:
        self.socket.send_multipart(parts)
        return self.read()

    def read(self) -> protocol.ToClient:
        while True:
            assert self.socket.poll(5000), "the server did not answer"
            answer = protocol.decode_by_client(self.socket.recv_multipart()[0])
            if not isinstance(answer, protocol.DirectReads):  # which nobody asks for
                return answer

    def __enter__(self) -> "Stranger":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.context.term()


HELLO = protocol.encode(protocol.Hello(protocol.VERSION, "", 0))
whole = protocol.encode(
    protocol.Batch(1, [Op(0, "full", (), {"shape": [2], "value": 1, "dtype": "float32"}, 0)])
)
NONSENSE = {
    "not a message": b"garbage",
    "empty": b"",
    "a pickle": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "another type": msgspec.msgpack.encode({"op": "add"}),
    "truncated": whole[:-3],
    "an unknown tensor": protocol.encode(protocol.Batch(1, [Op(1, "add", (5, 6), None, 0)])),
    "a worker's message": protocol.encode(protocol.Done(0, 0.0, [], [])),
    "a second hello": HELLO,
    "a log to write": protocol.encode(protocol.FollowLog("/tmp/gt-not-mine.log")),
    "deeply nested": b"\x91" * 100_000,
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_message_that_makes_no_sense_is_refused_and_disturbs_nobody(running: Cluster, name: str):
    client = connect(running)
    with Stranger(running) as stranger:
        assert isinstance(stranger.ask(HELLO), protocol.Welcome)
        answer = stranger.ask(NONSENSE[name])
        assert isinstance(answer, protocol.Refused), answer
        assert answer.error
    lines = running.processes[0].says("refused c2").splitlines()
    assert len([line for line in lines if "refused" in line]) == 1
    assert works(client)
    client.close()


def test_a_wrong_protocol_version_is_refused_with_both_versions(running: Cluster):
    with Stranger(running) as stranger:
        answer = stranger.ask(protocol.encode(protocol.Hello(99, "", 0)))
    assert isinstance(answer, protocol.Refused)
    spoken = f"protocol version {protocol.VERSION}"
    assert f"{spoken}, and this peer speaks 99: install the same release" in answer.error
    running.processes[0].says(f"refused an unknown peer: it speaks {spoken}")


def test_a_client_or_worker_of_another_version_is_told_so(running: Cluster, monkeypatch):
    spoken = f"protocol version {protocol.VERSION}"
    monkeypatch.setattr(protocol, "VERSION", 99)
    expected = rf"refused this client: it speaks {spoken}, .* speaks 99"
    with pytest.raises(ConnectionLost, match=expected):
        connect(running)
    code = (
        "import sys; from gt.transport import protocol; protocol.VERSION = 99; sys.argv = sys.argv[1:];"
        "from gt.worker.__main__ import main; main()"
    )
    worker = running.run("-c", code, "gt.worker", "-p", str(running.port), "--engine", "numpy")
    assert worker.ends() == 1
    assert worker.output.count("\n") == 1
    assert f"refused this worker: it speaks {spoken}, and this peer speaks 99" in worker.output


def test_a_batch_before_any_hello_is_refused(running: Cluster):
    with Stranger(running) as stranger:
        answer = stranger.ask(whole)
    assert isinstance(answer, protocol.Refused)
    assert "was the server restarted?" in answer.error


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (ArrayData((4,), "float32", b"short"), "an array of 16 bytes came with 5"),
        (ArrayData((4,), "float33", b"short"), "no dtype is called 'float33'"),
        (ArrayData((4,), "float32", 3), "no frame 3"),
        (ArrayData((-4,), "float32", b""), "out of bounds"),
        (ArrayData((1 << 60,), "float32", b""), "out of bounds"),
        (ArrayData((4,), "float32", 0, "../../etc/passwd"), "no shared memory of ours"),
        (ArrayData((4,), "float32", 0, f"gt-1-{'0' * 16}-{'0' * 32}"), "cannot be read"),
    ],
)
def test_an_array_that_is_not_what_it_says_fails_that_tensor_only(
    running: Cluster, array: ArrayData, error: str
):
    client = connect(running)
    bad = client.next_id()
    client.emit(CreateTensor(bad, array))
    with pytest.raises(WorkerError, match=error):
        client.fetch(bad)
    assert works(client)
    client.close()


def test_no_pickle_is_imported_anywhere_in_gt():
    from pathlib import Path

    sources = [path.read_text() for path in Path(gt.__file__).parent.rglob("*.py")]
    assert not [
        source for source in sources if re.search(r"^\s*(import|from) (pickle|marshal|dill)", source, re.M)
    ]


# --- processes of the program's own ---

PARENT = """
import gt, os, sys, time
gt.init(workers=2)
print((gt.ones(2) + 1).tolist(), flush=True)
pids = [stats["pid"] for stats in gt.debug.get_worker_stats().values()]
print("pids", gt.debug.get_dispatcher_stats()["pid"], *pids, flush=True)
{then}
"""


@pytest.mark.parametrize("how", ["returns", "raises", "exits at once", "killed"])
def test_local_processes_end_with_the_program(empty: Cluster, how: str):
    then = {
        "returns": "",
        "raises": "1 / 0",
        "exits at once": "os._exit(4)",
        "killed": "time.sleep(60)",
    }[how]
    program = empty.run("-c", PARENT.format(then=then))
    program.says("pids")
    pids = [int(pid) for pid in program.output.split("pids")[1].split()[:3]]
    if how == "killed":
        assert all(map(is_alive, pids))
        program.popen.send_signal(signal.SIGKILL)
    program.popen.wait(20)
    eventually(lambda: not any(map(is_alive, pids)), seconds=5, what=f"{pids} end")


def test_gt_workers_starts_processes_and_ctrl_c_ends_them(empty: Cluster):
    code = (
        "import gt, time; print((gt.ones(2) + 1).tolist(), len(gt.debug.get_worker_stats()), "
        "[s['pid'] for s in gt.debug.get_worker_stats().values()][0], flush=True); time.sleep(60)"
    )
    program = empty.run("-c", code, GT_WORKERS="2")
    program.says("[2.0, 2.0] 2 ")
    pid = int(program.output.split()[-1])
    program.interrupt()
    eventually(lambda: not is_alive(pid), seconds=5)


@pytest.mark.parametrize("value", ["0", "-1", "two"])
def test_gt_workers_that_is_no_number_is_an_error(empty: Cluster, value: str):
    program = empty.run("-c", "import gt; gt.ones(1)", GT_WORKERS=value)
    assert program.ends() == 1
    assert f"GT_WORKERS is how many worker processes to start, and this is '{value}'" in program.output


def test_servers_are_silent_for_a_program_unless_it_asks(empty: Cluster):
    quiet = empty.run("-c", "import gt; gt.init(workers=1); print(gt.ones(1).item())")
    assert (quiet.ends(), quiet.output) == (0, "1.0\n")
    loud = empty.run("-c", "import gt; gt.init(workers=1); print(gt.ones(1).item())", GT_VERBOSE="1")
    assert loud.ends() == 0
    assert "server ready on ipc://" in loud.output


def test_shared_memory_is_gone_when_everybody_is(empty: Cluster):
    from gt.transport.shared_memory import FOLDER

    code = (
        "import gt, numpy as np, os; gt.init(workers=1);"
        "x = gt.from_numpy(np.ones(1_000_000)); y = x.numpy();"
        "print(os.getpid(), gt.debug.get_worker_stats()['worker_0']['pid'])"
    )
    program = empty.run("-c", code)
    assert program.ends() == 0
    for pid in program.output.split():
        assert not list(FOLDER.glob(f"gt-{pid}-*"))


def test_shared_memory_of_a_killed_client_is_given_back(running: Cluster):
    from gt.transport.shared_memory import FOLDER

    code = (
        f"import gt, numpy as np, time; gt.connect('{running.address}');"
        "x = gt.from_numpy(np.ones(1_000_000)); y = x.numpy(); print('there', flush=True); time.sleep(60)"
    )
    program = running.run("-c", code)
    program.says("there")
    assert list(FOLDER.glob(f"gt-{program.pid}-*"))
    program.kill()
    eventually(lambda: not list(FOLDER.glob(f"gt-{program.pid}-*")), seconds=2)
