"""`x[key]`, for any key: read and assigned, as PyTorch and NumPy do."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import (
    array_shapes,
    basic_indices,
    integer_array_indices,
    mutually_broadcastable_shapes,
)

import gt
from gt.client import Client
from gt.errors import WorkerError
from gt.tensors.functions.indexing import embedding, one_hot


def _numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)


def _forward(key: Any) -> bool:
    """Whether PyTorch takes a key: it has no slices that run backwards."""
    entries = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(e, slice) and e.step is not None and e.step < 0 for e in entries)


@st.composite
def _shape_and_key(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A shape, and a key of numbers, slices, arrays and masks that fits it."""
    shape = draw(array_shapes(min_dims=1, max_dims=4, max_side=4))
    picked = draw(array_shapes(min_dims=1, max_dims=2, max_side=3))
    key: list[Any] = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["number", "slice", "array", "mask", "none"]))
        if kind == "none":
            key.append(None)
            kind = "slice"
        if kind == "number":
            key.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            key.append(slice(draw(st.integers(-n, n)), draw(st.integers(-n, n)), draw(st.integers(1, 3))))
        elif kind == "array":
            numbers = st.lists(
                st.integers(-n, n - 1), min_size=int(np.prod(picked)), max_size=int(np.prod(picked))
            )
            key.append(np.array(draw(numbers)).reshape(picked))
        else:
            # All masks of one key must find the same number of elements, or one: find one.
            key.append(np.arange(n) == draw(st.integers(0, n - 1)))
    if draw(st.booleans()) and len(key) < 4:
        key.append(...)
    return shape, tuple(key)


def _as(make: Any, key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(make(e) if isinstance(e, np.ndarray) else e for e in key)


@given(shape=array_shapes(max_dims=4, max_side=4), data=st.data())
def test_basic_keys_read_the_elements_that_numpy_reads(shape: tuple[int, ...], data: st.DataObject):
    key = data.draw(basic_indices(shape, allow_newaxis=True, allow_ellipsis=True).filter(_forward))
    array = _numbers(shape)
    np.testing.assert_array_equal(gt.from_numpy(array)[key].numpy(), array[key])


@given(shape=array_shapes(max_dims=3, max_side=4), data=st.data())
def test_integer_arrays_read_the_elements_that_numpy_reads(shape: tuple[int, ...], data: st.DataObject):
    key = data.draw(integer_array_indices(shape))
    array = _numbers(shape)
    np.testing.assert_array_equal(gt.from_numpy(array)[key].numpy(), array[key])
    tensors = tuple(gt.from_numpy(np.asarray(k)) for k in key)
    np.testing.assert_array_equal(gt.from_numpy(array)[tensors].numpy(), array[key])


@given(_shape_and_key(), st.booleans())
def test_mixed_keys_read_the_elements_that_pytorch_reads(case: tuple[tuple[int, ...], Any], by_tensors: bool):
    shape, key = case
    array = _numbers(shape)
    expected = torch.from_numpy(array)[_as(torch.from_numpy, key)]
    result = gt.from_numpy(array)[_as(gt.from_numpy, key) if by_tensors else key]
    np.testing.assert_array_equal(result.numpy(), expected.numpy())


@given(_shape_and_key(), st.booleans())
def test_mixed_keys_assign_as_in_pytorch_with_its_gradients(case: Any, number: bool):
    shape, key = case
    array, theirs_key = _numbers(shape), _as(torch.from_numpy, case[1])
    place = torch.from_numpy(array)[theirs_key].shape
    # Where a key names an element twice, which value stays is not defined.
    positions = torch.arange(array.size).reshape(shape)[theirs_key].flatten()
    assume(number or len(set(positions.tolist())) == len(positions))
    value = np.asarray(-1 - _numbers(tuple(place)))

    x, y = (gt.from_numpy(a, requires_grad=True) for a in (array, value))
    ours = x * 1
    ours[key] = 7 if number else y
    (ours * gt.from_numpy(array + 1)).sum().backward()
    p, q = (torch.from_numpy(a.copy()).requires_grad_() for a in (array, value))
    theirs = p * 1
    theirs[theirs_key] = 7 if number else q
    (theirs * torch.from_numpy(array + 1)).sum().backward()

    np.testing.assert_array_equal(ours.data.numpy(), theirs.detach().numpy())
    for mine, other in ((x, p), (y, q)):
        if other.grad is not None:
            assert mine.grad is not None
            np.testing.assert_array_equal(mine.grad.numpy(), other.grad.numpy())


@given(mutually_broadcastable_shapes(num_shapes=1, base_shape=(2, 3), max_dims=2))
def test_an_assigned_value_is_broadcast(shapes: Any):
    (shape,) = shapes.input_shapes
    array, value = np.zeros((4, 2, 3), "float32"), np.asarray(_numbers(shape) + 1)
    x = gt.from_numpy(array)
    x[1:3] = gt.from_numpy(value)
    array[1:3] = value
    np.testing.assert_array_equal(x.numpy(), array)


def test_an_assignment_changes_only_the_tensor_it_is_made_to(client: Client):
    x = gt.arange(6).reshape(2, 3)
    before, row = x.clone(), x[0]
    x[0] = np.array([7.9, 8, 9])
    assert x.tolist() == [[7, 8, 9], [3, 4, 5]]
    assert before.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert row.tolist() == [7, 8, 9], "a view sees it, as in PyTorch"
    x[x > 7] += 10
    assert x.tolist() == [[7, 18, 19], [3, 4, 5]]


def test_a_leaf_that_requires_grad_may_not_be_assigned_to(client: Client):
    x = gt.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x[0] = 1
    with gt.no_grad():
        x[0] = 1
    assert x.data.tolist() == [1, 0, 0]
    assert x.requires_grad


def test_rows_can_be_iterated_unpacked_and_searched(client: Client):
    x = gt.arange(6).reshape(3, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    first, *_ = x
    assert first.tolist() == [0, 1]
    assert 3 in x
    assert 7 not in x
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(gt.tensor(1))


def test_a_number_in_a_tensor_indexes_without_waiting_for_it():
    x, i = gt.arange(6).reshape(2, 3), gt.tensor(1)
    fetches = []
    fetch = x._value.client.fetch
    x._value.client.fetch = lambda tensor: fetches.append(tensor) or fetch(tensor)
    try:
        y = x[i, :, None]
        assert not fetches
        assert y.tolist() == [[3], [4], [5]]
    finally:
        x._value.client.fetch = fetch


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x.gather(0, i.reshape(1, 1)),
        lambda x, i: x.scatter(0, i.reshape(1, 1), 1.0),
        lambda x, i: embedding(i, x),
    ],
    ids=["index", "index", "gather", "scatter", "embedding"],
)
@pytest.mark.parametrize("bad", [9, -9])
def test_an_index_out_of_range_in_a_tensor_fails_late_with_its_line(client: Client, call: Any, bad: int):

    y = call(gt.ones(3, 3), gt.tensor([bad]))
    with pytest.raises(WorkerError, match=r"test_indexing\.py:\d+, failed on .*(Index|Runtime)Error"):
        y.numpy()


def test_a_class_out_of_range_fails_late(client: Client):
    with pytest.raises(WorkerError, match="Class values must be smaller than num_classes"):
        one_hot(gt.tensor([1, 5]), 3).numpy()


def test_a_scatter_source_may_be_larger_than_its_index_also_going_backward(client: Client):
    # PyTorch fails here: "returned an invalid gradient".
    x, source = gt.zeros(2, 3, requires_grad=True), gt.ones(2, 3, requires_grad=True)
    x.scatter_add(1, gt.tensor([[0, 0]]), source * 2).sum().backward()
    assert source.grad is not None
    assert source.grad.tolist() == [[2, 2, 0], [0, 0, 0]]


def test_equal_elements_sort_in_their_order_on_every_engine(client: Client):
    x = gt.tensor([2, 1, 2, 1, 3, 2])
    assert x.argsort().tolist() == [1, 3, 0, 2, 5, 4]
    assert x.argsort(descending=True).tolist() == [4, 0, 2, 5, 1, 3]
    assert x.topk(3).indices.tolist() == [4, 0, 2]
    values, indices = x.sort()
    assert (values.tolist(), indices.tolist()) == ([1, 1, 2, 2, 2, 3], [1, 3, 0, 2, 5, 4])
    assert gt.tensor([1.0, float("nan"), 2.0]).argsort(descending=True).tolist() == [1, 2, 0]


def test_a_number_gets_a_dimension(client: Client):
    assert gt.tensor(2.0)[None].tolist() == [2.0]
    assert gt.tensor(2.0)[None, ..., None].shape == (1, 1)
