"""triton_viz: how fast a grid runs, and what tracing it costs."""

import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.harness import (
    Benchmark,
    Job,
    benchmark,
    cost_at_most,
    index_at_least,
    index_at_most,
    speed_at_least,
)

KERNELS = ("vector_add", "softmax", "matmul", "layer_norm", "attention")


def _ours(name: str, clients: object = ()) -> Job:
    """One run of a workload in our executor, which has been checked."""
    import torch

    import triton_viz
    from benchmarks.kernels import WORKLOADS

    work = WORKLOADS[name]()
    kernel = triton_viz.trace(clients)(work.kernel)  # type: ignore[arg-type] - no client, or a client's name

    def run() -> None:
        kernel[work.grid](**work.arguments)
        triton_viz.clear()

    run()
    torch.testing.assert_close(work.output, work.expected, atol=1e-3, rtol=1e-3)
    return run


def _execute(name: str) -> Benchmark:
    def prepare() -> tuple[Job, Job]:
        from benchmarks.interpreter import Interpreter

        interpreter = Interpreter()
        return _ours(name), lambda: interpreter.run(name)

    prepare.__name__ = f"tv_execute_{name}"
    return benchmark(
        f"{name.replace('_', ' ')}, all programs at once", "Triton's interpreter", speed_at_least(25)
    )(prepare)


for _name in KERNELS:
    _execute(_name)


@benchmark("geometric mean of the five kernels' speeds", "Triton's interpreter", index_at_least(100))
def tv_execute() -> tuple[Job, Job]:
    from benchmarks.interpreter import Interpreter

    interpreter = Interpreter()
    runs = {name: _ours(name) for name in KERNELS}
    latest: dict[str, float] = {}

    def reference() -> None:
        for name in KERNELS:
            latest[name] = interpreter.run(name)

    def subject() -> float:
        speeds = []
        for name, run in runs.items():
            theirs = latest[name] if latest else interpreter.run(name)
            speeds.append(theirs / statistics.median(_seconds(run) for _ in range(5)))
        return math.prod(speeds) ** (1 / len(speeds))

    return subject, reference


def _seconds(job: Callable[[], object]) -> float:
    begin = time.perf_counter()
    job()
    return time.perf_counter() - begin


@benchmark("the five kernels, traced", "the same, untraced", cost_at_most(1.4))
def tv_trace() -> tuple[Job, Job]:
    traced, untraced = ([_ours(name, clients) for name in KERNELS] for clients in ("tracer", ()))
    return lambda: [run() for run in traced], lambda: [run() for run in untraced]


@benchmark("the five kernels, profiled", "the same, untraced", cost_at_most(2))
def tv_profiler() -> tuple[Job, Job]:
    profiled, untraced = ([_ours(name, clients) for name in KERNELS] for clients in ("profiler", ()))
    return lambda: [run() for run in profiled], lambda: [run() for run in untraced]


@benchmark(
    "a vector add of 2,000,000 programs, proved without running it", "of 2,000 programs", cost_at_most(1.2)
)
def tv_sanitizer() -> tuple[Job, Job]:
    return _proved_add(2_000_000), _proved_add(2_000)


def _proved_add(programs: int) -> Job:
    """Prove one launch a few times over: once takes a millisecond."""
    import torch

    import triton_viz
    from benchmarks.kernels import vector_add
    from triton_viz.clients import Sanitizer

    block = 16
    x, y, out = (torch.empty(programs * block - 3) for _ in range(3))
    kernel = triton_viz.trace(Sanitizer(execute=False))(vector_add)

    def run() -> None:
        for _ in range(20):
            kernel[(programs,)](x, y, out, len(x), BLOCK=block)
            assert all(getattr(record, "verdict", "") == "ok" for record in triton_viz.launches[-1].records)
            triton_viz.clear()

    run()
    return run


def _decide(name: str) -> Benchmark:
    def prepare() -> tuple[Job, Job]:
        """In a new process, so that nothing is known yet; imports are not counted."""

        def decided() -> float:
            text = subprocess.run(
                [sys.executable, "-m", "benchmarks.deciding", name],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            return float(text)

        ours = _ours(name)
        return decided, ours

    prepare.__name__ = f"tv_sanitizer_{name}"
    return benchmark(
        f"seconds until {name.replace('_', ' ')} is proved, the first time",
        "running it",
        index_at_most(0.25),
    )(prepare)


for _name in KERNELS:
    _decide(_name)
