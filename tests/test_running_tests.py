"""Running the tests: `pytest -v` names them, and those of an extra that is not installed are skipped."""

import re

import pytest

from tests.programs import run_python

WITHOUT = """
import sys, pytest

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.exit(pytest.main(["-p", "no:cacheprovider", "-v", "-rs", *{tests!r}]))
"""


TESTS = [
    "tests/gt/test_numerics.py::test_addition",
    "tests/gt/test_creation.py::test_random_numbers_are_the_same_on_every_engine_and_fit_their_distribution",
    "tests/gt/test_client.py::test_every_row_names_a_function_that_exists_on_every_engine",
    "tests/gt/test_sharding.py::test_workers_of_different_engines_share_a_tensor",
]
FILES = [
    "tests/triton_viz/test_libdevice_values.py",
    "tests/triton_viz/test_liger.py",
    "tests/page/test_page_cluster.py",
]


@pytest.fixture(scope="module")
def shown() -> str:
    """What is shown by a run of some tests where the packages of extras are not installed."""
    packages = ("jax", "mpmath", "liger_kernel", "playwright")
    return run_python("-c", WITHOUT.format(packages=packages, tests=TESTS + FILES), fresh=True).stdout


def test_pytest_v_shows_the_names_of_tests(shown: str):
    assert re.search(r"tests/gt/test_numerics.py::test_addition\[pytorch\] PASSED", shown)


def test_tests_of_an_extra_that_is_not_installed_are_skipped(shown: str):
    assert re.search(r"test_addition\[numpy\] PASSED", shown)
    assert re.search(r"test_addition\[jax\] SKIPPED", shown)
    assert re.search(r"\b7 skipped", shown), "four tests and three files"
    assert "pip install tapestry[jax]" in shown


def test_files_that_import_what_is_not_installed_are_skipped(shown: str):
    for package in ("mpmath", "liger_kernel", "playwright"):
        assert f"{package} is not installed, which is of an extra" in shown
    assert "failed" not in shown
