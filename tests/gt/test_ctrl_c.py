"""Ctrl-C at any moment: KeyboardInterrupt is raised, and the program may go on with all that it has."""

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import Client
from gt.client import session as session_module
from gt.errors import WorkerError
from gt.interrupts import deferred, interruptible
from gt.server.embedded import LocalConnection, LocalServer
from tests.programs import run_python

PRESSES = 30

LOOP = """
import os, random, signal, threading, time
import gt

gt.init({start})
random.seed({presses})
kept = gt.tensor([0.0, 1.0, 2.0])
runs, pressing = False, threading.Event()

def press():
    while True:
        pressing.wait()
        pressing.clear()
        time.sleep(random.uniform(0.0005, 0.01))
        while runs:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)  # once more: Python ignores what is raised in a destructor

threading.Thread(target=press, daemon=True).start()

def work():
    y, n = kept, 0
    while True:
        for _ in range(6):
            y = y * 0.5 + kept
        n += 1
        if n % 3 == 0:
            y.sum().item()

for n in range({presses}):
    try:
        runs = True
        pressing.set()
        work()
    except KeyboardInterrupt:
        runs = False
    assert (gt.ones(2) + n).tolist() == [n + 1, n + 1], n
    assert kept.tolist() == [0, 1, 2], n
print("went on")
"""


@pytest.mark.parametrize("start", ["engine='numpy'", "workers=1, engine='numpy'"])
def test_a_program_goes_on_after_ctrl_c_at_any_moment(start: str):
    done = run_python("-c", LOOP.format(start=start, presses=PRESSES))
    assert done.stdout == "went on\n"


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_it_is_raised_at_the_end_of_the_outermost_section():
    passed = []

    def sections() -> None:
        with deferred:
            with deferred:
                press()
                passed.append("inside")
            passed.append("outside")

    with pytest.raises(KeyboardInterrupt):
        sections()
    assert passed == ["inside", "outside"]
    with deferred:
        pass  # it is raised once
    with pytest.raises(KeyboardInterrupt):
        press()


def test_an_error_of_the_section_is_the_context():
    def section() -> None:
        with deferred:
            press()
            raise LookupError

    with pytest.raises(KeyboardInterrupt) as found:
        section()
    assert isinstance(found.value.__context__, LookupError)


def test_it_is_raised_at_once_in_a_function_that_allows_it():
    passed = []

    @interruptible
    def work() -> None:
        press()
        passed.append("after it")

    with deferred:
        with pytest.raises(KeyboardInterrupt):
            work()
        passed.append("in the section")
    assert passed == ["in the section"]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None], ids=["ignored", "own"])
def test_a_programs_own_handler_is_respected(handler: Any):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with deferred:
            press()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_on_other_threads_nothing_is_deferred():
    handler = signal.getsignal(signal.SIGINT)
    inside, go_on = threading.Event(), threading.Event()

    def section() -> None:
        with deferred:
            inside.set()
            go_on.wait()

    thread = threading.Thread(target=section)
    thread.start()
    inside.wait()
    assert signal.getsignal(signal.SIGINT) is handler
    with pytest.raises(KeyboardInterrupt):
        press()
    go_on.set()
    thread.join()


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    server = LocalServer("numpy")
    client = Client(LocalConnection(server))
    monkeypatch.setattr(session_module, "_current", client)
    yield server
    client.close()


def test_work_inside_the_program_is_broken_off_between_two_ops(
    embedded: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    x = gt.ones(3)
    assert (x.exp() * 0 + 1).tolist() == [1, 1, 1]
    calls = []

    def pressed(value: Any) -> Any:
        calls.append("exp")
        if len(calls) == 2:
            press()
        return np.exp(value)

    monkeypatch.setitem(embedded.worker.engine.functions, "exp", pressed)
    client = session_module.current()
    client.hold()  # the timer shall not send meanwhile
    made = [(x + n).exp() for n in range(5)]
    with pytest.raises(KeyboardInterrupt):
        made[-1].tolist()
    client.release()
    assert len(calls) == 2
    assert made[0].tolist() == pytest.approx([np.e] * 3)
    with pytest.raises(WorkerError, match="interrupted by KeyboardInterrupt"):
        made[1].tolist()
    assert (x + 1).tolist() == [2, 2, 2]
