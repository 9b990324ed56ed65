"""ARCHITECTURE.md's list of the files between a launch and a pixel is correct."""

import re
from pathlib import Path

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
        seen[frame.f_code.co_filename] = None

sys.setprofile(note)
triton_viz.trace("tracer")(kernel.double.kernel)
kernel.run()
data = page.get("/api/data")
cells = page.get("/api/tensor?tensor=x&columns=10&across=10&down=10")
sys.setprofile(None)
assert (data.status_code, cells.status_code) == (200, 200)
for name in seen:
    if Path(name).is_relative_to(root / "triton_viz"):
        print(Path(name).relative_to(root).as_posix())
"""


def files_of(step: str) -> list[str]:
    return re.findall(r"`((?:triton_viz|frontend)/[A-Za-z_/]+\.(?:py|ts))`", step)


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
        for name in re.findall(r"`([A-Za-z_/]+)`", step.replace(f"`{file}`", "")):
            assert name in text, f"{file} has no {name}"


def test_a_real_launch_and_its_page_visit_the_modules_that_are_named(tmp_path: Path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    visited = run_python("-c", TRACE, cwd=tmp_path).stdout.split()
    assert set(visited) - NAMED == set()
    files = [files_of(step)[0] for step in STEPS]
    assert [file for file in files if file.startswith("triton_viz/") and file not in visited] == []
