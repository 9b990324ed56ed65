"""Proves one workload, the first thing in a process, and prints the seconds it took after the imports."""

import sys
import time


def main() -> None:
    """Decide the workload that the command line names."""
    import z3  # noqa: F401 - an import, and not part of the time

    import triton_viz
    from benchmarks.kernels import WORKLOADS
    from triton_viz.clients import Sanitizer

    work = WORKLOADS[sys.argv[1]]()
    kernel = triton_viz.trace(Sanitizer(execute=False))(work.kernel)
    begin = time.perf_counter()
    kernel[work.grid](**work.arguments)
    seconds = time.perf_counter() - begin
    verdicts = [getattr(record, "verdict", "") for record in triton_viz.launches[-1].records]
    assert verdicts
    assert set(verdicts) == {"ok"}, verdicts
    print(seconds)


if __name__ == "__main__":
    main()
