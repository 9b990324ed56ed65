"""The sanitizer with `initcheck` finds reads of elements that were never written."""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.triton_viz.helpers import sanitizer_kernels as kernels
from tests.triton_viz.helpers.watching import issues_in
from triton_viz.clients import Sanitizer

pytestmark = pytest.mark.usefixtures("no_launches")


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


def unwritten(kernel: Any, *args: Any, grid: tuple[int, ...] = (3,)) -> list[tuple[Any, ...]]:
    issues = issues_in(kernel, grid, *args, client=Sanitizer(initcheck=True), BLOCK=4)
    return [(issue.kind, issue.tensor, issue.program, issue.index) for issue in issues]


@pytest.fixture
def watcher() -> Sanitizer:
    """The owner of a watch on new tensors."""
    return Sanitizer(initcheck=True)


@pytest.mark.usefixtures("watcher", "way")
def test_elements_that_were_never_written_must_not_be_read():
    found = unwritten(kernels.copy, torch.empty(10, dtype=torch.int32), zeros(10), 10)
    assert found == [("uninitialized", "x", (0, 0, 0), (0,))]
    x = torch.empty(10, dtype=torch.int32)
    assert unwritten(kernels.copy, torch.arange(10).int(), x, 10) == []
    assert unwritten(kernels.copy, x, zeros(10), 10) == []


@pytest.mark.usefixtures("watcher")
@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill_(3),
        lambda x: x.copy_(torch.arange(10)),
        lambda x: x.__setitem__(slice(None), 3),
        lambda x: torch.add(torch.arange(10).int(), 1, out=x),
        lambda x: x.numpy().__setitem__(slice(None), 7),
        lambda x: x.view(2, 5).zero_(),
        lambda x: x.data.zero_(),
    ],
)
def test_elements_may_be_read_after_any_write(write: Any):
    x = torch.empty(10, dtype=torch.int32)
    write(x)
    assert unwritten(kernels.copy, x, zeros(10), 10) == []


@pytest.mark.usefixtures("watcher")
def test_partly_written_tensors_are_tracked_by_element():
    x = torch.empty(10, dtype=torch.int32)
    issues_in(kernels.copy, (2,), torch.arange(10).int(), x, 6, client=Sanitizer(initcheck=True), BLOCK=4)
    assert unwritten(kernels.copy, x, zeros(10), 10) == [("uninitialized", "x", (1, 0, 0), (6,))]
    assert unwritten(kernels.adds_one, torch.empty(10, dtype=torch.int32), 10) == [
        ("uninitialized", "x", (0, 0, 0), (0,))
    ]
    z = torch.empty(10, dtype=torch.int32)
    z[:5] = 1
    assert unwritten(kernels.copy, z, zeros(10), 10) == [("uninitialized", "x", (1, 0, 0), (5,))]
    y = torch.empty(10, dtype=torch.int32)
    y.numpy()[:8] = 1
    assert unwritten(kernels.copy, y, zeros(10), 10) == [("uninitialized", "x", (2, 0, 0), (8,))]


@pytest.mark.usefixtures("watcher")
def test_empty_memory_can_be_resized_and_another_tensor_may_get_its_address():
    x = torch.empty(10, dtype=torch.int32)
    x.resize_(1 << 20).fill_(1)
    assert unwritten(kernels.copy, x, zeros(10), 10) == []
    # Memory of this size is mapped for itself: the next tensor is where the first one was.
    big = torch.empty(9 << 20, dtype=torch.int32).fill_(1)
    left = big.data_ptr()
    big.resize_(18 << 20)
    later = [torch.empty(9 << 20, dtype=torch.int32) for _ in range(2)]
    if left not in [tensor.data_ptr() for tensor in later]:
        pytest.skip("another thread has mapped memory there meanwhile")
    del big
    for tensor in later:
        assert unwritten(kernels.copy, tensor, zeros(10), 10) == [("uninitialized", "x", (0, 0, 0), (0,))]


@pytest.mark.usefixtures("watcher")
def test_bytes_that_equal_the_pattern_are_written():
    x = torch.empty(256, dtype=torch.uint8)
    x.numpy()[:] = np.arange(256)
    out = torch.zeros(256, dtype=torch.uint8)
    assert unwritten(kernels.copy, x, out, 256, grid=(64,)) == []


@pytest.mark.usefixtures("watcher")
def test_a_view_of_empty_memory_is_empty():
    for x in (torch.empty(4, 3).T, torch.nn.Parameter(torch.empty(12)), torch.empty(12).detach()):
        found = unwritten(kernels.copy, x, torch.zeros(12), 12)
        assert found == [("uninitialized", "x", (0, 0, 0), (0,) * x.ndim)]
    whole = torch.empty(12)
    (issue,) = issues_in(
        kernels.copy, (2,), whole[:6], whole[6:], 6, client=Sanitizer(initcheck=True), BLOCK=4
    )
    assert "In all, 6 elements of 2 programs" in issue.message


@triton.jit
def reads_writes_and_parts(x, out):
    """Programs diverge after the store, and run again from the start."""
    pid = tl.program_id(0)
    tl.store(x + pid, tl.load(x + pid) + 1)
    part = 1 if pid % 2 == 0 else 1.5
    tl.store(out + pid, part)


@pytest.mark.usefixtures("watcher", "way")
def test_stores_of_a_discarded_run_do_not_count_as_written():
    out, x = torch.zeros(8), torch.empty(8)
    (issue,) = issues_in(reads_writes_and_parts, (8,), x, out, client=Sanitizer(initcheck=True))
    assert (issue.kind, issue.tensor, issue.index) == ("uninitialized", "x", (0,))
    assert "In all, 8 elements of 8 programs" in issue.message
    assert out.tolist() == [1, 1.5] * 4
    assert issues_in(reads_writes_and_parts, (8,), x, out, client=Sanitizer(initcheck=True)) == []
