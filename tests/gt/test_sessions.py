"""A program's session: when it ends or is replaced, the processes that it started end."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gt
from gt.client import Client
from gt.client import session as session_module
from gt.errors import ConnectionLost
from tests.gt.helpers.servers import Cluster, free_port


def own_processes() -> set[int]:
    """The servers and workers that this process has started and that still run."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has just ended
        if b"--parent" in words and words[words.index(b"--parent") + 1] == str(os.getpid()).encode():
            found.add(int(folder.name))
    return found


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A session with a server and two workers of its own."""
    monkeypatch.setattr(session_module, "_current", None)
    assert not own_processes()
    client = gt.init(workers=2, engine="numpy")
    assert len(own_processes()) == 3
    yield client
    gt.close()
    client.close()
    assert not own_processes()


def embedded(cluster: Cluster) -> None:
    gt.init(engine="numpy")


def elsewhere(cluster: Cluster) -> None:
    gt.connect(cluster.address)


@pytest.mark.parametrize("replace", [embedded, elsewhere])
def test_another_session_ends_the_processes_of_the_one_before(
    started: Client, pytorch_cluster: Cluster, replace: Callable[[Cluster], None]
):
    x = gt.ones(3)
    assert x.tolist() == [1, 1, 1]
    replace(pytorch_cluster)
    assert not own_processes()
    assert gt.ones(3).tolist() == [1, 1, 1]
    with pytest.raises(ConnectionLost, match="was closed"):
        _ = x + 1


def test_other_processes_take_the_place_of_those_before(started: Client):
    before = own_processes()
    gt.init(workers=1, engine="numpy")
    after = own_processes()
    assert len(after) == 2
    assert not before & after
    assert gt.ones(2).tolist() == [1, 1]


@pytest.mark.parametrize("how", ["gt.close()", "client.close()"])
def test_closing_ends_the_processes(started: Client, how: str):
    eval(how, {"gt": gt, "client": started})
    assert not own_processes()


def test_a_session_that_cannot_be_left_in_order_ends_its_processes_too(started: Client):
    """The server is gone, so the last batch cannot be sent."""
    x = gt.ones(3)
    assert x.tolist() == [1, 1, 1]
    for pid in own_processes():
        os.kill(pid, 9)
    _ = x + 1
    gt.init(engine="numpy")
    assert not own_processes()
    assert gt.ones(2).tolist() == [1, 1]


def test_a_session_continues_if_another_cannot_be_made(started: Client):
    x = gt.ones(3)
    before = own_processes()
    with pytest.raises(ConnectionLost, match="no server answers"):
        gt.connect(f"127.0.0.1:{free_port()}", timeout=0.2)
    with pytest.raises(ValueError, match="no engine is called"):
        gt.init(engine="abacus")
    assert own_processes() == before
    assert (x + 1).tolist() == [2, 2, 2]


def test_workers_that_do_not_start_leave_no_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_module, "_current", None)
    with pytest.raises(ConnectionLost, match="did not start"):
        gt.init(workers=1, engine="numpy", modifiers={"worker": ["gt:no_such_modifier"]})
    assert not own_processes()
