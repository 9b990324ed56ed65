"""Interrupted work, by Ctrl-C, a fork, a full disk or a closed connection, leaves a program intact."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.errors import ConnectionLost, WorkerError
from gt.server.embedded import LocalServer
from tests.gt.helpers.servers import Cluster
from tests.programs import TIMEOUT, run_python


def test_a_program_continues_after_an_interrupt_in_the_middle_of_work():
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
        time.sleep(60)
    except KeyboardInterrupt:
        broken += 1
print(broken, gt.ones(3).tolist(), (x[0, 0] + 1).item())
try:
    y.sum().item()
except gt.errors.WorkerError as error:
    print(error)
"""
    said = run_python("-c", code).stdout.splitlines()
    assert said[0] == "2 [1.0, 1.0, 1.0] 2.0"
    # The interrupt hits the work itself, or the main thread while another one does the work.
    assert all("interrupted by KeyboardInterrupt" in line for line in said[1:])


def test_work_that_is_interrupted_fails_and_the_rest_continues(server: LocalServer, monkeypatch):
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
gt.connect("{running.address}", timeout={TIMEOUT})
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


def test_using_tensors_of_a_closed_connection_is_an_error(monkeypatch: pytest.MonkeyPatch):
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
    with pytest.raises(ValueError, match="no engine is called 'abacus'; there are jax, numpy, pytorch"):
        gt.init(workers=workers, engine="abacus")


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
    done = run_python("-W", "ignore", "-c", code)
    assert done.stdout == "0 [1.0, 1.0]\n"


def test_a_full_disk_ends_the_log_and_not_the_program(monkeypatch, server: LocalServer, capsys):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    monkeypatch.setenv("GT_INSTRUCTION_LOG", "/dev/full")
    for _ in range(3):
        assert (gt.ones(2) + 1).tolist() == [2, 2]
    assert capsys.readouterr().err.count("cannot write the instruction log GT_INSTRUCTION_LOG=/dev/full") == 1
