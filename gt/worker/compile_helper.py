"""The helper that compiles: `python -m gt.worker.compile_helper`, jobs in, and reports out."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from gt.worker.compiling import Job, Report
from gt.worker.graph import Graph, function_of


def main() -> None:
    """Compile what standard input asks for, until it ends."""
    os.nice(5)  # the worker goes first
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a compiler prints is no report
    while size := sys.stdin.buffer.read(4):
        job = msgspec.msgpack.decode(sys.stdin.buffer.read(int.from_bytes(size, "little")), type=Job)
        start, error = time.perf_counter(), ""
        try:
            compile_graph(job.graph, Path(job.path))
        except Exception as problem:  # noqa: BLE001 - whatever a compiler raises is its report
            first, *_ = str(problem).strip().splitlines() or [""]
            error = f"{type(problem).__name__}: {first}"
            if os.environ.get("GT_DEBUG_COMPILE", "0") != "0":
                import traceback

                traceback.print_exc()
        report = Report(job.graph.key, error, time.perf_counter() - start)
        reports.write(msgspec.json.encode(report) + b"\n")
        reports.flush()


def compile_graph(graph: Graph, path: Path) -> None:
    """Compile a graph into a file, which is there only when it is whole."""
    import torch
    from torch._inductor import aoti_compile_and_package

    from gt.worker.engine.base import load_engine

    torch.set_num_threads(graph.threads)  # the code is made for so many
    function = function_of(graph, load_engine("pytorch").functions)

    class Module(torch.nn.Module):
        def forward(self, *tensors: Any) -> Any:
            return function(*tensors)

    inputs = [torch.zeros(shape, dtype=getattr(torch, dtype)) for shape, dtype in graph.inputs]
    inputs.append(torch.full((graph.numbers,), 1.5, dtype=torch.float64))
    with torch.no_grad():
        program = torch.export.export(Module(), tuple(inputs))
        unfinished = path.with_suffix(f".{os.getpid()}.pt2")
        aoti_compile_and_package(program, package_path=str(unfinished))
    unfinished.replace(path)


if __name__ == "__main__":
    main()
