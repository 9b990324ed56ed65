"""ARCHITECTURE.md's list of the files that `a + b` and its read pass through is true."""

import os
import re
from pathlib import Path

import pytest

from gt import config
from gt.client import client
from gt.client.connection import MAX_UNACKNOWLEDGED_INSTRUCTIONS
from gt.dispatcher.fair_share import CHUNK_SECONDS
from gt.dispatcher.sharding.policy import SHARD_THRESHOLD
from gt.stream.sequences import MAX_SEQUENCE_OPS
from gt.stream.tokens import MIN_UNROLLED_OPS, TINY_LOOP_OPS
from gt.transport.connection import DEAD_SECONDS
from gt.transport.peers import PIECE
from gt.worker.limits.guard import LIMIT_SECONDS
from tests.programs import ROOT, run_python

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SECTION = PAGE[PAGE.index("### Follow `a + b` and its read") : PAGE.index("### The ideas")]
STEPS = re.split(r"\n(?=\d+\. )", SECTION.split("\n\n")[1])
"""The numbered list, which is the first paragraph."""
NAMED = set(re.findall(r"`(gt/[a-z_/]+\.py)`", SECTION))

TRACER = """
import os, signal, sys
from pathlib import Path

folder = Path(os.environ["TRACES"])
seen = set()

def note(frame, event, argument):
    if event == "call":
        seen.add(frame.f_code.co_filename)

def start(*_):
    seen.clear()
    (folder / f"{os.getpid()}.started").touch()
    sys.setprofile(note)

def stop(*_):
    sys.setprofile(None)
    unfinished = folder / f"{os.getpid()}.unfinished"
    unfinished.write_text("\\n".join([*sys.orig_argv, "", *seen]))
    unfinished.rename(folder / f"{os.getpid()}.trace")

signal.signal(signal.SIGUSR1, start)
signal.signal(signal.SIGUSR2, stop)
"""
"""Loaded by the program and the processes that it starts: notes the files of all functions that a
main thread calls between two signals."""

PROGRAM = """
import os, signal, time
from pathlib import Path
import numpy as np
import gt

client = gt.init(%s)
a, b = gt.from_numpy(np.ones(3, np.float32)), gt.from_numpy(np.ones(3, np.float32))
(a + b).numpy()  # loads the engine
local = getattr(client.connection, "_processes", None)
processes = [os.getpid(), *[one.pid for one in (local._processes if local else ())]]
folder = Path(os.environ["TRACES"])

def signal_all(number, ending):
    for process in processes:
        os.kill(process, number)
    while not all((folder / f"{process}.{ending}").exists() for process in processes):
        time.sleep(0.01)

signal_all(signal.SIGUSR1, "started")
total = a + b
read = total.numpy()
signal_all(signal.SIGUSR2, "trace")
assert read.tolist() == [2, 2, 2]
"""


def visited_modules(arguments: str, folder: Path) -> dict[str, set[str]]:
    """The modules of gt that `a + b` and its read visit: in the program, and in gt.server and gt.worker."""
    (folder / "sitecustomize.py").write_text(TRACER)
    path = os.pathsep.join([str(folder), str(ROOT)])
    run_python("-c", PROGRAM % arguments, environment={"PYTHONPATH": path, "TRACES": str(folder)}, fresh=True)
    found: dict[str, set[str]] = {}
    for trace in folder.glob("*.trace"):
        command, _, files = trace.read_text().partition("\n\n")
        role = next((one for one in ("gt.server", "gt.worker") if one in command.split("\n")), "program")
        assert role not in found
        inside = [Path(name) for name in files.split("\n") if Path(name).is_relative_to(ROOT / "gt")]
        found[role] = {name.relative_to(ROOT).as_posix() for name in inside}
    return found


def test_the_path_has_at_most_twelve_files_and_they_exist():
    assert [int(step.partition(".")[0]) for step in STEPS] == list(range(1, len(STEPS) + 1))
    assert len(STEPS) <= 12
    for name in NAMED:
        assert (ROOT / name).is_file(), name
    first = [re.search(r"`(gt/[a-z_/]+\.py)`", step) for step in STEPS]
    assert all(first), "each step names its file"


def test_the_functions_that_it_names_are_there():
    for step in STEPS:
        (file, *_), names = re.findall(r"`(gt/[a-z_/]+\.py)`", step), re.findall(r"`([a-z_]+)`", step)
        text = (ROOT / file).read_text()
        for name in set(names) - {"add"}:
            assert re.search(rf"\b{name}\b", text), f"{file} has no {name}"


EMBEDDED = {"program": {1, 2, 4, 5, 8, 9, 11, 12}}
OVER_PROCESSES = {"program": {1, 2, 4, 5, 6}, "gt.server": {7, 8, 9}, "gt.worker": {10, 11, 12}}


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [("", EMBEDDED), ("workers=1", OVER_PROCESSES)],
    ids=["embedded", "over processes"],
)
def test_a_real_addition_and_its_read_visit_the_modules_that_are_named(
    arguments: str, steps: dict[str, set[int]], tmp_path: Path
):
    visited = visited_modules(arguments, tmp_path)
    assert visited.keys() == steps.keys()
    for role, numbers in steps.items():
        engine = {name for name in visited[role] if name.startswith("gt/worker/engine/")}
        assert visited[role] - engine - NAMED == set(), role
        assert bool(engine) == (11 in numbers)
        files = {n: re.findall(r"`(gt/[a-z_/]+\.py)`", step)[0] for n, step in enumerate(STEPS, 1)}
        assert {n for n, file in files.items() if file in visited[role]} == numbers, role


def test_the_numbers_in_the_documents_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GT_COMPILE_AFTER", raising=False)
    names = ("stream", "hot-paths", "sharding", "transport")
    text = {name: " ".join((ROOT / f"docs/design/gt-{name}.md").read_text().split()) for name in names}
    assert f"after {client.BATCH} new tensors, or after ten milliseconds" in text["stream"]
    assert client.FLUSH_SECONDS == 0.01
    most = f"{MAX_UNACKNOWLEDGED_INSTRUCTIONS:,}"
    assert f"At most {most} instructions of a client are in flight" in text["stream"]
    assert f"Loops of a few ops become sequences of {TINY_LOOP_OPS}" in text["hot-paths"]
    assert "compiled after half a second of run time" in text["hot-paths"]
    assert config.compile_after() == 0.5
    assert MIN_UNROLLED_OPS == 16
    assert "Sixteen repeated ops have sixteen op names" in text["hot-paths"]
    assert "Chunks are cut to about twenty milliseconds" in text["stream"]
    assert CHUNK_SECONDS == 0.02
    assert f"in pieces of {PIECE >> 20} MB" in text["sharding"]
    assert "counts as gone after five seconds" in text["transport"]
    assert DEAD_SECONDS == 5.0
    assert "once a second it sets that as a limit" in text["transport"]
    assert LIMIT_SECONDS == 1.0
    assert f"more than {MAX_SEQUENCE_OPS} instructions" in (ROOT / "docs/pytorch.md").read_text()
    glossary = (ROOT / "docs/glossary.md").read_text()
    assert f"one after {client.BATCH} new tensors, after {client.FLUSH_SECONDS * 1000:.0f} ms, or" in glossary
    many = (ROOT / "docs/many-workers.md").read_text()
    assert f"A tensor of {SHARD_THRESHOLD} elements or more is split" in many
