"""Memory of a traced kernel: it can access its tensors, and an address outside of all tensors is an error."""

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import triton_viz
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.watching import Counter, accesses, line_of
from triton_viz.errors import AccessError, KernelError

pytestmark = pytest.mark.usefixtures("no_launches")


def test_a_kernel_that_raises_names_kernel_program_and_line():
    line = line_of(kernels.raises, "static_assert")
    with pytest.raises(
        KernelError, match=rf"kernels\.py:{line}: kernel raises, program \(0, 0, 0\): .*BLOCK is"
    ):
        triton_viz.trace()(kernels.raises)[(1,)](torch.ones(4), BLOCK=4)


def test_a_wild_pointer_is_an_error_not_a_crash_and_touches_nothing():
    room = torch.zeros(16)
    x, y, out = torch.ones(10), torch.ones(10), room[:10]
    line = line_of(kernels.add_unmasked, "tl.store")
    with pytest.raises(
        AccessError, match=rf"kernels\.py:{line}: kernel add_unmasked, program \(2, 0, 0\).*mask"
    ):
        triton_viz.trace()(kernels.add_unmasked)[(3,)](x, y, out, 10, BLOCK=4)
    assert room[10:].tolist() == [0] * 6
    with pytest.raises(IndexError):
        triton_viz.trace(Counter)(kernels.add_unmasked)[(3,)](x, y, out, 10, BLOCK=4)


def test_an_access_across_the_end_of_a_tensor_is_refused():
    with pytest.raises(AccessError):
        triton_viz.trace()(kernels.read_wide)[(1,)](torch.zeros(9, dtype=torch.int8), torch.zeros(2))


def test_a_kernel_may_reach_past_its_view_into_the_same_storage():
    base = torch.arange(8.0)
    out = torch.zeros(4)
    triton_viz.trace()(kernels.shift)[(1,)](base[4:], out, -1, BLOCK=4)
    assert out.tolist() == [3, 4, 5, 6]
    load = accesses(triton_viz.launches[-1])[0]
    assert (load.tensor, load.offsets.tolist()) == ("x", [-1, 0, 1, 2])


def test_tensors_in_tuples_and_descriptors_are_arguments_too():
    x, out = torch.arange(4.0), torch.zeros(4)
    triton_viz.trace()(kernels.add_pair)[(1,)]((x, x), out, BLOCK=4)
    assert out.tolist() == [0, 2, 4, 6]
    assert [tensor.name for tensor in triton_viz.launches[-1].tensors] == ["pair[0]", "pair[1]", "out"]

    matrix, out = torch.arange(64.0).reshape(4, 16), torch.zeros(4, 16)
    described = TensorDescriptor.from_tensor(matrix, [4, 16])
    triton_viz.trace()(kernels.copy_described)[(1,)](described, out, ROWS=4, COLUMNS=16)
    torch.testing.assert_close(out, matrix)
    assert accesses(triton_viz.launches[-1])[0].tensor == "source"


def test_one_op_may_reach_into_two_tensors():
    x, y, out = torch.arange(4.0), torch.arange(10.0, 14.0), torch.zeros(4)
    triton_viz.trace()(kernels.choose)[(1,)](x, y, out, BLOCK=4)
    load = accesses(triton_viz.launches[-1])[0]
    assert load.elements.which is not None
    found = [load.elements.tensors[i] for i in load.elements.which[0]]
    values = {"x": x, "y": y}
    assert out.tolist() == [values[n][o].item() for n, o in zip(found, load.offsets, strict=True)]
    assert set(found) == {"x", "y"}


def test_a_reinterpreted_tensor_is_the_one_behind_it():
    x, out = torch.arange(4, dtype=torch.int8), torch.zeros(4, dtype=torch.int8)
    fp8 = [triton.reinterpret(tensor, tl.float8e5) for tensor in (x, out)]
    triton_viz.trace()(kernels.shift)[(1,)](*fp8, 0, BLOCK=4)
    assert out.tolist() == [0, 1, 2, 3]
    assert [tensor.name for tensor in triton_viz.launches[-1].tensors] == ["x", "out"]
