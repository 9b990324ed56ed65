"""ARCHITECTURE.md's list of the files that `a + b` and its read pass through is true."""

import re

import pytest

from gt import config
from gt.client import client
from gt.client.connection import MAX_UNACKNOWLEDGED_INSTRUCTIONS
from gt.dispatcher.fair_share import CHUNK_SECONDS
from gt.stream.tokens import MIN_UNROLLED_OPS, TINY_LOOP_OPS
from gt.transport.peers import PIECE
from tests.programs import ROOT, run_python

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SECTION = PAGE[PAGE.index("### Follow `a + b` and its read") : PAGE.index("### The ideas")]
STEPS = re.split(r"\n(?=\d+\. )", SECTION.split("\n\n")[1])
"""The numbered list, which is the first paragraph."""
NAMED = set(re.findall(r"`(gt/[a-z_/]+\.py)`", SECTION))

TRACE = """
import sys
from pathlib import Path
import numpy as np
import gt

gt.init(%s)
a, b = gt.from_numpy(np.ones(3, np.float32)), gt.from_numpy(np.ones(3, np.float32))
(a + b).numpy()  # loads the engine
root = Path(gt.__file__).parents[1]
seen = set()

def note(frame, event, argument):
    if event == "call":
        seen.add(frame.f_code.co_filename)

sys.setprofile(note)
total = a + b
read = total.numpy()
sys.setprofile(None)
assert read.tolist() == [2, 2, 2]
for name in sorted(seen):
    if Path(name).is_relative_to(root / "gt"):
        print(Path(name).relative_to(root).as_posix())
"""


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


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [("", {1, 2, 4, 5, 8, 9, 11, 12}), ("workers=1", {1, 2, 4, 5, 6})],
    ids=["embedded", "client over processes"],
)
def test_a_real_addition_and_its_read_visit_the_modules_that_are_named(arguments: str, steps: set[int]):
    visited = set(run_python("-c", TRACE % arguments).stdout.split())
    engine = {name for name in visited if name.startswith("gt/worker/engine/")}
    assert visited - engine - NAMED == set()
    expected = {re.findall(r"`(gt/[a-z_/]+\.py)`", STEPS[n - 1])[0] for n in steps}
    assert expected <= visited


def test_the_numbers_in_the_design_pages_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GT_COMPILE_AFTER", raising=False)
    names = ("stream", "hot-paths", "sharding")
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
