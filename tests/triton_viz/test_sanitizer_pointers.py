"""The sanitizer on pointers: loaded ones, foreign ones, misaligned ones, and those of views."""

import pytest
import torch

from tests.triton_viz.helpers import sanitizer_kernels as kernels
from tests.triton_viz.helpers.small_tensors import floats, ints, zeros
from tests.triton_viz.helpers.watching import issues_in

pytestmark = pytest.mark.usefixtures("no_launches")

OUT = "out of bounds"


@pytest.mark.usefixtures("way")
def test_pointers_in_a_table_can_be_accessed():
    a, b = floats(3), floats(4)
    last = b[3:]
    out = torch.zeros(2)
    table = torch.tensor([a.data_ptr(), last.data_ptr()])
    assert issues_in(kernels.through_table, (2,), table, out) == []
    assert out.tolist() == [1.0, 4.0]
    del last  # now no tensor starts there
    (issue,) = issues_in(kernels.through_table, (2,), table, out)
    assert (issue.kind, issue.program) == ("foreign tensor", (1, 0, 0))
    (issue,) = issues_in(kernels.through_table, (2,), torch.tensor([a.data_ptr(), 0]), out)
    assert (issue.kind, issue.program) == ("null pointer", (1, 0, 0))
    assert issues_in(kernels.through_table_if_there, (2,), torch.tensor([a.data_ptr(), 0]), out) == []


@pytest.mark.usefixtures("way")
def test_a_number_that_is_an_address_gives_an_argument_and_no_other_tensor():
    a, out = floats(4), torch.zeros(4)
    (issue,) = issues_in(kernels.at_address, (1,), a.data_ptr(), out, BLOCK=4)
    assert issue.kind == "foreign tensor"
    assert out.tolist() == [0.0] * 4
    out = floats(4)
    assert issues_in(kernels.at_address, (1,), out.data_ptr(), out, BLOCK=4) == []
    (issue,) = issues_in(kernels.at_address, (1,), 0, out, BLOCK=4)
    assert issue.kind == "null pointer"


@pytest.mark.usefixtures("way")
def test_a_tensor_that_was_not_given_is_not_to_be_touched():
    """It is alive, and a pointer has its address, but only by accident."""
    x, other, out = floats(4), floats(4), torch.zeros(1)
    distance = (other.data_ptr() - x.data_ptr()) // 4
    (issue,) = issues_in(kernels.at_distance, (1,), x, out, distance)
    assert issue.kind in (OUT, "foreign tensor")
    assert out.item() == 0


@pytest.mark.usefixtures("way")
def test_a_pointer_between_two_elements_is_misaligned():
    x, out = floats(8), torch.zeros(1)
    assert issues_in(kernels.bytes_as_floats, (1,), x, out, 8) == []
    assert out.item() == 3.0
    (issue,) = issues_in(kernels.bytes_as_floats, (1,), x, out, 6)
    assert (issue.kind, issue.tensor) == ("misaligned", "x")


@pytest.mark.usefixtures("way")
def test_a_pointer_may_be_one_of_two_tensors():
    x, y = torch.arange(8).int(), torch.arange(100, 104).int()
    out = zeros(8)
    assert issues_in(kernels.from_one_of_two, (2,), x[:4], y, ints(0, 3, 1, 2), out, 4, BLOCK=4) == []
    assert out.tolist() == [0, 3, 1, 2, 100, 103, 101, 102]
    (issue,) = issues_in(kernels.from_one_of_two, (2,), x, y, ints(0, 4, 1, 2), out, 4, BLOCK=4)
    assert (issue.program, issue.tensor) == ((1, 0, 0), "y")
    assert issues_in(kernels.to_one_of_two, (4,), zeros(4), zeros(4), 4) == []
    assert {i.kind for i in issues_in(kernels.to_one_of_two, (4,), zeros(1).expand(4), zeros(4), 4)} == {OUT}
    (issue,) = issues_in(kernels.to_one_of_two, (4,), zeros(4), zeros(3), 4)
    assert (issue.program, issue.tensor) == ((3, 0, 0), "y")


@pytest.mark.usefixtures("way")
def test_a_block_may_be_of_two_tensors():
    x, y, out = torch.arange(3).int(), torch.arange(10, 15).int(), zeros(8)
    assert issues_in(kernels.half_from_each, (1,), x, y, out, 3, BLOCK=8) == []
    assert out.tolist() == [0, 1, 2, 10, 11, 12, 13, 14]
    (issue,) = issues_in(kernels.half_from_each, (1,), x, y, out, 2, BLOCK=8)
    assert (issue.kind, issue.tensor, issue.index) == (OUT, "y", (5,))
    (issue,) = issues_in(kernels.half_from_each, (1,), x, y, out, 4, BLOCK=8)
    assert (issue.kind, issue.tensor, issue.index) == (OUT, "x", (3,))


@pytest.mark.usefixtures("way")
def test_tensors_in_a_tuple_have_names():
    out = zeros(4)
    assert issues_in(kernels.sum_of_two, (4,), (torch.arange(4).int(), torch.arange(4).int()), out) == []
    assert out.tolist() == [0, 2, 4, 6]
    (issue,) = issues_in(kernels.sum_of_two, (4,), (zeros(4), zeros(3)), out)
    assert (issue.tensor, issue.program) == ("pair[1]", (3, 0, 0))


@pytest.mark.usefixtures("way")
def test_arguments_may_share_memory():
    x = torch.arange(12).int()
    assert issues_in(kernels.copy, (2,), x[:6], x[6:], 6, BLOCK=4) == []
    assert x.tolist() == [0, 1, 2, 3, 4, 5] * 2
    issues = issues_in(kernels.copy, (2,), x[:6], x[6:], 7, BLOCK=4)
    assert [(i.tensor, i.index) for i in issues] == [("x", (6,)), ("out", (6,))]
    assert issues_in(kernels.copy, (3,), x, x, 12, BLOCK=4) == []


@pytest.mark.usefixtures("way")
def test_a_descriptor_masks_elements_outside_of_it():
    x, out = torch.arange(48).float().view(6, 8), torch.zeros(6, 8)
    assert issues_in(kernels.copy_by_descriptor, (2, 2), x, out, 6, 8, M=4, N=8) == []
    assert torch.equal(out, x)
    issues = issues_in(kernels.copy_by_descriptor, (2, 2), x[:5], out, 6, 8, M=4, N=8)
    assert [(i.tensor, i.kind, i.program, i.index) for i in issues] == [("x", OUT, (1, 0, 0), (5, 0))]
    assert "describe no more" in issues[0].suggestion


@pytest.mark.usefixtures("way")
def test_a_store_through_a_broadcast_view_is_found_where_elements_meet():
    x = zeros(4, 1).expand(4, 5)
    (issue,) = issues_in(kernels.store_by_strides, (4,), x, 1, 0, 5, BLOCK=8)
    assert (issue.kind, issue.tensor) == ("broadcast store", "x")
    assert issues_in(kernels.store_by_strides, (4,), x, 1, 0, 1, BLOCK=8) == []
