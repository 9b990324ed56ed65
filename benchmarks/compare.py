"""GT beside PyTorch, job by job and in turns: `python compare.py [host:port]`.

On the system that runs at the address, or at the default port (`python simple_launch.py --no-test`); if none
runs there, on one that this program starts. The first line says which.
"""

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.workloads import Job, jobs


def timed(job: Job) -> float:
    start = time.perf_counter()
    job()
    return (time.perf_counter() - start) * 1000


def main() -> None:
    import torch

    import gt
    from benchmarks.running_system import use_system

    print(f"PyTorch beside GT, on {use_system(*sys.argv[1:2])}")
    print(f"{'':<18} {'PyTorch':>11} {'GT':>11}   GT takes")
    for (name, theirs), (_, ours) in zip(jobs(torch), jobs(gt), strict=True):
        for job in (theirs, ours):
            job()
        pairs = [(timed(theirs), timed(ours)) for _ in range(20)]
        reference, subject = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{name:<18} {reference:8.3f} ms {subject:8.3f} ms   {ratio:5.2f}x")


if __name__ == "__main__":
    main()
