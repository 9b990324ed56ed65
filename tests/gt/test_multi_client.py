"""Many clients at once: each sees its own tensors, gets its share, and leaves no tensors behind."""

import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from gt.client import Client
from gt.stream.instructions import GetData, Op
from tests.gt.helpers.servers import Cluster, cluster, connect, eventually
from tests.programs import TIMEOUT


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


def add(client: Client, left: int, right: int) -> int:
    number = client.next_id()
    client.emit(Op(number, "add", (left, right), None, 0))
    return number


def held(client: Client) -> int:
    """How many tensors the workers hold, for anybody."""
    return sum(stats["tensors"] for stats in client.get_stats().values())


def test_clients_in_tight_fetch_loops_receive_only_their_own_values(running: Cluster):
    wrong: list[tuple[int, float]] = []
    counts = [0] * 6

    def loop(number: int) -> None:
        client = connect(running)
        x = client.create(np.full(3, float(number)))
        for step in range(150):
            got = client.fetch(x)
            counts[number] += 1
            if got.tolist() != [float(number + step * (number + 1))] * 3:
                wrong.append((number, got[0]))
            x = add(client, x, client.create(np.full(3, number + 1.0)))
        client.close()

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert wrong == []
    assert counts == [150] * 6


def test_threads_of_one_client_receive_their_own_answers(running: Cluster):
    client = connect(running)
    tensors = [client.create(np.full(50_000, float(n))) for n in range(4)]  # large: through shared memory
    seen: dict[int, set[float]] = {n: set() for n in range(4)}

    def loop(number: int) -> None:
        for _ in range(50):
            seen[number] |= set(np.unique(client.fetch(tensors[number])))

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    client.close()
    assert seen == {n: {float(n)} for n in range(4)}


def test_threads_of_one_client_upload_side_by_side(running: Cluster):
    """Large arrays share memory that is used again and again: no two of them may have the same at once."""
    client = connect(running)
    wrong: list[float] = []

    def loop(number: int) -> None:
        for step in range(40):
            value = number * 1000.0 + step
            tensor = client.create(np.full(50_000, value))
            if set(np.unique(client.fetch(tensor))) != {value}:
                wrong.append(value)
            client.emit(tensor)

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    client.close()
    assert wrong == []


def test_two_clients_use_the_same_numbers_for_different_tensors(running: Cluster):
    one, other = connect(running), connect(running)
    assert one.create(np.ones(2)) == other.create(np.zeros(2)) == 0
    assert one.fetch(0).tolist() == [1, 1]
    assert other.fetch(0).tolist() == [0, 0]
    one.close()
    assert other.fetch(0).tolist() == [0, 0]
    other.close()


def test_a_client_cannot_reach_another_clients_tensor(running: Cluster):
    rich, poor = connect(running), connect(running)
    rich.create(np.ones(2))
    rich.flush()
    with pytest.raises(ConnectionError, match=r"Tensor not found: client c\d+ has no tensor 0"):
        poor.fetch(0)
    assert rich.fetch(0).tolist() == [1, 1], "and the other one is not disturbed"
    rich.close()


PROGRAM = """
import gt, sys, time
gt.connect("{address}")
kept = [gt.ones(1000) + n for n in range(20)]
print(kept[-1].sum().item(), flush=True)
{then}
"""


@pytest.mark.parametrize("how", ["returns", "raises", "exits", "killed"])
def test_a_client_that_ends_frees_all_its_tensors(running: Cluster, how: str):
    then = {"returns": "", "raises": "1 / 0", "exits": "sys.exit(3)", "killed": "time.sleep(600)"}[how]
    observer = connect(running)
    before = held(observer)
    program = running.run("-c", PROGRAM.format(address=running.address, then=then))
    if how == "killed":
        program.says("20000.0")
        assert held(observer) > before
        program.popen.send_signal(signal.SIGKILL)
    assert program.ends() == {"returns": 0, "raises": 1, "exits": 3, "killed": -9}[how]
    eventually(lambda: held(observer) == before, what=how)
    assert observer.get_dispatcher_stats()["handles"] == 0
    observer.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_queue_does_not_starve_a_short_one(running: Cluster, workers: int):
    """While one client keeps the workers busy for seconds, another's small requests are answered."""
    for _ in range(1, workers):
        running.start_worker()
    greedy, modest = connect(running), connect(running)
    big = greedy.create(np.ones((300, 300)))
    for _ in range(1500):
        number = greedy.next_id()
        greedy.emit(Op(number, "matmul", (big, big), None, 0))
        greedy.emit(number)
    greedy.flush()
    start = time.monotonic()
    x = modest.create(np.ones(3))
    for _ in range(10):
        x = add(modest, x, x)
        modest.fetch(x)
    took = time.monotonic() - start
    greedy.fetch(big)
    whole = time.monotonic() - start
    assert took < whole / 2, f"the small client took {took:.2f} s, the big one {whole:.2f} s"
    greedy.close()
    modest.close()


def test_equal_clients_get_equal_shares(running: Cluster):
    """Eight clients that ask for as much as they can get progress at the same pace."""
    clients = [connect(running) for _ in range(8)]
    done = [0] * 8
    stop = threading.Event()

    def loop(number: int) -> None:
        client = clients[number]
        x = client.create(np.ones((64, 64)))
        while not stop.is_set():
            for _ in range(64):
                result = client.next_id()
                client.emit(Op(result, "matmul", (x, x), None, 0))
                client.emit(result)
            client.fetch(x)
            done[number] += 1

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(done) >= 80)
    stop.set()
    for thread in threads:
        thread.join(TIMEOUT)
    for client in clients:
        client.close()
    jain = sum(done) ** 2 / (len(done) * sum(n * n for n in done))
    assert min(done) > 0
    assert jain >= 0.9, done


def test_a_request_is_answered_once_and_under_its_own_number(running: Cluster):
    client = connect(running)
    x, y = client.create(np.zeros(1)), client.create(np.ones(1))
    client.emit(GetData(1001, y))
    client.emit(GetData(1000, x))
    client.flush()
    assert client.connection.wait(1000).array is not None
    answer = client.connection.wait(1001)
    assert (answer.request, answer.array.tolist()) == (1001, [1])  # type: ignore[union-attr]
    client.close()
