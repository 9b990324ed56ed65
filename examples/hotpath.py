"""Watch GT detect the repeated sequences of a training loop, compile them, and run faster.

    python -m examples.hotpath

Trains a small network eagerly, and then with hot paths; prints the sequences that were detected and compiled,
and the speedup. Compilation takes some seconds in another process, while the training continues. The worker
computes with one thread: for so small a network, several would mostly wait for each other.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gt
from gt.client import session

STEPS = 300
COMPILE_SECONDS = 1800
"""Seconds to wait for the compiler, at the most."""


def make_step() -> Callable[[], Any]:
    """A training step of an MLP."""
    gt.manual_seed(0)
    rng = np.random.default_rng(0)
    x = gt.from_numpy(rng.standard_normal((8, 784), np.float32))
    y = gt.from_numpy(rng.integers(0, 10, 8))
    model = gt.nn.Sequential(gt.nn.Linear(784, 256), gt.nn.ReLU(), gt.nn.Linear(256, 10))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.01)

    def step() -> Any:
        optimizer.zero_grad()
        loss = gt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def speed(step: Callable[[], Any]) -> tuple[float, float]:
    """Steps a second, and the last loss."""
    start = time.perf_counter()
    loss = None
    for _ in range(STEPS):
        loss = step()
    assert loss is not None
    last = loss.item()  # waits for all of it
    return STEPS / (time.perf_counter() - start), last


def start() -> None:
    """A worker that is ready to compute."""
    gt.init(workers=1)
    (gt.ones(2) + 1).tolist()


def stats() -> dict[str, Any]:
    """The worker's statistics."""
    return next(iter(session.current().get_stats().values()))


def main() -> None:
    os.environ["GT_AUTO_COMPILE"] = "0"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start()
    eager, loss = speed(make_step())
    print(f"eagerly:   {eager:6.0f} steps a second, loss {loss:.4f} after {STEPS}")

    os.environ |= {"GT_AUTO_COMPILE": "1", "GT_COMPILE_AFTER": os.environ.get("GT_COMPILE_AFTER", "0.1")}
    start()
    step = make_step()
    found, loss = speed(step)
    print(f"found:     {found:6.0f} steps a second, loss {loss:.4f} after {STEPS}")
    now = stats()
    print(f"           {now['hot_sequences']} sequence(s), {now['hot_instructions']} instructions of repeats")
    end = time.monotonic() + COMPILE_SECONDS
    while time.monotonic() < end and (now["compiling"] or not now["compiled"]):
        speed(step)
        now = stats()
        if now["failed_compilations"]:
            print(f"           not compiled: {now['failed_compilations']}")
            break
    best = max(speed(step)[0] for _ in range(3))
    now = stats()
    print(f"compiled:  {best:6.0f} steps a second, {best / eager:.2f} times as fast")
    source = "found in the cache" if now["from_cache"] else f"compiled in {now['compile_seconds']:.0f} s"
    print(f"           {now['compiled']} graph(s), {source}, {now['replays']} replays")
    for why, times in now["fallbacks"].items():
        print(f"           ran eagerly {times} time(s): {why}")
    gt.close()


if __name__ == "__main__":
    main()
