"""Compiles graphs in a helper process, while the worker continues.

A thread would share the interpreter lock with the worker, whose steps would stall. Compiled graphs are cached
in files, so that the next run of a program loads them.
"""

import contextlib
import functools
import hashlib
import os
import platform
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from gt import config
from gt.worker.compile.compiled_code import CompiledCode
from gt.worker.compile.graph import Graph


class Job(msgspec.Struct, frozen=True):
    """A request to the helper. On the pipe, 4 bytes with its size precede it."""

    graph: Graph
    path: str


class Report(msgspec.Struct, frozen=True):
    """The helper's reply: a line of JSON."""

    key: str
    error: str
    seconds: float


class Helper:
    """The helper process, and two threads that write its jobs and read its reports.

    While the helper compiles, it reads no further job, and a pipe buffers only a few. The threads keep the
    worker from waiting for that.
    """

    def __init__(self, reports: dict[str, Report]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gt.worker.compile.helper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if config.flag("GT_DEBUG_COMPILE") else subprocess.DEVNULL,
        )
        self._jobs: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=target, name="gt-compiler", daemon=True)
            for target in (
                functools.partial(_write, self.process, self._jobs),
                functools.partial(_listen, self.process, reports),
            )
        ]
        for thread in self._threads:
            thread.start()

    def send(self, job: Job) -> None:
        """Queue a job."""
        encoded = msgspec.msgpack.encode(job)  # JSON has no infinity
        self._jobs.put(len(encoded).to_bytes(4, "little") + encoded)

    def end(self) -> None:
        """Let the helper end when it has compiled what it received, so that this is cached, or after a
        minute."""
        self._jobs.put(None)

    def kill(self) -> None:
        """End the helper now, and wait until it has ended."""
        self.process.kill()
        self.end()
        for thread in self._threads:
            thread.join(10)


def _write(process: subprocess.Popen[bytes], jobs: "queue.SimpleQueue[bytes | None]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError), process.stdin:  # it has ended
        while (job := jobs.get()) is not None:
            process.stdin.write(job)
            process.stdin.flush()


def _listen(process: subprocess.Popen[bytes], reports: dict[str, Report]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            with contextlib.suppress(msgspec.DecodeError):
                report = msgspec.json.decode(line, type=Report)
                reports[report.key] = report
    process.wait()


class Compiler:
    """Compiled graphs by key: loads them from the cache, or has a helper process compile them."""

    def __init__(self) -> None:
        self._runners: dict[str, CompiledCode] = {}
        self._failed: dict[str, str] = {}
        self._requested: dict[str, Path] = {}
        self._open: dict[str, Graph] = {}
        """The graphs that were requested and are not loaded yet."""
        self._reports: dict[str, Report] = {}
        self._helper: Helper | None = None
        self._seconds = 0.0
        self._loaded_from_cache = 0

    def request(self, graph: Graph) -> None:
        """Request the compilation of a graph, unless it is compiled or requested already."""
        key = graph.key
        if key in self._requested or key in self._failed:
            return
        try:
            path = self._requested[key] = cache_folder() / f"{key}.so"
        except OSError as error:
            self._failed[key] = f"there is no folder for compiled code (GT_CACHE_DIR): {error}"
            return
        self._open[key] = graph
        if path.exists():
            self._loaded_from_cache += 1
            return
        try:
            if self._helper is None or self._helper.process.poll() is not None:
                self._helper = Helper(self._reports)
            self._helper.send(Job(graph, str(path)))
        except OSError as error:
            self._failed[key] = f"the compiler cannot be started: {error}"

    def get(self, key: str) -> CompiledCode | str | None:
        """The compiled graph; None if it is not ready, or the error if it cannot be compiled."""
        if key in self._runners:
            return self._runners[key]
        if key not in self._requested and key not in self._failed:  # the helper ended before
            self.request(self._open[key])
        if key in self._failed:
            return self._failed[key]
        report = self._reports.get(key)
        path = self._requested[key]
        if report is not None and report.error:
            self._failed[key] = report.error
            return report.error
        if not self._is_ready(key):
            if self._helper is not None and self._helper.process.poll() is not None:
                self._failed[key] = f"the compiler ended with code {self._helper.process.returncode}"
            return None
        if report is not None:
            self._seconds += report.seconds
        try:
            runner = self._runners[key] = CompiledCode(path)
        except Exception as error:  # noqa: BLE001 - the file may be of another release, or incomplete
            self._failed[key] = f"{path.name} cannot be loaded: {type(error).__name__}: {error}"
            with contextlib.suppress(OSError):
                path.unlink()
            return self._failed[key]
        del self._open[key]
        return runner

    def cached(self, key: str) -> bool:
        """Whether a graph was in the cache when it was requested."""
        return key in self._requested and self._requested[key].exists()

    def seconds(self, key: str) -> float:
        """How many seconds the helper took for a graph; 0 if it did not compile it."""
        return self._reports[key].seconds if key in self._reports else 0.0

    def wait(self, seconds: float) -> bool:
        """Wait until all requested graphs are compiled, up to a limit; returns whether they are."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self._remaining:
                return True
            time.sleep(0.05)
        return False

    @property
    def _remaining(self) -> int:
        """The number of graphs that the helper has not compiled yet; 0 if it has ended."""
        if self._helper is None or self._helper.process.poll() is not None:
            return 0
        ended = self._runners.keys() | self._failed.keys()
        return sum(key not in ended and not self._is_ready(key) for key in self._requested)

    def _is_ready(self, key: str) -> bool:
        """Whether a requested graph was in the cache, or the helper has reported it: after that, `get` does
        not wait for it."""
        return key in self._reports or (self._loaded_from_cache > 0 and self._requested[key].exists())

    def end(self) -> None:
        """Let the helper end: see `Helper.end`. It is started again when another graph is needed."""
        if self._helper is not None:
            self._helper.end()
            self._helper = None
            for key in self._open.keys() - self._failed.keys() - self._reports.keys():
                del self._requested[key]

    def close(self) -> None:
        """End the helper now."""
        if self._helper is not None:
            self._helper.kill()

    def get_stats(self) -> dict[str, Any]:
        """Counts of compiled, cached and failed graphs."""
        return {
            "compiled": len(self._runners),
            "compiling": self._remaining,
            "compile_seconds": round(self._seconds, 3),
            "from_cache": self._loaded_from_cache,
            "failed_compilations": dict(self._failed),
        }


@functools.cache
def _recipe() -> str:
    """A hash of the sources that compiled graphs depend on: the compiler's settings and the ops."""
    here = Path(__file__).parent
    sources = [
        here / "helper.py",
        here / "graph.py",
        *sorted((here.parent / "engine" / "torch").glob("*.py")),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def cache_folder() -> Path:
    """The cache folder for this release of PyTorch, this processor and this recipe."""
    import torch

    base = os.environ.get("GT_CACHE_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gt"
    )
    kind = f"torch-{torch.__version__}-{platform.machine()}-{torch.backends.cpu.get_cpu_capability()}"
    folder = Path(base, "hotpaths", f"{kind}-{_recipe()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
