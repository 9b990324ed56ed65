"""Servers and workers as processes: how they start, stop, fail and come back."""

import os
import re
import signal
import socket
import time

import numpy as np
import pytest

import gt
from gt.client.connection import RemoteConnection
from gt.errors import ConnectionLost, WorkerError
from gt.stream.instructions import Op
from tests.gt.helpers.servers import Cluster, connect, eventually, works


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


def test_a_port_that_is_in_use_is_one_clear_error(empty: Cluster):
    with socket.create_server(("127.0.0.1", empty.port)):
        server = empty.run("-m", "gt.server", "-p", str(empty.port))
        assert server.ends() == 1
    expected = f"[gt] cannot listen on 127.0.0.1:{empty.port}: the address is in use\n"
    assert server.output == expected


def test_a_worker_without_a_server_ends_with_one_clear_error(empty: Cluster):
    worker = empty.start_worker("--timeout", "0.5", ready=False)
    assert worker.ends() == 1
    assert worker.output == f"[gt] no server answers at 127.0.0.1:{empty.port} within 0.5 s\n"


@pytest.mark.parametrize("arguments", [("-p", "0"), ("-p", "70000"), ("-p", "many")])
@pytest.mark.parametrize("module", ["gt.server", "gt.worker"])
def test_an_invalid_port_is_refused(empty: Cluster, module: str, arguments: tuple[str, ...]):
    process = empty.run("-m", module, *arguments)
    assert process.ends() == 2
    assert "usage:" in process.output


def test_two_workers_of_one_name_are_one_too_many(empty: Cluster):
    empty.start_server()
    empty.start_worker("--id", "twin")
    second = empty.start_worker("--id", "twin", ready=False)
    assert second.ends() == 1
    assert "a worker called twin is connected already" in second.output


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


def test_without_any_worker_a_fetch_is_an_error_in_time(empty: Cluster):
    empty.start_server()
    client = connect(empty)
    x = client.create(np.ones(2))
    with pytest.raises(WorkerError, match=r"no worker is connected.*python -m gt\.worker"):
        client.fetch(x)
    empty.start_worker()
    with pytest.raises(WorkerError, match="no worker is connected"):
        client.fetch(x)  # it was given up, and says why
    assert works(client), "new work goes to the worker that has come"
    client.close()


def test_connecting_to_a_port_without_a_server_is_one_clear_error(empty: Cluster):
    expected = f"no server answers at 127.0.0.1:{empty.port}.*python -m gt.server -p {empty.port}"
    with pytest.raises(ConnectionLost, match=expected):
        RemoteConnection(empty.address, timeout=0.5)


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":", "localhost:http", "localhost:0", ""])
def test_an_invalid_address_is_refused_at_once(address: str):
    with pytest.raises(ValueError, match="an address must be host:port, such as localhost:12345, but got"):
        gt.connect(address)


def test_a_worker_that_dies_is_an_error_at_the_next_fetch_and_the_next_worker_takes_over(running: Cluster):
    client = connect(running)
    old = client.create(np.ones(2))
    assert client.fetch(old).tolist() == [1, 1]
    running.processes[1].kill()
    with pytest.raises(WorkerError, match="worker_0 is gone, and its tensors are lost"):
        eventually(lambda: client.fetch(old) is None)
    dependent = client.next_id()
    client.emit(Op(dependent, "add", (old, old), None, 0))
    running.start_worker()
    with pytest.raises(WorkerError, match="worker_0 is gone"):
        client.fetch(dependent)
    assert works(client)
    client.close()


def test_a_worker_that_dies_while_it_computes_is_an_error_for_waiting_clients(running: Cluster):
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
    with pytest.raises(WorkerError, match="worker_0 is gone"):
        client.fetch(x)
    client.close()
    os.kill(running.processes[1].pid, signal.SIGKILL)


def test_a_server_that_dies_is_an_error_at_the_next_fetch(running: Cluster):
    client = connect(running)
    x = client.create(np.ones(2))
    assert client.fetch(x) is not None
    running.processes[0].kill()
    with pytest.raises(ConnectionLost, match=f"the server at {running.address} went away"):
        client.fetch(x)
    client.close()


def test_workers_rejoin_a_restarted_server_and_old_clients_get_an_error(running: Cluster):
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
        with pytest.raises(ConnectionLost, match=r"has not answered within 1 s, .* set GT_TIMEOUT"):
            client.fetch(x)
    finally:
        os.kill(running.processes[0].pid, signal.SIGCONT)
    client.close()
