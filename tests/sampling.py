"""A plugin of pytest that runs the tests that take no time: `pytest -p tests.sampling --every 10`.

Of many alike it takes some. It leaves out what starts a program of its own, which takes longer than the rest.
"""

import inspect
import itertools
from collections import defaultdict

import pytest

from tests.triton_viz.corpus.case import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", type=int, default=1, help="run every Nth of a test's parameters only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    every = int(config.getoption("--every") or 1)
    numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)
    kept, left_out = [], []
    for item in items:
        parameters = getattr(item, "callspec", None)
        number = next(numbers[item.nodeid.partition("[")[0]])
        alike = parameters is not None and not _is_rare(parameters.params.get("case"))
        wanted = not (alike and number % every) and not _starts_a_program(item)
        (kept if wanted else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _starts_a_program(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "run_python(" in inspect.getsource(item.function)


def _is_rare(case: object) -> bool:
    """Whether a kernel needs what not every release of Triton has."""
    return isinstance(case, Case) and case.needs is not None
