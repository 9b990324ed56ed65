"""Matrix products of any shapes, and joining and cutting, as PyTorch does."""

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

import gt

MATMUL: Any = np.matmul.signature


@given(mutually_broadcastable_shapes(signature=MATMUL, max_dims=2, max_side=3, min_side=0))
def test_matrices_of_any_shapes_multiply_as_in_pytorch_with_their_gradients(shapes: Any):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes.input_shapes]
    arrays = [np.asarray(a, "float32") for a in arrays]
    ours = [gt.from_numpy(a, requires_grad=True) for a in arrays]
    theirs = [torch.from_numpy(a).requires_grad_() for a in arrays]
    result, expected = ours[0] @ ours[1], theirs[0] @ theirs[1]
    assert result.shape == tuple(expected.shape)
    np.testing.assert_allclose(result.data.numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    (result * result).sum().backward()
    (expected * expected).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None
        assert other.grad is not None
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-5)


@given(shape=array_shapes(max_dims=3, max_side=5), data=st.data())
def test_what_is_cut_can_be_joined_again(shape: tuple[int, ...], data: st.DataObject):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    array = np.arange(np.prod(shape)).reshape(shape)
    x = gt.from_numpy(array)
    pieces = x.split(data.draw(st.integers(1, 6)), dim)
    np.testing.assert_array_equal(gt.cat(pieces, dim).numpy(), array)
    np.testing.assert_array_equal(gt.cat(x.chunk(data.draw(st.integers(1, 6)), dim), dim).numpy(), array)
    np.testing.assert_array_equal(gt.stack(x.unbind(dim), dim).numpy(), array)


@given(shape=array_shapes(max_dims=4, max_side=3), data=st.data())
def test_dimensions_can_be_put_in_any_order_and_back(shape: tuple[int, ...], data: st.DataObject):
    order = data.draw(st.permutations(range(len(shape))))
    array = np.arange(np.prod(shape)).reshape(shape)
    x = gt.from_numpy(array)
    np.testing.assert_array_equal(x.permute(order).numpy(), array.transpose(order))
    back = x.permute(order).movedim(tuple(range(len(shape))), tuple(order))
    np.testing.assert_array_equal(back.numpy(), array)


def test_the_list_of_ops_and_the_type_stubs_are_the_tables():
    from tools import op_list, op_stubs

    for path, text in {op_list.FILE: op_list.written(), **op_stubs.written()}.items():
        assert path.read_text() == text, "run: python -m tools.op_list"
