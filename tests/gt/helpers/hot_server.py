"""A server in the test's process that compiles every sequence at once: the fixture `hot`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gt.client import Client, session
from gt.server.embedded import LocalConnection, LocalServer
from gt.worker.compile import hotpaths

COMPILER_TIMEOUT = 20_000.0
"""Seconds after which a compiler is taken to hang. It has a low priority, so that it hardly runs beside busy
processes: a minute of its time has then taken an hour."""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once for all tests, in whichever of pytest-xdist's processes they are."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "compiled"


@pytest.fixture
def hot(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[LocalServer]:
    """The server, which the test's tensors are on."""
    monkeypatch.setenv("GT_AUTO_COMPILE", "1")
    monkeypatch.setenv("GT_COMPILE_AFTER", "0")
    monkeypatch.setenv("GT_CACHE_DIR", str(cache))
    # Compiled code is kept even if it seems slower: on a busy machine, that says nothing.
    monkeypatch.setattr(hotpaths, "_TRIAL_CALLS", 0)
    server = LocalServer()
    client = Client(LocalConnection(server))
    monkeypatch.setattr(session, "_current", client)
    yield server
    client.close()
    server.worker.hot_paths.compiler.close()


def stats(server: LocalServer) -> dict[str, Any]:
    """The worker's statistics, after everything that was issued so far."""
    session.current().flush()
    return server.worker.get_stats()


def compiled(server: LocalServer) -> None:
    """Wait until everything that was asked for is compiled."""
    session.current().flush()
    assert server.worker.hot_paths.compiler.wait(COMPILER_TIMEOUT)


def compile_loop(server: LocalServer, run: Callable[[], object]) -> None:
    """Run a loop until its steps are known, and once more until they are compiled.

    At first it is not known where a step begins, or which results are read, so that other graphs would be
    compiled, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GT_COMPILE_AFTER", "inf")
        run()
    run()
    compiled(server)
