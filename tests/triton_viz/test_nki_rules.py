"""Violations in NKI kernels are errors with tensor, index and line, or issues if a client keeps them."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import triton_viz
from tests.triton_viz.helpers.watching import Watch
from tests.triton_viz.nki_kernels import broken
from triton_viz.clients import Sanitizer, report
from triton_viz.core.data import Issue
from triton_viz.errors import AccessError, HardwareError, SanitizerError

pytestmark = pytest.mark.usefixtures("no_launches")


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


class Twin(NamedTuple):
    kernel: str
    arguments: tuple[Any, ...]
    kind: str
    said: str
    error: type[Exception] = HardwareError
    grid: Any = None


TWINS = [
    Twin(
        *("tensor_add", (ones(200, 512), ones(200, 512)), "out of bounds"),
        "a, a tensor of shape (200, 512) in HBM, is accessed at index (200, 0), and 28,671 more elements: "
        "200 is not below 200 along axis 0, and there is no mask. Give mask=",
        *(AccessError, (2,)),
    ),
    Twin(
        "tensor_add_sliced", (ones(200, 64), ones(200, 64)), "out of bounds", "at index (200, 0)", AccessError
    ),
    Twin(
        "transpose_2d", (ones(4, 12), 3, 4), "out of bounds", "tile, a tensor of shape (4, 12)", AccessError
    ),
    Twin(
        "average_pool", (ones(4, 6, 6), 2), "out of bounds", "image, a tensor of shape (4, 6, 6)", AccessError
    ),
    Twin("matmul_basic", (ones(256, 64), ones(256, 64)), "partition size", "left of shape (256, 64) has 256"),
    Twin(
        "matmul_tiled",
        (ones(128, 128), ones(128, 1024)),
        "matmul tile",
        "has 1024 columns, and the tensor engine",
    ),
    Twin(
        *("matmul_hoisted", (ones(128, 128), ones(128, 2048 * 25)), "over capacity"),
        "buffers in use at once, 204,800 bytes of each partition, and SBUF has 196,608",
    ),
    Twin(
        *("matmul_blocked", (ones(128, 128), ones(128, 512)), "over capacity"),
        "18,432 bytes of each partition, and PSUM has 16,384",
    ),
    Twin(
        "softmax",
        (ones(100, 100),),
        "undefined",
        "elements of tile are undefined where it is used in a reduction",
    ),
    Twin(
        "rms_norm",
        (ones(200, 64), ones(64)),
        "out of bounds",
        "out, a tensor of shape (200, 64)",
        AccessError,
    ),
    Twin("layer_norm", (ones(128, 600), ones(600), ones(600)), "bn_stats tile", "at most 512 elements"),
    Twin(
        "rotary",
        (ones(128, 64), ones(128, 32), ones(128, 32)),
        "undefined",
        "elements of turned are undefined",
    ),
    Twin(
        "attention",
        (ones(64, 128), ones(64, 128), ones(128, 64)),
        "memory",
        "its stationary tile scores from PSUM",
    ),
    Twin(
        "mlp",
        (ones(64, 128), ones(1), ones(1)),
        "engine",
        "cannot run on the scalar engine: it runs on vector",
    ),
    Twin(
        "gather",
        (ones(10, 8), np.full((128, 1), 10, np.int32)),
        "out of bounds",
        "at index (10, 0)",
        AccessError,
    ),
    Twin("copy_on_gpsimd", (ones(128, 128),), "engine", "touches turned, which is in PSUM"),
    Twin("one_tile_too_large", (ones(1),), "over capacity", "262,144 bytes of each partition, and SBUF has"),
]


def wrong_line(function: Callable) -> int:
    lines, first = inspect.getsourcelines(function)
    (position,) = [number for number, line in enumerate(lines) if line.endswith("# wrong\n")]
    return first + position


class Collecting(Watch):
    """Keeps violations, so that kernels continue."""

    NAME: ClassVar[str] = "collecting"
    vectorized: ClassVar[bool] = True

    def __init__(self) -> None:
        self.issues: list[Issue] = []

    def issue_callback(self, issue: Issue) -> bool:
        self.issues.append(issue)
        return True

    def finalize(self) -> list[Issue]:
        return self.issues


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.kernel)
def test_a_broken_kernel_is_an_error_with_its_line(twin: Twin):
    kernel = getattr(broken, twin.kernel)
    traced = triton_viz.trace("tracer", backend="nki")(kernel)
    with pytest.raises(twin.error) as caught:
        traced[twin.grid](*twin.arguments)
    message = str(caught.value)
    assert f"{broken.__file__}:{wrong_line(kernel.func)}: kernel {twin.kernel}, program (" in message
    assert twin.said in message
    assert not triton_viz.launches


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.kernel)
def test_the_sanitizer_reports_a_broken_kernel(twin: Twin):
    kernel = getattr(broken, twin.kernel)
    triton_viz.trace("sanitizer", backend="nki")(kernel)[twin.grid](*twin.arguments)
    found = report.violations(triton_viz.launches)
    assert twin.kind in {issue.kind for issue in found}
    assert wrong_line(kernel.func) in {issue.call_path[-1].line for issue in found}
    with pytest.raises(SanitizerError, match=f"kernel {twin.kernel}"):
        triton_viz.trace(Sanitizer(abort_on_error=True), backend="nki")(kernel)[twin.grid](*twin.arguments)
    assert len(triton_viz.launches) == 2, "the launch that was aborted is kept with its issues"
    assert twin.kind in {issue.kind for issue in report.violations(triton_viz.launches[-1])}


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.kernel)
def test_a_client_that_keeps_issues_gets_them_as_records(twin: Twin):
    kernel = getattr(broken, twin.kernel)
    collecting = Collecting()
    traced = triton_viz.trace(collecting, backend="nki")(kernel)
    traced[twin.grid](*twin.arguments)
    issue = collecting.issues[0]
    assert (issue.kind, issue.verdict) == (twin.kind, "violation")
    assert issue.call_path[-1].line == wrong_line(kernel.func)
    assert issue.call_path[0].function == twin.kernel
    assert issue.suggestion or issue.kind == "out of bounds"
    if twin.error is AccessError:
        assert issue.tensor
        assert issue.index is not None
    assert issue in triton_viz.launches[-1].records
