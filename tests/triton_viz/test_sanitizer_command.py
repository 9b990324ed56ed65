"""`triton-sanitizer` runs unchanged programs, reports violations, and has exit code 1 if there are any."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.programs import ROOT, run_python

SCRIPT = """
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add_one(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1, mask=at < n)


if __name__ == "__main__":
    n = int(sys.argv[1])
    x = torch.empty(n) if "empty" in sys.argv else torch.arange(float(n))
    out = torch.zeros(n)
    add_one[(triton.cdiv(n, 4),)](x, out, n, BLOCK=4)
    print("sum", out.sum().item())
    sys.exit(3 if "fail" in sys.argv else 0)
"""
LINE = 1 + SCRIPT.split("\n").index("    tl.store(out + at, tl.load(x + at) + 1, mask=at < n)")

TESTS = """
import torch
from script import add_one


def test_right():
    add_one[(2,)](torch.zeros(8), torch.zeros(8), 8, BLOCK=4)


def test_wrong():
    out = torch.zeros(7)
    add_one[(2,)](torch.zeros(7), out, 7, BLOCK=4)
    assert out.tolist() == [1] * 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "test_script.py").write_text(TESTS)
    return tmp_path


def command(folder: Path, *arguments: str, code: int) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    environment = {"PYTHONPATH": str(ROOT)}
    whole = ("-m", "triton_viz.clients.sanitizer.sanitizer_command", *arguments)
    done = run_python(*whole, cwd=folder, fails=code != 0, environment=environment)
    assert done.returncode == code
    return done


def written(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_program_that_is_right_ends_as_ever(folder: Path):
    done = command(folder, "--initcheck", "script.py", "8", "fail", code=3)
    assert "sum 36.0" in done.stdout
    assert "2 proved" in done.stderr


def test_a_program_with_violations_continues_and_has_exit_code_one(folder: Path):
    done = command(folder, "--json", "found.json", "--sarif", "found.sarif", "script.py", "10", code=1)
    assert "sum 55.0" in done.stdout
    assert f"script.py:{LINE}" in done.stderr
    assert "mask=at < n" in done.stderr
    (issue,) = written(folder / "found.json")
    assert (issue["kind"], issue["tensor"], issue["index"], issue["program"]) == (
        "out of bounds",
        "x",
        [10],
        [2, 0, 0],
    )
    (result,) = written(folder / "found.sarif")["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == LINE


def test_tests_are_run_with_a_sanitizer(folder: Path):
    done = command(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_script.py", code=1)
    assert "2 passed" in done.stdout
    assert "x[7]" in done.stderr


def test_options_select_the_checks(folder: Path):
    done = command(folder, "--check-only", "script.py", "10", code=1)
    assert "sum 0.0" in done.stdout
    assert "x[10]" in done.stderr
    done = command(folder, "--initcheck", "script.py", "8", "empty", code=1)
    assert "nothing was written to it" in done.stderr


def test_aborting_is_an_error_of_the_program_and_is_reported(folder: Path):
    done = command(folder, "--abort-on-error", "--json", "found.json", "script.py", "10", code=1)
    assert "SanitizerError" in done.stderr
    assert "sum" not in done.stdout
    assert [issue["index"] for issue in written(folder / "found.json")] == [[10]]
