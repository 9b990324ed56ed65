"""The process that compiles: it never keeps a worker waiting, and ends when no client needs it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import psutil
import pytest

import gt
from gt.client import session
from gt.server.embedded import LocalServer
from gt.worker.compile.compiling import Compiler, Helper, Job
from gt.worker.compile.graph import Graph, Node
from tests.gt.helpers.hot_server import stats
from tests.gt.helpers.servers import eventually
from tests.programs import TIMEOUT


def loop() -> list[float]:
    y = x = gt.tensor([0.5, -1.0, 2.0])
    for _ in range(20):
        y = (y * 0.5 + x).tanh().exp() * 0.25
        y = (y - x).sin()
        y.tolist()
    return y.tolist()


def compiler_threads() -> int:
    return sum(thread.name == "gt-compiler" for thread in threading.enumerate())


def test_without_a_folder_for_compiled_code_a_program_runs_eagerly(
    hot: LocalServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("GT_CACHE_DIR", str(tmp_path / "file"))
    first = loop()
    assert loop() == first
    (why,) = set(stats(hot)["failed_compilations"].values())
    assert "there is no folder for compiled code (GT_CACHE_DIR)" in why


def test_it_ends_when_the_last_client_has_left(hot: LocalServer):
    before = compiler_threads()
    compiler = hot.worker.hot_paths.compiler
    helper = compiler._helper = Helper(compiler._reports)
    process = helper.process
    assert gt.ones(1).tolist() == [1]
    session.current().close()
    eventually(lambda: process.poll() is not None)
    eventually(lambda: compiler_threads() == before)


def graph(ops: int, op: str = "sin") -> Graph:
    nodes = [Node(op, (n - 1,), {}, {}) for n in range(ops)]
    return Graph(tuple(nodes), (((4,), "float32"),), (ops - 1,), 0)


ENDLESS = """
import subprocess, sys
from gt.worker.compile import helper

def compile_for_ever(graph, path):
    child = subprocess.Popen(["sleep", "1000"])
    path.write_text(str(child.pid))
    child.wait()

helper.compile_graph, helper.LAST_SECONDS = compile_for_ever, 0.1
helper.main()
"""


def test_the_helper_ends_soon_after_its_worker(tmp_path: Path):
    """Also while it compiles, and with the compilers that it has started."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    path = tmp_path / "graph.so"
    job = msgspec.msgpack.encode(Job(graph(1), str(path)))
    process.stdin.write(len(job).to_bytes(4, "little") + job)
    process.stdin.flush()
    eventually(lambda: path.exists() and path.read_text())
    child = psutil.Process(int(path.read_text()))
    process.stdin.close()
    assert process.wait(TIMEOUT) == 1
    eventually(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_worker_does_not_wait_until_the_helper_takes_another_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A pipe holds 64 KB, and the process reads no job while it compiles another."""
    monkeypatch.setenv("GT_CACHE_DIR", str(tmp_path))
    compiler = Compiler()
    compiler.request(graph(8))
    assert compiler._helper is not None
    os.kill(compiler._helper.process.pid, signal.SIGSTOP)
    for ops in (20_000, 20_001):
        compiler.request(graph(ops))
        assert compiler.get(graph(ops).key) is None
    compiler.close()


def test_nothing_is_compiled_any_more_when_it_was_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A wait for the compiler would not end otherwise."""
    monkeypatch.setenv("GT_CACHE_DIR", str(tmp_path))
    compiler = Compiler()
    compiler.request(graph(8))
    assert compiler._helper is not None
    assert compiler.get_stats()["compiling"] == 1
    compiler._helper.kill()
    assert compiler.get_stats()["compiling"] == 0
    assert compiler.wait(0.1)
    compiler.close()


def test_graphs_that_the_helper_had_not_compiled_when_it_ended_are_requested_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("GT_CACHE_DIR", str(tmp_path))
    compiler = Compiler()
    first, second = graph(1, "no_such_op"), graph(2, "no_such_op")
    compiler.request(first)
    assert compiler._helper is not None
    os.kill(compiler._helper.process.pid, signal.SIGSTOP)
    compiler.request(second)
    compiler._helper.kill()
    compiler.end()
    assert compiler.get(second.key) is None
    eventually(lambda: compiler.get(second.key) == "KeyError: 'no_such_op'")
    compiler.close()


def test_a_graph_counts_as_compiled_when_it_can_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The helper reports a graph some time after its file is there."""
    monkeypatch.setenv("GT_CACHE_DIR", str(tmp_path))
    compiler, wanted = Compiler(), graph(8)
    compiler.request(wanted)
    assert compiler._helper is not None
    process = compiler._helper.process
    os.kill(process.pid, signal.SIGSTOP)
    compiler._requested[wanted.key].write_bytes(b"as from the helper of another worker")
    assert compiler.get(wanted.key) is None
    assert compiler.get_stats()["compiling"] == 1
    os.kill(process.pid, signal.SIGCONT)
    assert compiler.wait(TIMEOUT)
    assert "cannot be loaded" in str(compiler.get(wanted.key))
    compiler.close()
