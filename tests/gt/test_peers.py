"""Bytes between workers: through shared memory on one host, else by a socket, never by the dispatcher."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from gt.errors import WorkerError
from gt.stream.instructions import Exchange
from gt.stream.layouts import Partial, Placement, Replicated, Sharded
from gt.transport import shared_memory
from gt.transport.peers import Peers
from gt.transport.protocol import Member, encode
from gt.transport.receive_buffer import ReceiveBuffer
from gt.transport.shared_memory import SharedMemory, host
from gt.worker.collectives.exchange import exchange
from gt.worker.collectives.reduction import copy_into

LARGE = np.arange(1 << 18, dtype=np.float32)


class Pair:
    """Two workers that know each other."""

    def __init__(self, folder: Path, shared: bool = True) -> None:
        self.memories = [SharedMemory(), SharedMemory()]
        self.peers = []
        for name, memory in zip("ab", self.memories, strict=True):
            peers = Peers(f"ipc://{folder}/{name}", memory=memory)
            peers.name = name
            self.peers.append(peers)
        where = host() if shared else ""
        self.members = {peers.name: Member(peers.address, peers.token, where) for peers in self.peers}
        for peers in self.peers:
            peers.update_members(1, self.members)

    def pass_on(self, number: int, array: np.ndarray) -> np.ndarray:
        """From the first to the second; a copy of what arrived."""
        first, second = self.peers
        first.send("b", number, 0, array)
        first.finish_exchange()
        result = np.empty(array.shape, array.dtype)
        second.receive(number, {(0, "a"): ReceiveBuffer(result.nbytes, copy_into(result))}, 1)
        second.finish_exchange()
        return result

    def segments(self) -> int:
        """How many pieces of shared memory there are of the first."""
        return len(list(shared_memory.FOLDER.glob(f"{self.memories[0].prefix}*")))

    def close(self) -> None:
        for peers, memory in zip(self.peers, self.memories, strict=True):
            peers.close()
            memory.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def anything(size: int) -> dict[tuple[int, str], ReceiveBuffer]:
    """So many bytes of the first, whatever they are."""
    return {(0, "a"): ReceiveBuffer(size, lambda data: None)}


def test_memory_is_used_again_though_nothing_goes_the_other_way(pair: Pair):
    for number in range(40):
        np.testing.assert_array_equal(pair.pass_on(number, LARGE + number), LARGE + number)
        pair.peers[0].receive(number, {}, 1)  # also receives the names of released shared memory
    assert 0 < pair.segments() < 20, "not one for each: memory that comes back is used again"
    assert pair.peers[0].bytes_sent == 40 * LARGE.nbytes


@pytest.mark.parametrize("part", [np.s_[:, 100:400], np.s_[::2], np.s_[10:20], np.s_[:0]])
def test_any_part_of_an_array_arrives_as_it_is(pair: Pair, part: tuple[slice, ...]):
    array = LARGE.reshape(512, 512)[part]
    for number in range(3):  # in memory that is new, and in memory that is used again
        np.testing.assert_array_equal(pair.pass_on(number, array), array)


def test_small_arrays_need_no_shared_memory(pair: Pair):
    np.testing.assert_array_equal(pair.pass_on(0, LARGE[:100]), LARGE[:100])
    assert pair.segments() == 0


def test_workers_on_two_hosts_use_the_socket(tmp_path: Path):
    pair = Pair(tmp_path, shared=False)
    np.testing.assert_array_equal(pair.pass_on(0, LARGE), LARGE)
    assert pair.segments() == 0
    pair.close()


def test_without_room_in_shared_memory_the_socket_will_do(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(shared_memory, "FOLDER", tmp_path / "nothing")
    np.testing.assert_array_equal(pair.pass_on(0, LARGE), LARGE)


def test_removed_shared_memory_is_an_error_that_names_the_sender(pair: Pair):
    first, second = pair.peers
    first.send("b", 0, 0, LARGE)
    pair.memories[0].close()
    with pytest.raises(WorkerError, match="the data that a sent cannot be read"):
        second.receive(0, anything(LARGE.nbytes), 1)


def test_a_worker_that_left_takes_its_memory_with_it(pair: Pair):
    first, second = pair.peers
    first.send("b", 0, 0, LARGE)
    assert pair.segments() == 1
    alone = {"a": pair.members["a"]}
    first.update_members(2, alone)
    assert pair.segments() == 0
    second.update_members(2, {"b": pair.members["b"]})
    with pytest.raises(WorkerError, match="a is gone, and its tensors are lost"):
        second.receive(1, anything(4), 1)


@pytest.mark.parametrize("kind", ["AllReduce", "AllGather"])
def test_a_worker_that_cannot_send_reports_it_to_the_receivers(pair: Pair, kind: str):
    mesh = ("a", "b")
    have = Placement(Partial("sum") if kind == "AllReduce" else Sharded(0, (4, 4)), mesh)
    order = Exchange(kind, 1, 0, 1, (8,), "float32", have, Placement(Replicated(), mesh), 1)
    broken: Any = "not an array at all"
    with pytest.raises((TypeError, AttributeError)):
        exchange(order, broken, None, pair.peers[0])
    with pytest.raises(WorkerError, match=f"{kind} failed on a: "):
        exchange(order, LARGE[: 8 if kind == "AllReduce" else 4], None, pair.peers[1])
    assert pair.pass_on(2, LARGE)[3] == 3, "and the next exchange goes on"


def test_what_shows_no_token_is_dropped(pair: Pair):
    first, second = pair.peers
    stranger = zmq.Context.instance().socket(zmq.PUSH)
    stranger.connect(second.address)
    for message in ([b"nonsense", b""], [encode(["wrong", 0, 0, "a"]), b"\0" * 8], [b""]):
        stranger.send_multipart(message)
    first.send("b", 0, 0, LARGE[:2])
    result = np.zeros(2, np.float32)
    second.receive(0, {(0, "a"): ReceiveBuffer(8, copy_into(result))}, 1)
    np.testing.assert_array_equal(result, LARGE[:2])
    stranger.close(linger=0)
