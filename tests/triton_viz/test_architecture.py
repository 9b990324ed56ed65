"""ARCHITECTURE.md's list of the files between a launch and a pixel is correct."""

import re

import pytest

from tests.programs import ROOT, run_python

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
START = '### Follow a launch under `@trace("tracer")` to a pixel'
SECTION = PAGE[PAGE.index(START) : PAGE.index("### The ideas", PAGE.index(START))]
WALK, _, SKIPPED = SECTION.removeprefix(START).partition("\n\nOn the way")
STEPS = [line for line in re.split(r"\n(?=\d+\. )", WALK) if line[:1].isdigit()]
NAMED = set(re.findall(r"`(triton_viz/[a-z_/]+\.py)`", SECTION))

KERNEL = """
import torch
import triton
import triton.language as tl
import triton_viz

@triton_viz.trace("tracer")
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

x, out = torch.arange(100.0), torch.empty(100)

def run():
    double[(4,)](x, out, 100, BLOCK=32)
"""

TRACE = """
import sys
from pathlib import Path
import triton_viz
import kernel
from triton_viz.visualizer.interface import create_app

kernel.run()  # imports what is imported on first use
page = create_app().test_client()
root = Path(triton_viz.__file__).parents[1]
seen = {}

def note(frame, event, argument):
    if event == "call":
        seen[frame.f_code.co_filename, frame.f_code.co_qualname] = None

sys.setprofile(note)
triton_viz.trace("tracer")(kernel.double.kernel)
kernel.run()
data = page.get("/api/data")
cells = page.get("/api/tensor?tensor=x&columns=10&across=10&down=10")
sys.setprofile(None)
assert (data.status_code, cells.status_code) == (200, 200)
for name, function in seen:
    if Path(name).is_relative_to(root / "triton_viz"):
        print(Path(name).relative_to(root).as_posix(), function)
"""


def files_of(step: str) -> list[str]:
    return re.findall(r"`((?:triton_viz|frontend)/[A-Za-z_/]+\.(?:py|ts))`", step)


def names_in(step: str) -> list[str]:
    return re.findall(r"`([A-Za-z_][A-Za-z_.]*)`", step)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """The functions that a launch and its page call, each when it is called first: file and name."""
    folder = tmp_path_factory.mktemp("launch")
    (folder / "kernel.py").write_text(KERNEL)
    lines = run_python("-c", TRACE, cwd=folder).stdout.splitlines()
    return [(file, function) for file, _, function in (line.partition(" ") for line in lines)]


def test_the_path_has_at_most_fourteen_files_and_they_exist():
    assert [int(step.partition(".")[0]) for step in STEPS] == list(range(1, len(STEPS) + 1))
    assert 10 <= len(STEPS) <= 14
    assert [len(files_of(step)) for step in STEPS] == [1] * len(STEPS), "each step names its file"
    for name in (*NAMED, *(file for step in STEPS for file in files_of(step))):
        assert (ROOT / name).is_file(), name


def test_the_names_that_it_gives_are_in_the_files():
    for step in STEPS:
        (file,) = files_of(step)
        text = (ROOT / file).read_text()
        for name in names_in(step):
            assert name.rpartition(".")[2] in text, f"{file} has no {name}"


def test_a_real_launch_and_its_page_visit_the_modules_that_are_named(calls: list[tuple[str, str]]):
    visited = {file for file, _ in calls}
    assert visited - NAMED == set(), "these are called, and neither a step nor among those to skip"
    assert NAMED - visited == set(), "these are named, and not called"


def test_they_do_it_in_the_order_of_the_steps(calls: list[tuple[str, str]]):
    """A step begins with the first call of a function that it names, or else of any in its file."""
    begins = []
    for step in STEPS[:-1]:  # the last one is the browser's
        (file,) = files_of(step)
        in_file = [(number, function) for number, (path, function) in enumerate(calls) if path == file]
        named = [number for number, function in in_file if function in names_in(step)]
        begins.append(named[0] if named else in_file[0][0])
    assert begins == sorted(begins), [calls[number] for number in begins]
