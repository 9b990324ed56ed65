"""Exchanges between workers beside PyTorch's Gloo: the same processes do both, in turns.

Ours go through shared memory, as on one host, and over sockets, as between hosts; Gloo always uses sockets.
"""

import itertools
import math
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import Job, afterwards, benchmark, index_at_most

KINDS = ("AllReduce", "AllGather")
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 24)
WORKERS = (2, 4)
WAYS = ("shared memory", "sockets")
SECONDS = 0.1
"""About how long one measurement takes."""


class Case(NamedTuple):
    """A tensor of so many bytes, which so many workers exchange."""

    workers: int
    kind: str
    nbytes: int
    way: str = "sockets"

    def __str__(self) -> str:
        return f"{self.kind:9} of {self.nbytes / 1024:7.0f} kB among {self.workers} by {self.way}"


class _Group:
    """Processes that exchange tensors either way."""

    def __init__(self, workers: int) -> None:
        folder = tempfile.TemporaryDirectory()
        afterwards(folder.cleanup)
        spawn = multiprocessing.get_context("spawn")
        pipes = [spawn.Pipe() for _ in range(workers)]
        self._pipes = [ours for ours, _ in pipes]
        self._processes: list[Any] = []
        for rank, (_, theirs) in enumerate(pipes):
            process = spawn.Process(target=_member, args=(rank, workers, folder.name, theirs), daemon=True)
            process.start()
            self._processes.append(process)
        afterwards(self._stop)
        members = self._all(None)
        names = [f"worker_{rank}" for rank in range(workers)]
        self._all({way: dict(zip(names, (one[way] for one in members), strict=True)) for way in WAYS})

    def _all(self, what: Any) -> list[Any]:
        for pipe in self._pipes:
            pipe.send(what)
        return [pipe.recv() for pipe in self._pipes]

    def _stop(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(10)
            process.terminate()
            process.join()

    def seconds(self, how: str, case: Case, rounds: int) -> float:
        """How long one exchange takes the slowest."""
        return max(self._all((how, case, rounds))) / rounds


def _member(rank: int, count: int, folder: str, pipe: Any) -> None:
    """One of the processes."""
    import torch
    import torch.distributed as dist

    from gt.transport.peers import Peers
    from gt.transport.protocol import Member
    from gt.transport.shared_memory import SharedMemory, host
    from gt.worker import Worker

    torch.set_num_threads(1)
    store = dist.FileStore(str(Path(folder) / "store"), count)  # type: ignore[reportPrivateImportUsage]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=count)
    memory = SharedMemory()
    workers = {way: Worker(f"worker_{rank}") for way in WAYS}
    ways = {
        WAYS[0]: Peers(f"ipc://{folder}/peer-{rank}", memory=memory),
        WAYS[1]: Peers("tcp://127.0.0.1:*"),
    }
    for way, peers in ways.items():
        peers.name = workers[way].name
        workers[way].peers = peers
    pipe.recv()
    pipe.send({way: Member(peers.address, peers.token, host()) for way, peers in ways.items()})
    for way, members in pipe.recv().items():
        ways[way].update_members(1, members)
    pipe.send(None)
    numbers = itertools.count()
    while True:
        order = pipe.recv()
        if order is None:
            memory.close()
            return
        how, case, rounds = order
        run = _ours(workers[case.way], case, numbers) if how == "ours" else _gloo(case)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(rounds):
            run()
        pipe.send(time.perf_counter() - begin)


def _ours(worker: Any, case: Case, numbers: Any) -> Callable[[], object]:
    import torch

    from gt.stream.instructions import Exchange
    from gt.stream.layouts import Partial, Placement, Replicated, Sharded, even

    mesh = tuple(f"worker_{rank}" for rank in range(case.workers))
    length = case.nbytes // 4
    sizes = even(length, case.workers)
    reduces = case.kind == "AllReduce"
    layout = Partial("sum") if reduces else Sharded(0, sizes)
    own = length if reduces else sizes[mesh.index(worker.name)]
    have, wanted = Placement(layout, mesh), Placement(Replicated(), mesh)
    worker.execute("c1", [])
    values = worker.clients["c1"].values
    values[0] = torch.ones(own)

    def run() -> None:
        order = Exchange(case.kind, next(numbers), 0, 1, (length,), "float32", have, wanted, 1)
        outcome = worker.execute("c1", [order, 1])
        assert not outcome.failed, outcome.failed

    return run


def _gloo(case: Case) -> Callable[[], object]:
    import torch
    import torch.distributed as dist

    length = case.nbytes // 4
    if case.kind == "AllReduce":
        x = torch.ones(length)

        def reduce() -> None:
            result = x.clone()  # as GT's: what was there stays
            dist.all_reduce(result)

        return reduce
    own = torch.ones(length // case.workers)

    def gather() -> None:
        result = torch.empty(length)
        dist.all_gather(list(result.chunk(case.workers)), own)

    return gather


@benchmark(
    "geometric mean of the time of exchanges: all-reduce and all-gather, 4 kB to 16 MB, 2 and 4 workers, "
    "through shared memory and over sockets; it prints each",
    "Gloo",
    index_at_most(1),
)
def gt_collectives() -> tuple[Job, Job]:
    groups = {workers: _Group(workers) for workers in WORKERS}
    cases = [Case(*one) for one in itertools.product(WORKERS, KINDS, SIZES, WAYS)]
    rounds: dict[Case, int] = {}
    theirs: dict[Case, float] = {}
    ratios: dict[Case, list[float]] = {case: [] for case in cases}

    def reference() -> None:
        for case in cases:
            group = groups[case.workers]
            if case not in rounds:
                group.seconds("gloo", case, 2)
                rounds[case] = max(3, round(SECONDS / group.seconds("gloo", case, 3)))
                group.seconds("ours", case, 3)
            theirs[case] = group.seconds("gloo", case, rounds[case])

    def subject() -> float:
        now = []
        for case in cases:
            if case not in theirs:
                continue  # the first turn, before the reference's, is not counted
            # Once more beside ours: the machine's speed drifts from one case to the next.
            group = groups[case.workers]
            theirs[case] = (theirs[case] + group.seconds("gloo", case, rounds[case])) / 2
            ratios[case].append(group.seconds("ours", case, rounds[case]) / theirs[case])
            now.append(ratios[case][-1])
        return math.prod(now) ** (1 / len(now)) if now else 1.0

    def report() -> None:
        for case, found in ratios.items():
            if found:
                print(
                    f"{case}: {statistics.median(found):.2f} of Gloo's {theirs[case] * 1e3:.2f} ms",
                    file=sys.stderr,
                )

    afterwards(report)
    return subject, reference
