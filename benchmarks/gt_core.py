"""GT on one worker inside the program: what a small op costs, and how much of a large one is lost."""

import subprocess
import sys

import numpy as np

from benchmarks.harness import Job, benchmark, cost_at_most, seconds_at_most, speed_at_least


@benchmark(
    "1,000 additions of 10 elements, one after the other, one read at the end", "PyTorch", cost_at_most(3)
)
def gt_small_ops_embedded() -> tuple[Job, Job]:
    import torch

    import gt

    def subject() -> object:
        x, y = gt.zeros(10), gt.ones(10)
        for _ in range(1000):
            x = x + y
        return x.numpy()

    def reference() -> object:
        x, y = torch.zeros(10), torch.ones(10)
        for _ in range(1000):
            x = x + y
        return x.numpy()

    return subject, reference


@benchmark("a 1000 x 1000 matrix product, its result read", "PyTorch", speed_at_least(0.95))
def gt_matmul() -> tuple[Job, Job]:
    import torch

    import gt

    a, b = (np.random.default_rng(seed).standard_normal((1000, 1000), np.float32) for seed in (0, 1))
    ours = gt.from_numpy(a), gt.from_numpy(b)
    theirs = torch.from_numpy(a), torch.from_numpy(b)
    return lambda: (ours[0] @ ours[1]).sum().item(), lambda: (theirs[0] @ theirs[1]).sum().item()


@benchmark("100 MB to a worker and back", "np.copy twice", speed_at_least(0.5))
def gt_transfer() -> tuple[Job, Job]:
    import gt

    data = np.ones(25_000_000, np.float32)
    return lambda: gt.from_numpy(data).numpy(), lambda: data.copy().copy()


@benchmark("`import gt` in a new process", "import torch", seconds_at_most(0.3))
def gt_import() -> tuple[Job, Job]:
    def importing(name: str) -> Job:
        return lambda: subprocess.run([sys.executable, "-c", f"import {name}"], check=True)

    return importing("gt"), importing("torch")
