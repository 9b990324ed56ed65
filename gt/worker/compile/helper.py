"""The helper process that compiles: `python -m gt.worker.compile.helper` reads jobs and writes reports."""

import contextlib
import math
import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from gt.worker.compile.compiling import Job, Report
from gt.worker.compile.graph import Graph, function_of

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None


LAST_SECONDS = 60.0
"""How long the helper goes on after its worker has ended, so that the next program finds the graph in the
cache. On a busy machine, a large graph would take many minutes more."""


def main() -> None:
    """Compile the jobs that arrive on standard input, until it ends."""
    os.nice(5)  # lower priority than the worker
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of the compiler must not mix with reports
    jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
    while (job := jobs.get()) is not None:
        start, error = time.perf_counter(), ""
        try:
            path = Path(job.path)
            with _alone(path.with_suffix(".lock")):
                if not path.exists():  # another worker's helper may have compiled it
                    compile_graph(job.graph, path)
        except Exception as problem:  # noqa: BLE001 - any error of the compiler is reported
            first, *_ = str(problem).strip().splitlines() or [""]
            error = f"{type(problem).__name__}: {first}"
            if os.environ.get("GT_DEBUG_COMPILE", "0") != "0":
                import traceback

                traceback.print_exc()
        report = Report(job.graph.key, error, time.perf_counter() - start)
        with contextlib.suppress(BrokenPipeError):  # the worker has ended
            reports.write(msgspec.json.encode(report) + b"\n")
            reports.flush()


def _receive(jobs: "queue.SimpleQueue[Job | None]") -> None:
    """Queue jobs until the worker ends; then let the helper end, soon."""
    while size := sys.stdin.buffer.read(4):
        jobs.put(msgspec.msgpack.decode(sys.stdin.buffer.read(int.from_bytes(size, "little")), type=Job))
    jobs.put(None)
    time.sleep(LAST_SECONDS)
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    os._exit(1)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a file lock, so that one helper compiles at a time. It is released if this process ends."""
    with path.open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_graph(graph: Graph, path: Path) -> None:
    """Compile a graph into a file, which is renamed into place when it is complete."""
    import torch
    from torch._inductor import aot_compile

    from gt.worker.engine.base import load_engine
    from gt.worker.engine.torch import aten

    torch.set_num_threads(graph.threads)  # the code is generated for this number
    functions = load_engine("pytorch").functions
    replaced = _REPLACEMENTS | {op: function for op, (_, function) in aten.COMPILED_FORMS.items()}
    function = function_of(graph, {name: replaced.get(name) or functions[name] for name in _ops(graph)})

    class Module(torch.nn.Module):
        def forward(self, *tensors: Any) -> Any:
            return function(*tensors)

    inputs = [torch.zeros(shape, dtype=getattr(torch, dtype)) for shape, dtype in graph.inputs]
    inputs.append(torch.full((graph.numbers,), 1.5, dtype=torch.float64))
    with torch.no_grad():
        program = torch.export.export(Module(), tuple(inputs))
        made: Any = aot_compile(program.module(), tuple(inputs), options=_OPTIONS)
    unfinished = path.with_suffix(f".{os.getpid()}.so")
    shutil.copyfile(made, unfinished)
    unfinished.replace(path)


_OPTIONS = {
    "aot_inductor.package": False,
    # For products of many small matrices, as in attention, also try generated code instead of the library:
    # this saves 3 to 4 % of a GPT's step, whose compilation takes 45 s instead of 30.
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "CPP,ATEN",
}


def _ops(graph: Graph) -> set[str]:
    return {node.op for node in graph.nodes}


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """A linear layer whose bias is added separately, so that the addition is fused with the ops that follow.

    The compiler would combine an adjacent product and bias into one call, which first copies the bias to all
    rows. A reshape between them prevents that.
    """
    product = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) @ weight.t()
    product = product.reshape(1, *x.shape[:-1], weight.shape[0])
    return (product if bias is None else product + bias)[0]


_REPLACEMENTS: dict[str, Any] = {"linear": _linear}
"""Replacements for ops that the compiler optimizes better in another form."""


if __name__ == "__main__":
    main()
