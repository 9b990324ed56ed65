"""Compiling off to the side: a helper process compiles graphs while the worker goes on.

A thread would not do: it shares the interpreter with the worker, whose steps would stall. What was compiled
is kept in files, so the second run of a program finds it at once.
"""

import contextlib
import functools
import hashlib
import os
import platform
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
    """What the helper is asked for: its size in 4 bytes, and then itself."""

    graph: Graph
    path: str


class Report(msgspec.Struct, frozen=True):
    """What it answers: a line of JSON."""

    key: str
    error: str
    seconds: float


class Compiler:
    """Compiled graphs by their keys: those in the cache, and those that a helper is asked to compile."""

    def __init__(self) -> None:
        self._runners: dict[str, CompiledCode] = {}
        self._failed: dict[str, str] = {}
        self._asked: dict[str, Path] = {}
        self._reports: dict[str, Report] = {}
        self._helper: subprocess.Popen[bytes] | None = None
        self._seconds = 0.0
        self._loaded_from_cache = 0

    def request(self, graph: Graph) -> None:
        """Have a graph compiled, unless that was done before."""
        key = graph.key
        if key in self._asked or key in self._failed:
            return
        path = self._asked[key] = cache_folder() / f"{key}.so"
        if path.exists():
            self._loaded_from_cache += 1
            return
        try:
            helper = self._start()
            assert helper.stdin is not None
            job = msgspec.msgpack.encode(Job(graph, str(path)))  # JSON has no infinity
            helper.stdin.write(len(job).to_bytes(4, "little") + job)
            helper.stdin.flush()
        except OSError as error:
            self._failed[key] = f"the compiler cannot be started: {error}"

    def get(self, key: str) -> CompiledCode | str | None:
        """What runs a graph; None if it is not ready, a text that says why if it never will be."""
        if key in self._runners:
            return self._runners[key]
        if key in self._failed:
            return self._failed[key]
        report = self._reports.get(key)
        path = self._asked[key]
        if report is not None and report.error:
            self._failed[key] = report.error
            return report.error
        if report is None and not (self._loaded_from_cache and path.exists()):
            if self._helper is not None and self._helper.poll() is not None:
                self._failed[key] = f"the compiler ended with code {self._helper.returncode}"
            return None
        if report is not None:
            self._seconds += report.seconds
        try:
            runner = self._runners[key] = CompiledCode(path)
        except Exception as error:  # noqa: BLE001 - a file that another release left, or half of one
            self._failed[key] = f"{path.name} cannot be loaded: {type(error).__name__}: {error}"
            with contextlib.suppress(OSError):
                path.unlink()
            return self._failed[key]
        return runner

    def cached(self, key: str) -> bool:
        """Whether what was asked for was there already."""
        return self._asked[key].exists()

    def seconds(self, key: str) -> float:
        """How long the helper took for a graph; 0 if it was not asked."""
        return self._reports[key].seconds if key in self._reports else 0.0

    def _start(self) -> subprocess.Popen[bytes]:
        if self._helper is None or self._helper.poll() is not None:
            self._helper = subprocess.Popen(
                [sys.executable, "-m", "gt.worker.compile.helper"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if config.flag("GT_DEBUG_COMPILE") else subprocess.DEVNULL,
            )
            threading.Thread(
                target=self._listen, args=(self._helper,), name="gt-compiler", daemon=True
            ).start()
        return self._helper

    def _listen(self, helper: subprocess.Popen[bytes]) -> None:
        assert helper.stdout is not None
        for line in helper.stdout:
            with contextlib.suppress(msgspec.DecodeError):
                report = msgspec.json.decode(line, type=Report)
                self._reports[report.key] = report

    def wait(self, seconds: float) -> bool:
        """Wait until all that was asked for is compiled; whether it is."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self._under_way:
                return True
            time.sleep(0.05)
        return False

    @property
    def _under_way(self) -> int:
        """How many graphs the helper is still to compile."""
        ended = self._runners.keys() | self._failed.keys() | self._reports.keys()
        return sum(key not in ended and not path.exists() for key, path in self._asked.items())

    def close(self) -> None:
        """End the helper."""
        if self._helper is not None:
            self._helper.kill()
            for pipe in (self._helper.stdin, self._helper.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._helper.wait(10)

    def get_stats(self) -> dict[str, Any]:
        """What was compiled."""
        return {
            "compiled": len(self._runners),
            "compiling": self._under_way,
            "compile_seconds": round(self._seconds, 3),
            "from_cache": self._loaded_from_cache,
            "failed_compilations": dict(self._failed),
        }


@functools.cache
def _recipe() -> str:
    """A name for what graphs are made of: how they are compiled, and what ops compute."""
    here = Path(__file__).parent
    sources = [
        here / "helper.py",
        here / "background.cpp",
        here / "graph.py",
        *sorted((here.parent / "engine" / "torch").glob("*.py")),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def cache_folder() -> Path:
    """Where compiled graphs are kept: for each release of PyTorch, kind of machine and recipe apart."""
    import torch

    base = os.environ.get("GT_CACHE_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gt"
    )
    kind = f"torch-{torch.__version__}-{platform.machine()}-{torch.backends.cpu.get_cpu_capability()}"
    folder = Path(base, "hotpaths", f"{kind}-{_recipe()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
