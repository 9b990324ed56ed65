"""The same five jobs for PyTorch and for GT: they have one API, so each is written once."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

Job = Callable[[], Any]


def jobs(library: Any) -> Iterator[tuple[str, Job]]:
    """Jobs by name, for `torch` or `gt`. Each ends by reading one number, so that the work is really done."""
    nn = library.nn
    mse_loss = nn.functional.mse_loss
    library.manual_seed(0)
    a, b = library.randn(1000, 1000), library.randn(1000, 1000)
    x, y = library.randn(64, 784), library.randn(64, 256)
    layer = nn.Linear(784, 256)

    def backward() -> None:
        layer.zero_grad()
        mse_loss(layer(x), y).backward()
        layer.weight.grad.sum().item()

    yield "matmul 1000x1000", lambda: (a @ b).sum().item()
    yield "linear forward", lambda: layer(x).sum().item()
    yield "mse loss", lambda: mse_loss(x, x * 0.5).item()
    yield "backward", backward
    for name in ("relu", "sigmoid", "tanh"):
        yield name, lambda name=name: getattr(a, name)().sum().item()


def milliseconds(job: Job, repeats: int = 20) -> float:
    """The median time a job takes."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def report(title: str, library: Any) -> None:
    """Run all jobs, and print what each takes."""
    print(title)
    for name, job in jobs(library):
        print(f"  {name:<18} {milliseconds(job):8.3f} ms")
