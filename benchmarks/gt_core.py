"""GT beside PyTorch and NumPy: small ops, large ops, transfers, training, many clients at once."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import (
    Job,
    afterwards,
    benchmark,
    cost_at_most,
    index_at_least,
    seconds_at_most,
    speed_at_least,
)

SMALL_OPS = 10_000


def _small_ops(library: Any) -> Job:
    def job() -> object:
        x, y = library.zeros(10), library.ones(10)
        for _ in range(SMALL_OPS):
            x = x + y
        return x.numpy()

    return job


def _own_processes() -> None:
    """Run what follows on one worker process with one thread per core."""
    import gt

    gt.init(workers=1)
    afterwards(gt.close)
    (gt.ones(2) + 1).tolist()  # the worker has loaded its engine


def _embedded() -> None:
    import gt

    gt.init()


@benchmark(
    f"{SMALL_OPS:,} additions of 10 elements, one after the other, one read at the end",
    "PyTorch",
    cost_at_most(3),
)
def gt_small_ops_embedded() -> tuple[Job, Job]:
    import torch

    import gt

    _embedded()
    return _small_ops(gt), _small_ops(torch)


@benchmark("the same over separate processes: client, dispatcher, worker", "PyTorch", cost_at_most(4))
def gt_small_ops_processes() -> tuple[Job, Job]:
    import torch

    import gt

    _own_processes()
    return _small_ops(gt), _small_ops(torch)


@benchmark("a 1000 x 1000 matrix product, its result read", "PyTorch", speed_at_least(0.95))
def gt_matmul() -> tuple[Job, Job]:
    import torch

    import gt

    _embedded()
    a, b = (np.random.default_rng(seed).standard_normal((1000, 1000), np.float32) for seed in (0, 1))
    ours = gt.from_numpy(a), gt.from_numpy(b)
    theirs = torch.from_numpy(a), torch.from_numpy(b)
    return lambda: (ours[0] @ ours[1]).sum().item(), lambda: (theirs[0] @ theirs[1]).sum().item()


def _data() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(25_000_000, np.float32)


def _warm(job: Callable[[], object]) -> Job:
    """The first touches of memory cost the system more than the copies; both sides have them behind them."""
    for _ in range(3):
        job()
    return job


@benchmark("100 MB to a worker process and back", "np.copy twice", speed_at_least(0.5))
def gt_transfer() -> tuple[Job, Job]:
    import gt

    _own_processes()
    data = _data()

    def reference() -> None:
        data.copy()
        data.copy()

    return _warm(lambda: gt.from_numpy(data).numpy()), _warm(reference)


@benchmark("100 MB to a worker process, until it is there", "np.copy", speed_at_least(0.5))
def gt_transfer_up() -> tuple[Job, Job]:
    import gt

    _own_processes()
    data = _data()
    return _warm(lambda: gt.from_numpy(data)[0].item()), _warm(data.copy)


@benchmark("100 MB from a worker process", "np.copy", speed_at_least(0.5))
def gt_transfer_down() -> tuple[Job, Job]:
    import gt

    _own_processes()
    data = _data()
    there = gt.from_numpy(data)
    return _warm(there.numpy), _warm(data.copy)


@benchmark("`import gt` in a new process", "import torch", seconds_at_most(0.3))
def gt_import() -> tuple[Job, Job]:
    def importing(name: str) -> Job:
        return lambda: subprocess.run([sys.executable, "-c", f"import {name}"], check=True)

    return importing("gt"), importing("torch")


# --- many clients ---

CLIENT = """
import sys
import gt

gt.connect(sys.argv[1], timeout=60)
x, y = gt.zeros(10), gt.ones(10)
(x + y).tolist()
for line in sys.stdin:
    for _ in range(int(line) // 100):
        for _ in range(100):
            x = x + y
        x[0].item()
    print("done", flush=True)
"""


class Clients:
    """Programs that all work on one server, each told through its standard input when to do how much."""

    def __init__(self, count: int) -> None:
        from gt.server.local import LocalProcesses

        self._server = LocalProcesses(1)
        afterwards(self._server.stop)
        command = [sys.executable, "-c", CLIENT, self._server.address]
        pipe = subprocess.PIPE
        self._programs = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) for _ in range(count)
        ]
        afterwards(self.stop)
        self.run(range(count), 100)

    def run(self, which: Any, ops: int) -> list[float]:
        """Have some of them do so many ops at once; the result is when each was done."""
        start = time.perf_counter()
        ends = [0.0] * len(self._programs)

        def one(number: int) -> None:
            program = self._programs[number]
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.write(f"{ops}\n")
            assert program.stdout.readline() == "done\n"
            ends[number] = time.perf_counter() - start

        threads = [threading.Thread(target=one, args=(number,)) for number in which]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [end for end in ends if end]

    def stop(self) -> None:
        for program in self._programs:
            program.kill()
            program.communicate()


@benchmark(
    "16,000 small ops by 8 clients at once, a read after every hundred", "one client", speed_at_least(0.9)
)
def gt_clients() -> tuple[Job, Job]:
    clients = Clients(8)
    return lambda: clients.run(range(8), 2000), lambda: clients.run(range(1), 16_000)


@benchmark("how evenly 8 clients progress: Jain's index of their speeds", "one client", index_at_least(0.95))
def gt_clients_fairness() -> tuple[Job, Job]:
    clients = Clients(8)

    def jain() -> float:
        speeds = [1 / end for end in clients.run(range(8), 2000)]
        return sum(speeds) ** 2 / (len(speeds) * sum(speed * speed for speed in speeds))

    return jain, lambda: clients.run(range(1), 2000)
