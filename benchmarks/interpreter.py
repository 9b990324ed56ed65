"""Triton's own interpreter, in a process of its own: a kernel's reference.

It has to be asked for before Triton is imported, and it leaves Triton's language patched, so it runs apart
from ours. One line in runs a workload once; the answer is the seconds it took.
"""

import os
import subprocess
import sys
import time

from benchmarks.harness import afterwards


class Interpreter:
    """A child process that runs workloads in Triton's interpreter when told to."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.interpreter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TRITON_INTERPRET": "1"},
        )
        afterwards(self._end)

    def run(self, workload: str) -> float:
        """How many seconds it takes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(workload + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def _end(self) -> None:
        self._process.communicate()  # no more input: it ends


def main() -> None:
    import torch
    from triton.runtime.interpreter import InterpretedFunction

    from benchmarks.kernels import WORKLOADS

    made = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made[name] = WORKLOADS[name]()
        work = made[name]
        assert isinstance(work.kernel, InterpretedFunction)
        work.output.zero_()
        begin = time.perf_counter()
        work.kernel[work.grid](**work.arguments)
        seconds = time.perf_counter() - begin
        torch.testing.assert_close(work.output, work.expected, atol=1e-3, rtol=1e-3)
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
