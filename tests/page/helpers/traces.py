"""Launches of all kinds for the page's tests, each traced when a test first uses it, once in a file."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from playwright.sync_api import Page

import triton_viz
from benchmarks.kernels import WORKLOADS
from examples import matmul
from tests.page.helpers.browser import Visit
from tests.page.helpers.pages import open_view, served
from tests.triton_viz.helpers import kernels
from triton_viz.core.data import Launch

M, N, K = 40, 56, 48
"""The sizes of the matrix product."""
_MANY = 16_000_000 - 5


@triton.jit
def collide(out):
    tl.store(out, tl.program_id(0))


def _workload(name: str) -> Callable[[], None]:
    def launch() -> None:
        work = WORKLOADS[name]()
        triton_viz.trace("tracer")(work.kernel)[work.grid](**work.arguments)

    return launch


def _product() -> None:
    a, b, c = torch.randn(M, K), torch.randn(K, N), torch.zeros(M, N)
    traced = triton_viz.trace(["tracer", "profiler", "sanitizer"])(matmul.matmul.kernel)
    traced[(3, 4)](a, b, c, M, N, K, TILE=16)


def _unmasked() -> None:
    x = torch.ones(10)
    traced = triton_viz.trace(["tracer", "sanitizer"])(kernels.add_unmasked)
    traced[(3,)](x, x.clone(), torch.ones(10), 10, BLOCK=4)


def _race() -> None:
    triton_viz.trace(["tracer", "race_detector"])(collide)[(4,)](torch.zeros(3))


def _masked() -> None:
    arrays = [torch.ones(64) for _ in range(3)]
    triton_viz.trace("tracer")(kernels.add)[(1,)](*arrays, 20, BLOCK=32)


def _called() -> None:
    triton_viz.trace("tracer")(kernels.row_norm)[(2,)](torch.ones(2, 8), torch.zeros(2), 8, BLOCK=8)


def _million() -> None:
    arrays = [torch.ones(_MANY), torch.ones(_MANY), torch.zeros(_MANY)]
    triton_viz.trace("tracer")(kernels.add)[(1_000_000,)](*arrays, _MANY, BLOCK=16)


_LAUNCHES = {
    "softmax": _workload("softmax"),
    "attention": _workload("attention"),
    "matmul": _product,
    "unmasked": _unmasked,
    "race": _race,
    "masked": _masked,
    "called": _called,
    "million": _million,
}
WITH_VALUES = {"softmax", "attention", "matmul"}


class Traces:
    """The launches by name."""

    def __init__(self) -> None:
        self._launches: dict[str, Launch] = {}

    def __getitem__(self, name: str) -> Launch:
        if name not in self._launches:
            torch.manual_seed(0)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(triton_viz.config, "values", name in WITH_VALUES)
                _LAUNCHES[name]()
            self._launches[name] = triton_viz.launches[-1]
        return self._launches[name]


@pytest.fixture(scope="module")
def traces() -> Iterator[Traces]:
    """Launches of all kinds, by name."""
    triton_viz.clear()
    yield Traces()
    triton_viz.clear()


@pytest.fixture(scope="module")
def address(traces: Traces) -> Iterator[str]:
    """The address of the page that shows them."""
    with served() as address:
        yield address


@pytest.fixture
def show(address: str, seen: Visit, traces: Traces) -> Any:
    """A function that opens a launch by its name, and returns the page."""

    def show(name: str, more: str = "") -> Page:
        open_view(seen.page, f"{address}#launch={traces[name].id}{more}")
        return seen.page

    return show
