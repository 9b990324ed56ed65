"""Kernels run on an older release of Triton: a sample of the tests (`make test-triton-old` runs all)."""

import re
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT, run_python

NUMBER = re.findall(r"^OLDER_TRITON \?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
OLDER = Path(sys.prefix) / f"triton-{NUMBER[0]}"
"""The folder in which `make test` installed it."""

pytestmark = pytest.mark.skipif(
    not (OLDER / "triton").exists(), reason=f"Triton {NUMBER[0]} is not installed: `make test` does it"
)

SAMPLED = ("trace", "trace_file", "grid", "flow", "wrappers", "standins", "libraries", "libdevice")


def on_the_older_release(*arguments: str) -> str:
    return run_python(*arguments, environment={"PYTHONPATH": str(OLDER)}).stdout


def test_the_older_release_is_imported():
    assert on_the_older_release("-c", "import triton; print(triton.__version__)").strip() == NUMBER[0]


def test_a_sample_of_the_tests_passes_on_the_older_release():
    files = [f"tests/triton_viz/test_{name}.py" for name in SAMPLED]
    said = on_the_older_release("-m", "pytest", "-p", "tests.sampling", "--every", "20", "-rs", *files)
    passed = re.search(r"(\d+) passed", said)
    assert passed, said
    assert int(passed[1]) > 120, said
    assert "this release of Triton lacks block pointers" not in said


def test_block_pointers_that_a_loop_moves_are_followed_on_the_older_release():
    said = on_the_older_release("-m", "pytest", "tests/triton_viz/test_symbolic.py", "-k", "block_pointer")
    assert re.search(r"[1-9]\d* passed", said), said
