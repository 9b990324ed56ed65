"""Training in GT beside the same training in eager PyTorch, once hot paths are compiled; one thread each."""

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Job, afterwards, benchmark, cost_at_most, index_at_most, speed_at_least

COMPILE_SECONDS = 20_000
"""Seconds that the compiler may take."""


def _one_thread() -> None:
    """PyTorch and workers compute with one thread; what was compiled before is not used."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    afterwards(lambda: torch.set_num_threads(threads))
    cache = tempfile.TemporaryDirectory(prefix="gt-cache-")
    afterwards(cache.cleanup)
    for name, value in {"OMP_NUM_THREADS": "1", "GT_CACHE_DIR": cache.name, "GT_COMPILE_AFTER": "0"}.items():
        before = os.environ.get(name)
        os.environ[name] = value
        afterwards(lambda name=name, before=before: _restore(name, before))


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


def mlp(library: Any, batch: int) -> Callable[[], Any]:
    """A training step of an MLP (784-256-10)."""
    nn, F = library.nn, library.nn.functional
    rng = np.random.default_rng(0)
    x = library.from_numpy(rng.standard_normal((batch, 784), np.float32))
    y = library.from_numpy(rng.integers(0, 10, batch))
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = library.optim.SGD(model.parameters(), lr=0.01)

    def step() -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def gpt(library: Any) -> Callable[[], Any]:
    """A training step of a GPT with 2 layers of width 64, on 8 texts of 64 letters."""
    from examples import train_transformer

    F = library.nn.functional
    letters, context = len(train_transformer.LETTERS), train_transformer.CONTEXT
    train_transformer.CONTEXT = 64
    try:
        model = train_transformer.make_model(library)
    finally:
        train_transformer.CONTEXT = context
    optimizer = library.optim.SGD(model.parameters(), lr=0.01)
    rng = np.random.default_rng(0)
    x, y = (library.from_numpy(rng.integers(0, letters, (8, 64))) for _ in range(2))

    def step() -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def _job(step: Callable[[], Any], steps: int) -> Job:
    def job() -> object:
        loss = None
        for _ in range(steps):
            loss = step()
        assert loss is not None
        return loss.item()

    return job


def _versus_pytorch(
    make: Callable[[Any], Callable[[], Any]], steps: int, workers: int | None
) -> tuple[Job, Job]:
    import torch

    import gt

    _one_thread()
    gt.init(workers=workers)
    afterwards(gt.close)
    ours = _job(make(gt), steps)
    _until_compiled(ours)
    return ours, _job(make(torch), steps)


def _until_compiled(job: Job) -> None:
    """Train until nothing is left to compile, also of how a job ends."""
    from gt.client import session

    stats: dict[str, Any] = {}
    end = time.monotonic() + COMPILE_SECONDS
    quiet = 0
    while time.monotonic() < end:
        job()
        stats = next(iter(session.current().get_stats().values()))
        done = stats["compiled"] and not stats["compiling"]
        quiet = quiet + 1 if done else 0
        if quiet == 6:
            return
        if not done:
            time.sleep(0.5)
    raise TimeoutError(f"not compiled within {COMPILE_SECONDS} s: {stats}")


MLP = "training steps of an MLP (784-256-10, batch {}) with hot paths, {}"


@benchmark("100 " + MLP.format(64, "over processes"), "eager PyTorch", speed_at_least(1.1))
def gt_mlp_train() -> tuple[Job, Job]:
    return _versus_pytorch(lambda library: mlp(library, 64), 100, 1)


@benchmark("100 " + MLP.format(64, "embedded"), "eager PyTorch", speed_at_least(1.0))
def gt_mlp_train_embedded() -> tuple[Job, Job]:
    return _versus_pytorch(lambda library: mlp(library, 64), 100, None)


@benchmark("200 " + MLP.format(8, "over processes"), "eager PyTorch", speed_at_least(1.2))
def gt_mlp_train_small() -> tuple[Job, Job]:
    return _versus_pytorch(lambda library: mlp(library, 8), 200, 1)


GPT = "100 training steps of a GPT (2 layers, width 64, sequence 64, batch 8) with hot paths, "


@benchmark(GPT + "over processes", "eager PyTorch", speed_at_least(1.25))
def gt_transformer_train() -> tuple[Job, Job]:
    return _versus_pytorch(gpt, 100, 1)


@benchmark(GPT + "embedded", "eager PyTorch", speed_at_least(1.2))
def gt_transformer_train_embedded() -> tuple[Job, Job]:
    return _versus_pytorch(gpt, 100, None)


@benchmark("microseconds to look at an instruction of a training loop", "eager PyTorch", index_at_most(1))
def gt_hotpath_detect() -> tuple[Job, Job]:
    """The detector by itself, on the stream of 40 steps of the GPT: while it learns, and after."""
    from gt.stream.hotpath_detector import HotPathDetector

    stream = _stream(40)
    sizes = [stream[n : n + 256] for n in range(0, len(stream), 256)]

    def subject() -> float:
        detector = HotPathDetector()
        start = time.perf_counter()
        for batch in sizes:
            detector.feed(batch)
        return (time.perf_counter() - start) / len(stream) * 1e6

    return subject, lambda: statistics.fmean(range(1000))


@benchmark(GPT + "before anything is compiled", "the same without hot paths", cost_at_most(1.1))
def gt_hotpath_overhead() -> tuple[Job, Job]:
    import gt

    return _on_and_off(lambda: _job(gpt(gt), 100))


def _additions() -> object:
    import gt

    x, y = gt.zeros(10), gt.ones(10)
    for _ in range(10_000):
        x = x + y
    return x.sum().item()


@benchmark("10,000 small additions before they are compiled", "the same without hot paths", cost_at_most(1.1))
def gt_hotpath_small_ops() -> tuple[Job, Job]:
    return _on_and_off(lambda: _additions)


@benchmark("5,000 small ops that never repeat", "the same without hot paths", cost_at_most(1.1))
def gt_hotpath_unrepeated() -> tuple[Job, Job]:
    import gt

    rng = np.random.default_rng(0)
    ops = [gt.tanh, gt.exp, gt.sqrt, lambda x: x + 1, lambda x: x * x, lambda x: x[1:], lambda x: x.sum()]
    choices = rng.integers(0, len(ops), 5000)

    def program() -> object:
        rng.shuffle(choices)
        values = [gt.ones(9)]
        for choice in choices:
            x = values[-1]
            values.append(ops[choice](x if x.shape and x.shape[0] > 1 else values[0]))
        return values[-1].sum().item()

    return _on_and_off(lambda: program)


@benchmark(
    "the first 30 training steps of the GPT, the compiler at work beside them, nothing compiled before",
    "the same without hot paths",
    cost_at_most(1.1),
)
def gt_hotpath_first_steps() -> tuple[Job, Job]:
    import gt

    _one_thread()

    def first(auto: str) -> Job:
        def job() -> object:
            os.environ |= {"GT_AUTO_COMPILE": auto}
            with tempfile.TemporaryDirectory(prefix="gt-cache-") as cache:
                os.environ["GT_CACHE_DIR"] = cache
                with _client() as server:
                    server.worker.watches = auto == "1"
                    loss = _job(gpt(gt), 30)()
                    server.worker.hot_paths.compiler.close()
            return loss

        return job

    afterwards(lambda: os.environ.pop("GT_AUTO_COMPILE", None))
    return first("1"), first("0")


@contextlib.contextmanager
def _client() -> Iterator[Any]:
    """A server in this process, which `gt.*` uses."""
    from gt.client import Client, session
    from gt.server.embedded import LocalConnection, LocalServer

    server = LocalServer()
    client = Client(LocalConnection(server))
    before, session._current = session._current, client
    try:
        yield server
    finally:
        client.close()
        session._current = before


def _on_and_off(make: Callable[[], Job]) -> tuple[Job, Job]:
    """A job with hot paths, which are found and never compiled, and without."""
    from gt.client import session

    _one_thread()
    jobs = []
    for auto in ("1", "0"):
        os.environ |= {"GT_AUTO_COMPILE": auto, "GT_COMPILE_AFTER": "1000"}
        stack = contextlib.ExitStack()
        stack.enter_context(_client()).worker.watches = auto == "1"
        afterwards(stack.close)
        jobs.append((session._current, make()))
    afterwards(lambda: os.environ.pop("GT_AUTO_COMPILE", None))

    def using(client: Any, job: Job) -> Job:
        def run() -> object:
            session._current = client
            return job()

        return run

    return using(*jobs[0]), using(*jobs[1])


def _stream(steps: int) -> list[Any]:
    """The instructions of training steps."""
    import gt
    from gt.client import Client, session
    from gt.server.embedded import LocalConnection, LocalServer

    seen: list[Any] = []

    class Recorder:
        def process(self, cmd: Any) -> Any:
            seen.append(cmd)
            yield cmd

        def get_stats(self) -> dict[str, Any]:
            return {}

    client = Client(LocalConnection(LocalServer("numpy")), [Recorder()])
    before, session._current = session._current, client
    step = gpt(gt)
    for _ in range(steps):
        step()
    client.close()
    session._current = before
    return seen
