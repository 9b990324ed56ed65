"""Fixtures that every test may use."""

import contextlib
import gc
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import pytest

import triton_viz
from gt.client import Client
from gt.client import session as session_module
from gt.server.embedded import LocalConnection, LocalServer
from tests.gt.helpers.servers import Cluster, cluster, connect
from tests.moved import moved
from tests.thorough import THOROUGH, fewer

# Tests of hot paths compile, and say so; elsewhere a compiler would only take the others' time.
os.environ.setdefault("GT_COMPILE_AFTER", "inf")

# JAX compiles every shape it meets anew, which takes longer than all that tests then compute.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

# A shell starts background jobs with Ctrl-C ignored, and Python then leaves it so; tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest.register_assert_rewrite("tests.page.helpers.pages")  # so that it says what was not equal

# Elsewhere hypothesis looks for new cases every time; in CI the same commit gives the same answer.
hypothesis.settings.register_profile("tapestry", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("tapestry")


# JAX compiles every shape it meets anew, which takes longer than all else. Ops are tested on every engine;
# what is made of ops is not tested on JAX again.
ON_JAX_TOO = {
    "test_numerics",
    "test_autograd",
    "test_creation",
    "test_indexing",
    "test_in_place",
    "test_client",
}


def pytest_configure(config: pytest.Config) -> None:
    """Let `pytest tests/test_nn.py::test_linear` find a file that is in a folder of tests/."""
    config.args[:] = [moved(argument) for argument in config.args]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def wanted(item: pytest.Item) -> bool:
        if item.get_closest_marker("thorough") is not None and not THOROUGH:
            return False
        callspec = getattr(item, "callspec", None)
        on_jax = callspec is not None and callspec.params.get("client") == "jax"
        return not on_jax or item.path.stem in ON_JAX_TOO

    left_out = [item for item in items if not wanted(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if wanted(item)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector pass over modules and tests: it would take 0.5 s each time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Leave all to the collector again: extension modules report objects that are alive at exit as leaks."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Report how a worker process of pytest-xdist ended that crashed: its report says only that it did."""
    if error is not None:
        process = node.gateway._io.popen
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        print(f"\n{node.gateway.id}: exit status {process.returncode} ({error})", file=sys.stderr)


OF_EXTRAS = ("jax", "liger_kernel", "mpmath", "playwright", "ray")
"""Packages of extras: tests that need one which is not installed are skipped."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Skip a file that imports a package of an extra which is not installed."""
    report = yield
    missing = re.search(rf"No module named '({'|'.join(OF_EXTRAS)})\b", str(report.longrepr))
    if report.failed and missing is not None:
        report.outcome = "skipped"
        report.longrepr = (
            str(collector.path),
            1,
            f"Skipped: {missing[1]} is not installed, which is of an extra",
        )
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Give a test of hypothesis its number of examples, and put back its settings.

    They are wrapped once more for each case of a parametrized test: a thousand are too deep.
    """
    test = getattr(item, "function", None)
    before: hypothesis.settings | None = getattr(test, SETTINGS, None)
    if before is not None:
        setattr(test, SETTINGS, hypothesis.settings(before, max_examples=fewer(before.max_examples)))
    yield
    if before is not None:
        setattr(test, SETTINGS, before)


SETTINGS = "_hypothesis_internal_use_settings"


@pytest.fixture(scope="session")
def pytorch_cluster() -> Iterator[Cluster]:
    """A real server and a real worker, for all tests that only need one."""
    with cluster(workers=1, engine="pytorch") as running:
        yield running


@pytest.fixture(params=["pytorch", "numpy", "jax", "processes"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A GT system of its own; `gt.*` uses it. Embedded, once per engine, and over real processes."""
    if request.param == "processes":
        running: Cluster = request.getfixturevalue("pytorch_cluster")
        client = connect(running)
    else:
        if request.param == "jax":
            pytest.importorskip("jax", reason="an extra: pip install tapestry[jax]")
        client = Client(LocalConnection(LocalServer(request.param)))
    monkeypatch.setattr(session_module, "_current", client)
    yield client
    client.close()
    if request.param == "jax" and next(_jax_tests) % 100 == 99:
        import jax

        jax.clear_caches()  # every shape is compiled anew, and takes megabytes


_jax_tests = itertools.count()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """A server in this process that `gt.*` uses, for looking inside."""
    server = LocalServer()
    client = Client(LocalConnection(server))
    monkeypatch.setattr(session_module, "_current", client)
    yield server
    client.close()


@pytest.fixture
def no_launches() -> Iterator[None]:
    """Start from no launches, and put those of other tests back."""
    before = list(triton_viz.launches)
    triton_viz.clear()
    yield
    triton_viz.launches[:] = before


@pytest.fixture(params=["symbolic", "concrete", "one at a time", "threads"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way to run the sanitizer."""
    monkeypatch.setattr(
        triton_viz.config, "sanitizer", "concrete" if request.param == "concrete" else "symbolic"
    )
    monkeypatch.setattr(triton_viz.config, "vectorized", request.param != "one at a time")
    monkeypatch.setattr(triton_viz.config, "num_sms", 4 if request.param == "threads" else 1)
    return request.param


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each compiled call that is begun in the background from here on: whether it follows another."""
    from gt.worker.compile.hotpaths import Call

    followed: list[bool] = []
    start = Call.start

    def noted(call: Call, background: Any, before: Call | None = None) -> None:
        followed.append(before is not None)
        start(call, background, before)

    monkeypatch.setattr(Call, "start", noted)
    return followed
