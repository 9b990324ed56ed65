"""GT over several workers beside GT over one: how much faster, and what the dispatcher pays for it.

Without hot paths, which `gt_hotpaths.py` measures: a compiler at work beside would be measured too.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Job, afterwards, benchmark, cost_at_most, speed_at_least

SIZE = 2048
WORKERS = (2, 8, 32, 72)


class _System:
    """A server with so many workers of one thread each, and a client of it."""

    def __init__(self, workers: int) -> None:
        from gt.client import Client
        from gt.client.connection import RemoteConnection
        from gt.server.local import LocalProcesses

        os.environ["GT_AUTO_COMPILE"] = "0"
        afterwards(lambda: os.environ.pop("GT_AUTO_COMPILE", None))
        self._processes = LocalProcesses(workers, threads=1)
        afterwards(self._processes.stop)
        self.client = Client(RemoteConnection(self._processes.address, 60))
        afterwards(self.client.close)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """`gt.*` uses this one."""
        from gt.client import session

        before, session._current = session._current, self.client
        try:
            yield
        finally:
            session._current = before

    def job(self, prepare: Callable[[], Callable[[], object]]) -> Job:
        with self.used():
            run = prepare()

        def job() -> object:
            with self.used():
                return run()

        return job


def _matmul() -> Callable[[], object]:
    import gt

    a, b = gt.randn(SIZE, SIZE), gt.randn(SIZE, SIZE)
    return lambda: (a @ b).sum().item()


def _mlp() -> Callable[[], object]:
    """Training steps of an MLP with a large batch."""
    import gt

    nn, F = gt.nn, gt.nn.functional
    rng = np.random.default_rng(0)
    x = gt.from_numpy(rng.standard_normal((4096, 784), np.float32))
    y = gt.from_numpy(rng.integers(0, 10, 4096))
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.01)

    def run() -> object:
        loss = None
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        assert loss is not None
        return loss.item()

    return run


@benchmark(
    f"a product of two {SIZE} x {SIZE} matrices by 2 workers with one thread each",
    "1 worker with one thread",
    speed_at_least(1.7),
)
def gt_scaling() -> tuple[Job, Job]:
    return _System(2).job(_matmul), _System(1).job(_matmul)


@benchmark(
    "3 training steps of an MLP (784-512-512-10, batch 4096) by 2 workers with one thread each",
    "1 worker with one thread",
    speed_at_least(1.7),
)
def gt_scaling_mlp() -> tuple[Job, Job]:
    return _System(2).job(_mlp), _System(1).job(_mlp)


def _gpt2() -> Callable[[], object]:
    """A training step of GPT-2 small on the device, each worker with a part of the batch."""
    import torch
    import transformers

    import gt.torch

    torch.manual_seed(0)
    config = transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    tokens = torch.randint(0, config.vocab_size, (4, 256)).to("tapestry")
    model: Any = transformers.GPT2LMHeadModel(config).train()
    gt.torch.shard(model.to("tapestry"), "data")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def run() -> object:
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        return loss.item()

    return run


@benchmark(
    "a training step of GPT-2 small (batch 4 x 256) on the device by 2 workers with one thread each",
    "1 worker with one thread",
    speed_at_least(1.6),
)
def torch_gpt2_scaling() -> tuple[Job, Job]:
    return _System(2).job(_gpt2), _System(1).job(_gpt2)


# --- the dispatcher ---


class _Null:
    """A worker that does nothing, and a client that reads nothing."""

    def __init__(self, name: str) -> None:
        from gt.transport.protocol import Member

        self.name = name
        self.member: Any = Member("", "")
        self.memory_limit = 0
        self.dispatcher: Any = None
        self.commands = 0

    def send(self, sequence: int, chunk: Any) -> None:
        self.commands += len(chunk.instructions)
        self.dispatcher.done(sequence, 1e-6 * len(chunk.instructions), [], [])

    def forget(self, client: str) -> None: ...
    def update_members(self, epoch: int, members: Any) -> None: ...
    def request_specs(self, client: str) -> None: ...
    def ack(self, sequence: int) -> None: ...
    def data(self, reply: Any) -> None: ...
    def failed(self, request: int, error: str, part: Any = None) -> None: ...
    def refused(self, error: str) -> None: ...


def _dispatch(workers: int, ops: int = 2000) -> tuple[float, float]:
    """Microseconds of the dispatcher's time for each of a client's ops, and commands sent for each."""
    from gt.dispatcher import Dispatcher
    from gt.stream.instructions import Op

    dispatcher = Dispatcher()
    links = [_Null(f"worker_{n}") for n in range(workers)]
    for link in links:
        link.dispatcher = dispatcher
        dispatcher.add_worker(link)
    client = dispatcher.connect(_Null("client"))
    attrs: Any = {"shape": [1440, 64], "dtype": "float32", "seed": 1}
    dispatcher.receive(client, 0, [Op(0, "randn", (), attrs, 0), Op(1, "randn", (), attrs, 0)])
    before = sum(link.commands for link in links)
    start, number = time.perf_counter(), 2
    for sequence in range(1, ops // 100 + 1):
        batch: list[Any] = []
        for _ in range(100):
            batch += [Op(number, "add", (0, 1), None, 0), number]
            number += 1
        dispatcher.receive(client, sequence, batch)
    seconds = time.perf_counter() - start
    commands = sum(link.commands for link in links) - before
    return seconds / ops * 1e6, commands / ops


@benchmark(
    "the dispatcher's time for each command it sends, with 72 workers that do nothing; it prints all counts",
    "with 2 workers",
    cost_at_most(1),
)
def gt_dispatch_scale() -> tuple[Job, Job]:
    for workers in WORKERS:
        micro, commands = _dispatch(workers)
        each = f"{commands:5.1f} commands, {micro / commands:.2f} us each"
        print(f"{workers:3} workers: {micro:7.1f} us an op, {each}", file=sys.stderr)

    def per_command(workers: int) -> Job:
        # As many commands either way: with fewer workers, more ops.
        return lambda: _dispatch(workers, 200 * (max(WORKERS) // workers))

    return per_command(max(WORKERS)), per_command(min(WORKERS))
