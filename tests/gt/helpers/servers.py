"""Real servers and workers for tests: processes of their own, on loopback, ended with the test."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gt.client import Client
from gt.client.connection import RemoteConnection
from tests.programs import TIMEOUT

ROOT = Path(__file__).parents[3]

SETTINGS = {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "GT_COMPILE_AFTER": "inf"}
"""What processes start with. A compiler would take the other tests' time: tests that need one ask for it."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def eventually(done: Callable[[], Any], what: str = "", limit: float = TIMEOUT) -> Any:
    """Call `done` until it returns a true value, and return that. Only a hang takes `limit` seconds."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        result = done()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError(f"not within {limit:.0f} s: {what or done}")


class Process:
    """`python ARGUMENTS`, its output kept."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        # A file, not a pipe: a pipe that is not read fills up, and blocks the process that writes to it.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in stop()
        clean = {k: v for k, v in os.environ.items() if not k.startswith("GT_")}
        self.popen = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=self._file,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=clean | SETTINGS | environment,
        )
        self.output = ""

    @property
    def pid(self) -> int:
        return self.popen.pid

    def read(self) -> str:
        """All it has printed so far."""
        size = os.fstat(self._file.fileno()).st_size
        self.output = os.pread(self._file.fileno(), size, 0).decode()
        return self.output

    def says(self, text: str) -> str:
        """Wait until it has printed this."""
        eventually(lambda: text in self.read() or self._ended_without(text), repr(text))
        return self.output

    def _ended_without(self, text: str) -> bool:
        if self.popen.poll() is not None and text not in self.read():
            raise AssertionError(f"it ended without saying {text!r}: {self.output!r}")
        return False

    def ends(self) -> int:
        """Wait for its end; the result is its exit code."""
        code = self.popen.wait(TIMEOUT)
        self.read()
        return code

    def interrupt(self) -> int:
        """Press Ctrl-C, and wait."""
        self.popen.send_signal(signal.SIGINT)
        return self.ends()

    def kill(self) -> None:
        """End it without a chance to say anything."""
        self.popen.kill()
        self.popen.wait()

    def stop(self) -> None:
        """End it if it has not ended."""
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(5)  # one that is stopped hears nothing
            except subprocess.TimeoutExpired:
                self.kill()
        self._file.close()


class Cluster:
    """A server on a port of its own, and workers."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.processes: list[Process] = []
        self.server: Process | None = None

    def run(self, *arguments: str, **environment: str) -> Process:
        """`python ARGUMENTS`, ended with the test."""
        process = Process(*arguments, **environment)
        self.processes.append(process)
        return process

    def start_server(self, *arguments: str, **environment: str) -> Process:
        self.server = self.run("-m", "gt.server", "-p", str(self.port), *arguments, **environment)
        self.server.says("server ready")
        return self.server

    def start_worker(self, *arguments: str, engine: str = "numpy", ready: bool = True) -> Process:
        worker = self.run(
            "-m", "gt.worker", "--host", "127.0.0.1", "-p", str(self.port), "--engine", engine, *arguments
        )
        if ready:
            worker.says("is ready")
        return worker

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()


@contextlib.contextmanager
def cluster(workers: int = 1, engine: str = "numpy") -> Iterator[Cluster]:
    """A running server with workers."""
    running = Cluster()
    try:
        running.start_server()
        for _ in range(workers):
            running.start_worker(engine=engine)
        yield running
    finally:
        running.stop()


def connect(running: Cluster) -> Client:
    """Another client of a server."""
    return Client(RemoteConnection(running.address, timeout=TIMEOUT))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def resident_bytes(pid: int) -> int:
    """How much memory a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def empty() -> Iterator[Cluster]:
    """A place for a server, and nothing running yet."""
    running = Cluster()
    yield running
    running.stop()


@pytest.fixture
def running(empty: Cluster) -> Cluster:
    """A server and a worker."""
    empty.start_server()
    empty.start_worker()
    return empty


def works(client: Client) -> bool:
    """Whether a server executes a client's instructions."""
    return client.fetch(client.create(np.ones(2))).tolist() == [1, 1]
