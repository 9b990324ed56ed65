"""Every op gives PyTorch's values, shapes and dtypes, on every engine."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import gt
from gt.client import Client
from gt.errors import DimensionError, DTypeError, ShapeError
from gt.ops import TABLE, dtypes
from tests.samples import SAMPLES, Sample
from tests.samples.base import ints
from tests.samples.elementwise import ARITHMETIC

CREATION = {"full", "arange", "rand", "randn"}


def test_every_op_of_the_table_has_a_sample():
    assert {sample.op for sample in SAMPLES} | CREATION | {"cast"} == set(TABLE)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_op_agrees_with_pytorch(client: Client, sample: Sample):
    ours = sample.call(*(gt.from_numpy(a) for a in sample.arrays))
    theirs = sample.call(*(torch.from_numpy(a) for a in sample.arrays))

    result, expected = ours.numpy(), theirs.numpy()
    assert (ours.shape, ours.dtype) == (result.shape, result.dtype.name), "inferred on the client"
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    tolerance = 2e-3 if expected.dtype == np.float16 else 2e-6
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def test_addition(client: Client):
    a, b = gt.tensor([1, 2, 3, 4]), gt.tensor([5, 6, 7, 8])
    np.testing.assert_array_equal((a + b).data.numpy(), [6, 8, 10, 12])


@given(
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3),
    kinds=st.tuples(st.sampled_from(dtypes.DTYPES), st.sampled_from(dtypes.DTYPES)),
    op=st.sampled_from(sorted(ARITHMETIC)),
)
def test_any_two_shapes_and_dtypes_mix_as_in_pytorch(shapes, kinds, op):
    arrays = [ints(*shape, dtype=kind) for shape, kind in zip(shapes.input_shapes, kinds, strict=True)]
    try:
        theirs = ARITHMETIC[op](*map(torch.from_numpy, arrays)).numpy()
    except (RuntimeError, NotImplementedError):
        with pytest.raises(DTypeError, match="bool tensor"):
            ARITHMETIC[op](*map(gt.from_numpy, arrays))
        return
    ours = ARITHMETIC[op](*map(gt.from_numpy, arrays))
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype.name)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-3)


@pytest.mark.parametrize("to", dtypes.DTYPES)
@pytest.mark.parametrize("start", dtypes.DTYPES)
def test_cast_agrees_with_pytorch(client: Client, start: str, to: str):
    array = np.array([0, 1, 2.75, -3.5]).astype(start)
    expected = torch.from_numpy(array).to(getattr(torch, to)).numpy()
    result = gt.from_numpy(array).to(to)
    assert result.dtype == to
    np.testing.assert_array_equal(result.numpy(), expected)


def test_creation_agrees_with_pytorch(client: Client):
    pairs = [
        (gt.zeros(2, 3), torch.zeros(2, 3)),
        (gt.ones((2,), dtype="int64"), torch.ones((2,), dtype=torch.int64)),
        (gt.full((2, 2), 7), torch.full((2, 2), 7)),
        (gt.full((2, 2), 0.5), torch.full((2, 2), 0.5)),
        (gt.full((2,), True), torch.full((2,), True)),
        (gt.arange(5), torch.arange(5)),
        (gt.arange(1, 2, 0.25), torch.arange(1, 2, 0.25)),
        (gt.arange(5, 0, -2), torch.arange(5, 0, -2)),
        (gt.tensor([1.5, 2]), torch.tensor([1.5, 2])),
        (gt.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 4]])),
        (gt.tensor(True), torch.tensor(True)),
        (gt.tensor(np.float64(1.5)), torch.tensor(np.float64(1.5))),
        (gt.tensor(torch.ones(2, dtype=torch.float64)), torch.ones(2, dtype=torch.float64)),
        (gt.zeros(np.int64(2), 3), torch.zeros(2, 3)),
    ]
    for ours, theirs in pairs:
        expected = theirs.numpy()
        assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype.name)
        np.testing.assert_array_equal(ours.numpy(), expected)


def test_random_numbers_are_the_same_on_every_engine_and_fit_their_distribution():
    from gt.worker.engine import numpy, pytorch

    for name, mean, deviation in (("rand", 0.5, 12**-0.5), ("randn", 0.0, 1.0)):
        one = getattr(numpy, name)((100, 100), "float32", seed=7)
        other = getattr(pytorch, name)((100, 100), "float32", seed=7).numpy()
        np.testing.assert_array_equal(one, other)
        assert abs(one.mean() - mean) < 0.03
        assert abs(one.std() - deviation) < 0.03
        assert len(np.unique(one)) > 9_900


def test_a_seed_repeats_the_random_numbers_and_two_draws_differ(client: Client):
    gt.manual_seed(3)
    first, second = gt.randn(5), gt.randn(5)
    gt.manual_seed(3)
    again = gt.randn(5)
    np.testing.assert_array_equal(first.numpy(), again.numpy())
    assert not (first == second).numpy().any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gt.ones(3) + gt.ones(4), ShapeError, r"size of tensor a \(3\) must match .* b \(4\)"),
        (lambda: gt.ones(2, 3) @ gt.ones(4, 5), ShapeError, r"cannot be multiplied \(2x3 and 4x5\)"),
        (lambda: gt.ones(3) @ gt.ones(3), ShapeError, r"two matrices today, not shapes \[3\] and \[3\]"),
        (lambda: gt.ones(2, 2) @ gt.ones(2, 2, dtype="int64"), DTypeError, "float32 != int64"),
        (lambda: gt.ones(3).sum(dim=1), DimensionError, r"range of \[-1, 0\], but got 1"),
        (lambda: gt.ones(3, 3).sum(dim=(0, -2)), ShapeError, "more than once"),
        (lambda: gt.ones(3).reshape(2, 2), ShapeError, r"'\[2, 2\]' is invalid for input of size 3"),
        (lambda: gt.ones(3).reshape(-1, -1), ShapeError, "only one dimension"),
        (lambda: gt.ones(3).reshape(-2), ShapeError, "invalid shape dimension -2"),
        (lambda: gt.ones(2).expand(3), ShapeError, r"expanded size .* \(3\) must match"),
        (lambda: gt.ones(2, 2).expand(2), ShapeError, r"number of sizes provided \(1\)"),
        (lambda: gt.ones(2).expand(-1, 2), ShapeError, "-1 is not allowed"),
        (lambda: gt.ones(2, 2, 2).T, ShapeError, "use transpose"),
        (lambda: gt.arange(3).mean(), DTypeError, "floating point dtype. Got: int64"),
        (lambda: gt.arange(3) ** -1, DTypeError, "negative integer powers"),
        (lambda: -gt.full((2,), True), DTypeError, r"Negation with a bool tensor .* x\.to\('int64'\)"),
        (lambda: gt.ones(2) - True, DTypeError, "Subtraction, the `-` operator, with a bool tensor"),
        (lambda: gt.full((2,), True).relu(), DTypeError, "relu with a bool tensor"),
        (lambda: gt.full((2, 2), True) @ gt.full((2, 2), True), DTypeError, "matmul with a bool tensor"),
        (lambda: gt.zeros(2, dtype="float31"), DTypeError, "no dtype is called 'float31'"),
        (lambda: gt.randn(2, dtype="int64"), DTypeError, "not int64"),
        (lambda: gt.zeros(-1), ShapeError, "no negative sizes"),
        (lambda: gt.tensor(["a"]), DTypeError, "no dtype is called"),
        (lambda: gt.ones(2).item(), ShapeError, "2 elements"),
        (lambda: gt.zeros(2.5), TypeError, r"a shape is whole numbers, and this is \(2.5,\)"),  # type: ignore[arg-type]
        (lambda: gt.manual_seed("a"), TypeError, "a seed is a whole number"),  # type: ignore[arg-type]
        (lambda: bool(gt.ones(2)), ShapeError, "ambiguous"),
    ],
)
def test_a_mistake_is_reported_at_once_in_pytorchs_words(call, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()


def test_errors_are_also_what_pytorch_code_catches():
    with pytest.raises(RuntimeError):
        _ = gt.ones(3) + gt.ones(4)
    with pytest.raises(IndexError):
        gt.ones(3).sum(dim=5)


def test_arrays_on_either_side(client: Client):
    x = gt.tensor([1.0, 2.0])
    difference: Any = np.array([3, 4], np.float32) - x
    assert isinstance(difference, gt.Tensor)
    assert difference.tolist() == [2, 2]
    assert (x + np.array([1, 1], np.float32)).tolist() == [2, 3]
    eye: Any = np.eye(2, dtype=np.float32)
    for product in (eye @ x.reshape(2, 1), (x.reshape(1, 2) @ eye).T):
        assert isinstance(product, gt.Tensor)
        assert product.tolist() == [[1], [2]]
    for other in ("one", [1, 1], None):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = x + other
    for product in (lambda: x @ 2, lambda: 2 @ x):
        with pytest.raises(TypeError, match="unsupported operand"):
            product()


def test_reading(client: Client):
    x = gt.tensor([[1, 2], [3, 4]])
    assert x.tolist() == [[1, 2], [3, 4]]
    assert (len(x), x.ndim, x.numel()) == (2, 2, 4)
    assert x.sum().item() == 10
    assert np.asarray(x).dtype == np.int64
    assert bool(gt.tensor(1.5))
    assert repr(x) == "tensor([[1, 2],\n        [3, 4]])"
    assert repr(gt.ones(1, dtype="float64", requires_grad=True)) == (
        "tensor([1.], dtype=float64, requires_grad=True)"
    )
    with pytest.raises(TypeError, match="0-d"):
        len(gt.tensor(1))
    with pytest.raises(TypeError, match=r"use x\.tolist"):
        iter(x)
