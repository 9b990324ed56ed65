"""GT's debug output through Python's logging: the output of each flag, and only errors by default."""

import logging
import math
from pathlib import Path

import pytest

import gt
from gt import logs
from gt.server.embedded import LocalServer
from gt.worker.compile import hotpaths
from tests.gt.helpers.hot_server import compiled
from tests.gt.helpers.servers import Cluster, free_port
from tests.programs import run_python

PROGRAM = "import gt\n{start}\nprint((gt.tensor([1.0, 2.0]) + 1).tolist())"


def shown(start: str = "", **flags: str) -> str:
    """A program's output on stderr."""
    done = run_python("-c", PROGRAM.format(start=start), environment=flags)
    assert done.stdout == "[2.0, 3.0]\n"
    return done.stderr


def test_the_client_logs_its_connection_and_its_operations():
    said = shown(GT_DEBUG_CLIENT="1").splitlines()
    assert said[0] == "[gt client] connected as c1 to a server in this program"
    assert said[-1] == "[gt client] c1 disconnects from the server in this program"
    assert "[gt client] CreateTensor tensor_id=0 shape=2 dtype=float32" in said
    assert any(line.startswith("[gt client] BinaryOp result=1 op=add") for line in said)
    assert "[gt client] the data of tensor 1: 8 bytes" in said


def test_over_processes_each_layer_logs_joining_and_leaving_peers():
    start = "gt.init(workers=1, engine='numpy')"
    flags = dict.fromkeys(("GT_DEBUG_CLIENT", "GT_DEBUG_DISPATCHER", "GT_DEBUG_WORKER"), "1")
    said = shown(start, **flags)
    for line in (
        r"[gt client] connecting to ipc:",
        r"[gt client] c1 disconnects from ipc:",
        r"[gt dispatcher] worker worker_0 registered; 1 in all",
        r"[gt dispatcher] client c1 connected; it uses worker_0",
        r"[gt dispatcher] c1 to worker_0: BinaryOp result=1 op=add",
        r"[gt dispatcher] client c1 disconnected",
        r"[gt worker] worker_0 (numpy) registered with ipc:",
        r"[gt worker] worker_0: c1: BinaryOp result=1 op=add",
    ):
        assert line in said, f"{line} is not in:\n{said}"


def test_a_dispatcher_logs_a_worker_that_leaves():
    running = Cluster()
    try:
        server = running.start_server(GT_DEBUG_DISPATCHER="1")
        running.start_worker("--id", "bob").kill()
        server.says("[gt dispatcher] worker bob registered; 1 in all")
        server.says("[gt dispatcher] worker bob left: bob is gone, and its tensors are lost")
    finally:
        running.stop()


def test_compilation_logs_detection_progress_and_slower_compiled_code(
    hot: LocalServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("GT_DEBUG_COMPILE", "1")
    x = gt.ones(64, 64)

    def steps(count: int) -> None:
        nonlocal x
        for _ in range(count):
            x = (x * 0.5 + 1.0).tanh().exp().log().relu().sigmoid() @ x
            for _ in range(3):
                x = x.tanh() + x.sigmoid() * 0.25
            x.sum().item()

    steps(30)
    compiled(hot)
    steps(10)
    (variant,) = [v for p in hot.worker.hot_paths._paths.values() for v in p.variants.values() if v.compiled]
    variant.best_eager = math.ulp(0.0)  # as if it had been measured so
    (code,) = variant.compiled
    monkeypatch.setattr(hotpaths, "_TRIAL_CALLS", code.replays + 5)
    steps(40)
    said = capsys.readouterr().err
    assert "[gt compile]" in said
    places = [
        said.index(text)
        for text in (
            ": hot path detected, ",
            ": first repeat of ",
            ", compiling it as ",
            ": compiled, ",
            ": slower compiled: ",
        )
    ]
    assert places == sorted(places)


def test_a_program_may_use_its_own_handlers(server: LocalServer, caplog: pytest.LogCaptureFixture, capsys):
    with caplog.at_level(logging.DEBUG, logger="gt.client"):
        (gt.ones(2) + 1).tolist()
    assert {(record.name, record.levelname) for record in caplog.records} == {("gt.client", "DEBUG")}
    assert any("op=add" in record.getMessage() for record in caplog.records)
    assert capsys.readouterr().err == "", "without the flag, nothing is written by GT itself"


def test_a_flag_may_change_while_the_program_runs(server: LocalServer, monkeypatch, capsys):
    monkeypatch.setenv("GT_DEBUG_WORKER", "1")
    (gt.ones(2) + 1).tolist()
    assert "op=add" in capsys.readouterr().err
    monkeypatch.delenv("GT_DEBUG_WORKER")
    (gt.ones(2) + 1).tolist()
    assert capsys.readouterr().err == ""
    assert not logging.getLogger("gt.worker").isEnabledFor(logging.DEBUG)


def test_errors_are_shown_without_any_flag(capsys):
    logs.error("something went wrong")
    assert capsys.readouterr().err == "[gt] something went wrong\n"


def test_no_layer_prints(tmp_path: Path):
    """Only command lines, and functions whose name says so, write to the terminal themselves."""
    code = (
        "import builtins, sys\n"
        "def refuse(*words, **_): sys.exit(f'printed: {words}')\n"
        "builtins.print = refuse\n"
        "import gt\n"
        "gt.init(engine='numpy')\n"
        "(gt.ones(3) + 1).tolist()\n"
        "try: gt.connect('localhost:" + str(free_port()) + "', timeout=0.2)\n"
        "except gt.errors.GTError: pass\n"
    )
    flags = ("VERBOSE", "DEBUG_CLIENT", "DEBUG_DISPATCHER", "DEBUG_WORKER", "DEBUG_COMPILE")
    run_python("-c", code, environment={f"GT_{flag}": "1" for flag in flags})
