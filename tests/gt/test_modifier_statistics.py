"""Every client has modifiers of its own, whose statistics it can read, and which may be wrong."""

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gt
from gt.client import Client, session
from gt.errors import WorkerError
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.instructions import Op
from gt.transport import protocol
from tests.gt.helpers.renaming import Rename
from tests.gt.helpers.servers import Cluster, connect
from tests.gt.helpers.strangers import HELLO, Stranger
from tests.gt.helpers.stream_modifiers import BAD_STATS, NumpyStats


@pytest.fixture(autouse=True)
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(session, "_current", None)
    yield
    gt.close()


class Counts:
    """Counts the ops it sees."""

    def __init__(self) -> None:
        self.seen = 0

    def process(self, cmd: Any) -> Iterator[Any]:
        self.seen += isinstance(cmd, Op)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {"seen": self.seen}


@pytest.mark.parametrize(
    "given",
    [lambda: Counts, lambda: Counts(), lambda: lambda: Counts(), lambda: f"{__name__}:Counts"],
    ids=["class", "instance", "factory", "name"],
)
@pytest.mark.parametrize("layer", ["dispatcher", "worker"])
def test_every_client_has_a_modifier_of_its_own(layer: str, given: Callable[[], Any]):
    server = LocalServer("numpy", **{f"{layer}_modifiers": [given()]})
    clients = [Client(LocalConnection(server)) for _ in range(3)]
    for count, client in enumerate(clients, 1):
        for _ in range(count):
            client.emit(Op(client.next_id(), "full", (), {"shape": [1], "value": 1, "dtype": "float32"}, 0))
        client.flush()
    found = []
    for client in clients:
        stats = client.get_dispatcher_stats() if layer == "dispatcher" else client.get_stats()["auto_worker"]
        found.append(stats["modifiers"])
    assert found == [{"Counts": {"seen": count}} for count in (1, 2, 3)]
    for client in clients:
        client.close()


def test_clients_of_one_server_have_modifiers_of_their_own():
    running = Cluster()
    try:
        running.start_server("--modifier", "tests.gt.helpers.stream_modifiers:DoublesProducts")
        running.start_worker("--modifier", "tests.gt.helpers.stream_modifiers:DoublesProducts")
        clients = [connect(running) for _ in range(2)]
        for count, client in enumerate(clients, 1):
            x = client.create(np.ones((2, 2)))
            for _ in range(count):
                y = client.next_id()
                client.emit(Op(y, "matmul", (x, x), None, 0))
                assert client.fetch(y).tolist() == [[8, 8], [8, 8]]
        for count, client in enumerate(clients, 1):
            expected = {"DoublesProducts": {"products": count}}
            assert client.get_dispatcher_stats()["modifiers"] == expected
            assert client.get_stats()["worker_0"]["modifiers"] == expected
            client.close()
    finally:
        running.stop()


def test_an_instance_serves_the_first_client_and_others_get_copies_of_it_as_it_was():
    mine = Counts()
    mine.seen = 100
    server = LocalServer("numpy", dispatcher_modifiers=[mine])
    first, second = (Client(LocalConnection(server)) for _ in range(2))
    first.emit(Op(first.next_id(), "full", (), {"shape": [1], "value": 1, "dtype": "float32"}, 0))
    assert first.get_dispatcher_stats()["modifiers"] == {"Counts": {"seen": 101}}
    assert second.get_dispatcher_stats()["modifiers"] == {"Counts": {"seen": 100}}
    assert mine.seen == 101
    first.close()
    second.close()


class HasALock(Counts):
    """Cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


@pytest.mark.parametrize("layer", ["dispatcher", "worker"])
def test_an_instance_that_cannot_be_copied_fails_the_second_clients_tensors_with_advice(layer: str):
    server = LocalServer("numpy", **{f"{layer}_modifiers": [HasALock()]})
    first, second = (Client(LocalConnection(server)) for _ in range(2))
    assert first.fetch(first.create(np.ones(1))).tolist() == [1]
    with pytest.raises(
        WorkerError, match=r"modifier HasALock failed.*cannot be copied.*Pass its class instead"
    ):
        second.fetch(second.create(np.ones(1)))
    assert first.fetch(first.create(np.ones(1))).tolist() == [1]
    first.close()
    second.close()


def test_several_modifiers_of_one_class_are_all_in_the_statistics():
    gt.init(modifiers={"dispatcher": [Rename("add", "sub"), Rename("sub", "mul")]})
    assert (gt.ones(1) + 1).tolist() == [1]
    assert gt.debug.get_dispatcher_stats()["modifiers"] == {"Rename": {"count": 1}, "Rename 2": {"count": 1}}


def as_described(stats: dict[str, Any]) -> None:
    for name, expected in BAD_STATS.items():
        if isinstance(expected, str):
            assert expected in stats[name]["error"]
        else:
            assert stats[name] == expected


def test_bad_statistics_become_a_message_and_end_no_server_and_no_worker():
    flags = [
        flag for name in BAD_STATS for flag in ("--modifier", f"tests.gt.helpers.stream_modifiers:{name}")
    ]
    running = Cluster()
    try:
        server, worker = running.start_server(*flags), running.start_worker(*flags)
        client = connect(running)
        for _ in range(2):
            assert client.fetch(client.create(np.ones(2))).tolist() == [1, 1]
            as_described(client.get_dispatcher_stats()["modifiers"])
            as_described(client.get_stats()["worker_0"]["modifiers"])
        client.close()
        assert server.popen.poll() is None
        assert worker.popen.poll() is None
    finally:
        running.stop()


def test_bad_statistics_are_the_same_inside_a_program():
    given = [f"tests.gt.helpers.stream_modifiers:{name}" for name in BAD_STATS]
    gt.init(modifiers={"dispatcher": given, "worker": given})
    assert gt.ones(2).tolist() == [1, 1]
    as_described(gt.debug.get_dispatcher_stats()["modifiers"])
    as_described(gt.debug.get_worker_stats()["auto_worker"]["modifiers"])


def test_the_open_question_of_a_client_that_is_refused_does_not_end_the_server():
    running = Cluster()
    try:
        server = running.start_server(
            "--modifier", "tests.gt.helpers.stream_modifiers:UploadsInPlaceOfCopies"
        )
        with Stranger(running) as worker, Stranger(running) as stranger:
            hello = protocol.WorkerHello(protocol.VERSION, "", 0, "", "silent", "numpy")
            assert isinstance(worker.ask(protocol.encode(hello)), protocol.Welcome)
            assert isinstance(stranger.ask(HELLO), protocol.Welcome)
            # The worker never answers, so the question is open when what follows turns out to be unsendable.
            stranger.socket.send(protocol.encode(protocol.GetStats(1)))
            full = Op(0, "full", (), {"shape": [2], "value": 1, "dtype": "float32"}, 0)
            answer = stranger.ask(protocol.encode(protocol.Batch(1, [full])))
            if isinstance(answer, protocol.Ack):
                answer = stranger.read()
            assert isinstance(answer, protocol.Refused)
        with Stranger(running) as another:
            assert isinstance(another.ask(HELLO), protocol.Welcome)
        assert server.popen.poll() is None
    finally:
        running.stop()


BROKEN = """
import sys

from gt.{package} import {name}

def fail(self, client=""):
    raise LookupError("no statistics today")

{name}.get_stats = fail
sys.argv[0] = "gt"
from gt.{module}.__main__ import main
main()
"""


@pytest.mark.parametrize("broken", ["server", "worker"])
def test_statistics_that_cannot_be_computed_end_no_server_and_no_worker(broken: str):
    running = Cluster()
    try:
        address = ("-p", str(running.port))
        if broken == "server":
            code = BROKEN.format(package="dispatcher", name="Dispatcher", module="server")
            running.run("-c", code, *address).says("server ready")
            running.start_worker()
        else:
            running.start_server()
            code = BROKEN.format(package="worker", name="Worker", module="worker")
            running.run("-c", code, *address, "--engine", "numpy").says("is ready")
        client = connect(running)
        for _ in range(2):
            stats = client.get_dispatcher_stats() if broken == "server" else client.get_stats()["worker_0"]
            assert stats == {"error": "statistics are not available: LookupError: no statistics today"}
            assert client.fetch(client.create(np.ones(2))).tolist() == [1, 1]
        client.close()
        assert [process.popen.poll() for process in running.processes] == [None, None]
    finally:
        running.stop()


@pytest.mark.parametrize("workers", [None, 1])
def test_a_clients_modifiers_are_in_its_statistics(workers: int | None, capsys: pytest.CaptureFixture[str]):
    gt.init(workers, modifiers={"client": [Counts, NumpyStats]})
    assert (gt.ones(2) + 1).tolist() == [2, 2]
    stats = gt.debug.get_client_stats()
    assert stats["modifiers"] == {"Counts": {"seen": 2}, "NumpyStats": BAD_STATS["NumpyStats"]}
    assert stats["batches_sent"] > 0
    gt.debug.print_worker_stats()
    assert re.search(
        r"^client\n(.*\n)*  modifiers +{'Counts': {'seen': 2}", capsys.readouterr().out, re.MULTILINE
    )


def test_statistics_without_modifiers_do_not_mention_them(capsys: pytest.CaptureFixture[str]):
    gt.init()
    assert gt.ones(2).tolist() == [1, 1]
    assert "modifiers" not in gt.debug.get_client_stats()
    gt.debug.print_worker_stats()
    assert "client\n" not in capsys.readouterr().out
