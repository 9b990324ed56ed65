"""ARCHITECTURE.md's list of the files that `a + b` and its read pass through is true."""

import re

import pytest

from tests.programs import ROOT, run_python

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SECTION = PAGE[PAGE.index("### Follow `a + b` and its read") : PAGE.index("### The ideas")]
STEPS = [
    line for line in re.split(r"\n(?=\d+\. )", SECTION.partition("\n\nOn the way")[0]) if line[0].isdigit()
]
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
