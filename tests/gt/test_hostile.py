"""A hostile or faulty client affects only itself, and interrupted work can be continued."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gt
from gt.errors import WorkerError
from gt.server.embedded import LocalServer
from gt.stream.instructions import ArrayData, CreateTensor, Define, Op, Replay, Site
from gt.transport import protocol, shared_memory
from tests.gt.helpers.servers import Cluster, cluster, connect, eventually, resident_bytes
from tests.gt.helpers.strangers import HELLO, Stranger


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
        ArrayData((2**62,) * 1_000_000, "float32", b""),
    ],
    ids=["too many dimensions", "none of very many", "too large", "a product that takes for ever"],
)
def test_an_impossible_array_fails_that_tensor(running: Cluster, array: ArrayData):
    client = connect(running)
    client.emit(CreateTensor(client.next_id(), array))
    with pytest.raises(WorkerError, match="out of bounds"):
        client.fetch(0)
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


def test_an_invalid_process_id_is_refused(running: Cluster):
    with Stranger(running) as stranger:
        hello = protocol.encode(protocol.Hello(protocol.VERSION, shared_memory.host(), 2**40))
        assert isinstance(stranger.ask(hello), protocol.Refused)
    assert works(running)


def test_an_invalid_name_of_shared_memory_does_not_end_the_server(running: Cluster):
    """When a client has left, the server sweeps the memory of its process, whose number is in the name."""
    segment = shared_memory.FOLDER / f"gt-999999999-{'0' * 16}-{'0' * 32}"  # of a process that is no more
    segment.write_bytes(b"left")
    for number in ("9" * 30, "9" * 5000, "999999999"):
        with Stranger(running) as stranger:
            memory = f"gt-{number}-{'0' * 16}-"
            hello = protocol.Hello(protocol.VERSION, shared_memory.host(), os.getpid(), memory)
            assert isinstance(stranger.ask(protocol.encode(hello)), protocol.Welcome)
            assert isinstance(stranger.ask(protocol.encode(protocol.Bye())), protocol.ByeAck)
    eventually(lambda: not segment.exists(), what="the next sweep")
    assert works(running)
    assert running.processes[0].popen.poll() is None


def test_ids_beyond_64_bits_are_refused(running: Cluster):
    """A range of results may begin within them, and lead beyond. A worker could not send them back."""
    steps: list[Any] = [("no_such_op", (), None)] * 4
    for first in ((1 << 64) - 2, (1 << 63) - 3):
        with Stranger(running) as stranger:
            assert isinstance(stranger.ask(HELLO), protocol.Welcome)
            batch = [Define(0, steps, [0] * 4), Replay(0, [], [first, 4], [0, 1, 2, 3], [])]
            answer = stranger.ask(protocol.encode(protocol.Batch(1, batch)))
            assert isinstance(answer, protocol.Refused)
            assert f"a repeat with results beyond {(1 << 63) - 1}" in answer.error
    assert works(running)
    assert [one.popen.poll() for one in running.processes] == [None, None]


FULL: dict[str, Any] = {"shape": [0], "value": 1, "dtype": "float32"}
STEPS = 8192


def repeats(count: int, number: int = 1) -> bytes:
    """A message with so many repeats of a sequence, which it defines."""
    define = Define(0, [("full", (), FULL)] * STEPS, [0] * STEPS)
    many = [Replay(0, [], [n * STEPS, STEPS], [], []) for n in range(count)]
    return protocol.encode(protocol.Batch(number, [define, *many]))


def test_a_small_message_that_stands_for_very_many_instructions_is_refused(running: Cluster):
    """The server would expand it to half a billion instructions, and answer no other client meanwhile."""
    with Stranger(running) as stranger:
        stranger.ask(HELLO)
        message = repeats(60_000)
        assert len(message) < 1 << 21
        answer = stranger.ask(message)
        assert isinstance(answer, protocol.Refused)
        assert "repeats have more than" in answer.error
    assert works(running)


def test_a_client_that_queues_very_many_repeats_is_refused(running: Cluster):
    with Stranger(running) as stranger:
        stranger.ask(HELLO)
        for number in range(1, 1000):
            stranger.socket.send(repeats(protocol.MAX_REPEATED // STEPS, number))
        while not isinstance(answer := stranger.read(), protocol.Refused):
            assert isinstance(answer, protocol.Ack)
        assert "sends without waiting" in answer.error
    assert works(running)


@pytest.mark.parametrize("number", [-1, 0, 1])
def test_batches_are_numbered_in_ascending_order(running: Cluster, number: int):
    """One with another number would never count as done."""
    with Stranger(running) as stranger:
        stranger.ask(HELLO)
        stranger.socket.send(protocol.encode(protocol.Batch(1, [])))
        stranger.socket.send(protocol.encode(protocol.Batch(number, [])))
        while not isinstance(answer := stranger.read(), protocol.Refused):
            assert isinstance(answer, protocol.Ack)
        assert f"batch {number} after batch 1" in answer.error


def test_random_instructions_have_no_effect_on_other_clients(running: Cluster):
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
    eventually(lambda: segments(pid) <= 2, what="segments are given back")

    before = resident_bytes(pid)
    client = connect(running)
    client.fetch(client.create(np.ones(16_000_000)))[0]
    assert resident_bytes(pid) - before > 100 << 20
    client.close()
    eventually(lambda: resident_bytes(pid) - before < 40 << 20, what="an upload is freed")
    observer.close()
    assert all(array[0] == 1 for array in kept)


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
