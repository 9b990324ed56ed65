"""Reads that Ctrl-C or a timeout interrupts: late replies are dropped, with their shared memory."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import Client
from gt.client import session as session_module
from gt.errors import ConnectionLost
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.instructions import GetData
from gt.transport.shared_memory import FOLDER
from tests.gt.helpers.servers import Cluster, Process, cluster, connect, eventually
from tests.gt.helpers.threads import ThreadConnection, ThreadServer
from tests.programs import TIMEOUT

LARGE = 1 << 20
"""How many elements a tensor has that travels through shared memory."""


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def running(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster(workers=request.param) as running:
        yield running


@pytest.fixture
def client(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    client = connect(running)
    monkeypatch.setattr(session_module, "_current", client)
    yield client
    client.close()


@contextlib.contextmanager
def stopped(worker: Process) -> Iterator[None]:
    """A worker that does nothing for a while."""
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker.pid, signal.SIGCONT)


@contextlib.contextmanager
def interrupted(client: Client) -> Iterator[None]:
    """Ctrl-C is pressed once the question has been sent."""
    client.flush()
    before = client.connection.sent

    def press() -> None:
        eventually(lambda: client.connection.sent > before)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    thread.join()


@contextlib.contextmanager
def timed_out(client: Client) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GT_TIMEOUT", "0.2")
        with pytest.raises(ConnectionLost, match="has not answered"):
            yield


def segments(running: Cluster) -> int:
    """How many pieces of shared memory the workers have made."""
    return sum(len([*FOLDER.glob(f"gt-{process.pid}-*")]) for process in running.processes[1:])


def replies(client: Client) -> Any:
    return client.connection._replies  # type: ignore[attr-defined] - a connection's own


def nothing_is_left(client: Client) -> bool:
    """Whether all late replies have come and have been dropped."""
    return not replies(client).abandoned and len(replies(client)) == 0


@pytest.mark.parametrize("broken_off", [interrupted, timed_out])
def test_a_reply_that_comes_too_late_is_dropped_and_its_memory_used_again(
    running: Cluster, client: Client, broken_off: Callable[[Client], contextlib.AbstractContextManager[None]]
):
    x = gt.tensor(np.arange(LARGE, dtype=np.float32))
    expected = x.numpy().sum()
    for _ in range(2):
        assert x.numpy().sum() == expected
    before = segments(running)
    for _ in range(4):
        with stopped(running.processes[1]), broken_off(client):
            x.numpy()
        assert gt.ones(3).tolist() == [1, 1, 1]
        eventually(lambda: nothing_is_left(client))
        assert x.numpy().sum() == expected
    # The late reply took one more while another array of this test could still be in use.
    assert segments(running) <= before + len(running.processes[1:])


def test_a_late_reply_is_dropped_by_a_program_that_does_nothing_more(running: Cluster, client: Client):
    x = gt.tensor(np.arange(LARGE, dtype=np.float32))
    client.flush()
    with stopped(running.processes[1]):
        with interrupted(client):
            x.numpy()
        assert replies(client).abandoned  # the worker has not gone on yet
    eventually(lambda: nothing_is_left(client))


def test_statistics_that_come_too_late_are_dropped(running: Cluster, client: Client):
    assert gt.ones(3).tolist() == [1, 1, 1]
    with stopped(running.processes[1]), timed_out(client):
        client.get_stats()
    assert client.get_stats()
    eventually(lambda: nothing_is_left(client))


def test_a_request_that_was_interrupted_before_it_was_sent_is_not_sent_later(monkeypatch: pytest.MonkeyPatch):
    server = LocalServer("numpy")
    client = Client(LocalConnection(server))
    try:
        monkeypatch.setattr(session_module, "_current", client)
        x = gt.ones(3)
        assert x.tolist() == [1, 1, 1]
        with monkeypatch.context() as patch:

            def interrupt(batch: Any) -> None:
                raise KeyboardInterrupt

            client.hold()  # the timer shall not send meanwhile
            patch.setattr(client.connection, "send", interrupt)
            y = x + 1
            with pytest.raises(KeyboardInterrupt):
                y.tolist()
            assert not [one for one in client._pending if type(one) is GetData]
        client.release()
        assert y.tolist() == [2, 2, 2]
        assert nothing_is_left(client)
    finally:
        client.close()


@pytest.mark.parametrize("kind", ["embedded", "threads"])
def test_work_inside_the_program_that_is_broken_off_leaves_no_reply(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    if kind == "embedded":
        client = Client(LocalConnection(server := LocalServer("numpy")))
        workers = [server.worker]
    else:
        client = Client(ThreadConnection(threads := ThreadServer(2, "numpy", shard_threshold=4)))
        workers = [link.worker for link in threads.links]
    try:
        monkeypatch.setattr(session_module, "_current", client)
        x = gt.ones(8)
        assert x.exp().shape == (8,)
        assert x.tolist() == [1] * 8
        waiting, go_on = threading.Event(), threading.Event()

        def interrupt(value: Any) -> Any:
            if kind == "embedded":
                raise KeyboardInterrupt
            waiting.set()
            assert go_on.wait(TIMEOUT)
            return np.exp(value)

        for worker in workers:
            monkeypatch.setitem(worker.engine.functions, "exp", interrupt)
        client.hold()
        y = x.exp()
        if kind == "embedded":
            with pytest.raises(KeyboardInterrupt):
                y.tolist()
        else:
            monkeypatch.setenv("GT_TIMEOUT", "0.1")
            with pytest.raises(ConnectionLost, match="no answer"):
                y.tolist()
            monkeypatch.delenv("GT_TIMEOUT")
        client.release()
        go_on.set()
        assert x.tolist() == [1] * 8
        assert nothing_is_left(client)
    finally:
        client.close()
