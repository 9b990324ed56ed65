"""Invalid peers and messages on a server's port are refused, and do not affect other clients."""

import re
import socket
import struct
import time
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

import gt
from gt.errors import ConnectionLost, WorkerError
from gt.stream.instructions import ArrayData, CreateTensor, Op
from gt.transport import protocol
from tests.gt.helpers.servers import Cluster, cluster, connect, eventually, works
from tests.gt.helpers.strangers import HELLO, Stranger
from tests.programs import TIMEOUT


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """One for all: whatever it receives, it goes on."""
    with cluster() as running:
        yield running


def raw(running: Cluster) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=TIMEOUT)


def greeting() -> bytes:
    """The greeting of a ZeroMQ peer."""
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
def test_garbage_bytes_on_the_port_have_no_effect_on_others(running: Cluster, name: str):
    client = connect(running)
    assert works(client)
    server = running.processes[0]
    before = len(server.read().splitlines())
    for count in range(1, 4):
        with raw(running) as stranger:
            stranger.sendall(GARBAGE[name])
            time.sleep(0.05)
        eventually(lambda count=count: len(server.read().splitlines()) >= before + count, "one line each")
    said = server.output.splitlines()[before:]
    assert all("refused an unknown peer" in line or "ended without a hello" in line for line in said), said
    assert works(client)
    newcomer = connect(running)
    assert works(newcomer)
    newcomer.close()
    client.close()
    assert running.processes[0].popen.poll() is None


BATCH = protocol.encode(
    protocol.Batch(1, [Op(0, "full", (), {"shape": [2], "value": 1, "dtype": "float32"}, 0)])
)
NONSENSE = {
    "not a message": b"garbage",
    "empty": b"",
    "a pickle": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "another type": msgspec.msgpack.encode({"op": "add"}),
    "truncated": BATCH[:-3],
    "an unknown tensor": protocol.encode(protocol.Batch(1, [Op(1, "add", (5, 6), None, 0)])),
    "a worker's message": protocol.encode(protocol.Done(0, 0.0, [], [])),
    "a second hello": HELLO,
    "a log to write": protocol.encode(protocol.FollowLog("/tmp/gt-not-mine.log")),
    "deeply nested": b"\x91" * 100_000,
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_malformed_message_is_refused_without_effect_on_others(running: Cluster, name: str):
    client = connect(running)
    with Stranger(running) as stranger:
        welcome = stranger.ask(HELLO)
        assert isinstance(welcome, protocol.Welcome)
        answer = stranger.ask(NONSENSE[name])
        assert isinstance(answer, protocol.Refused), answer
        assert answer.error
    refusal = f"refused {welcome.name}: "
    assert running.processes[0].says(refusal).count(refusal) == 1
    assert works(client)
    client.close()


def test_a_wrong_protocol_version_is_refused_with_both_versions(running: Cluster):
    with Stranger(running) as stranger:
        answer = stranger.ask(protocol.encode(protocol.Hello(99, "", 0)))
    assert isinstance(answer, protocol.Refused)
    spoken = f"protocol version {protocol.VERSION}"
    assert f"{spoken}, but this peer has 99: install the same release" in answer.error
    running.processes[0].says(f"refused an unknown peer: the server has {spoken}")


def test_a_client_or_worker_of_another_version_gets_an_error(running: Cluster, monkeypatch):
    spoken = f"protocol version {protocol.VERSION}"
    monkeypatch.setattr(protocol, "VERSION", 99)
    expected = rf"refused this client: the server has {spoken}, .* has 99"
    with pytest.raises(ConnectionLost, match=expected):
        connect(running)
    code = (
        "import sys; from gt.transport import protocol; protocol.VERSION = 99; sys.argv = sys.argv[1:];"
        "from gt.worker.__main__ import main; main()"
    )
    worker = running.run("-c", code, "gt.worker", "-p", str(running.port), "--engine", "numpy")
    assert worker.ends() == 1
    assert worker.output.count("\n") == 1
    assert f"refused this worker: the server has {spoken}, but this peer has 99" in worker.output


def test_a_batch_before_any_hello_is_refused(running: Cluster):
    with Stranger(running) as stranger:
        answer = stranger.ask(BATCH)
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
        (ArrayData((4,), "float32", 0, "../../etc/passwd"), "is not the name of a segment of gt"),
        (ArrayData((4,), "float32", 0, f"gt-1-{'0' * 16}-{'0' * 32}"), "cannot be read"),
    ],
)
def test_an_array_unlike_its_description_fails_that_tensor_only(
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
