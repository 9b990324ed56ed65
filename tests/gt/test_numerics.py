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
from gt.transport.arrays import numpy_dtype
from tests.gt.samples import SAMPLES, Sample, on_every_system
from tests.gt.samples.base import assert_same, dtype_name, ints, to_torch
from tests.gt.samples.generated import call, method, rows

CREATION = {"full", "arange", "linspace", "eye", "rand", "randn", "randint", "randperm", "bernoulli"}
INTERNAL = {"put_along"}  # a gradient's: users reach it through max(dim)


def test_every_op_of_the_table_has_a_sample():
    assert {sample.op for sample in SAMPLES} | CREATION | INTERNAL == set(TABLE)


@pytest.mark.parametrize(("client", "sample"), on_every_system(SAMPLES), indirect=["client"])
def test_op_agrees_with_pytorch(client: Client, sample: Sample):
    ours = sample.call(*(gt.from_numpy(a) for a in sample.arrays))
    theirs = sample.call(*(to_torch(a) for a in sample.arrays))
    assert_same(ours, theirs)


def test_addition(client: Client):
    a, b = gt.tensor([1, 2, 3, 4]), gt.tensor([5, 6, 7, 8])
    np.testing.assert_array_equal((a + b).data.numpy(), [6, 8, 10, 12])


WITH_NUMBERS = {row.name: call(row) for of in ("arithmetic", "comparison", "bits") for row in rows(of)}
MIXING = {**WITH_NUMBERS, **{row.name: call(row) for of in ("pair", "logical") for row in rows(of)}}


@given(
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3),
    kinds=st.tuples(st.sampled_from(dtypes.DTYPES), st.sampled_from(dtypes.DTYPES)),
    op=st.sampled_from(sorted(MIXING)),
)
def test_any_two_shapes_and_dtypes_mix_as_in_pytorch(shapes, kinds, op):
    arrays = [
        ints(*shape, dtype=numpy_dtype(kind)) for shape, kind in zip(shapes.input_shapes, kinds, strict=True)
    ]
    try:
        theirs = MIXING[op](*map(to_torch, arrays))
    except RuntimeError:
        with pytest.raises(DTypeError, match=r"not implemented for|bool tensor"):
            MIXING[op](*map(gt.from_numpy, arrays))
        return
    assert_same(MIXING[op](*map(gt.from_numpy, arrays)), theirs)


@given(
    kind=st.sampled_from(dtypes.DTYPES),
    number=st.sampled_from([True, 2, 2.5]),
    reflected=st.booleans(),
    rank=st.integers(0, 1),
    op=st.sampled_from(sorted(WITH_NUMBERS)),
)
def test_any_dtype_and_number_mix_as_in_pytorch(kind, number, reflected, rank, op):
    array = ints(*(3,) * rank, dtype=numpy_dtype(kind))
    apply = MIXING[op] if not reflected else lambda a, b: MIXING[op](b, a)
    try:
        theirs = apply(to_torch(array), number)
    except (RuntimeError, TypeError):
        with pytest.raises((DTypeError, TypeError)):
            apply(gt.from_numpy(array), number)
        return
    assert_same(apply(gt.from_numpy(array), number), theirs)


FUNCTIONS_OF_ONE = [method(row) for of in ("math", "test") for row in rows(of)]


@pytest.mark.parametrize("name", [*FUNCTIONS_OF_ONE, "neg", "relu", "sigmoid", "bitwise_not"])
def test_a_function_takes_the_dtypes_that_pytorchs_takes(name: str):
    for kind in dtypes.DTYPES:
        array = np.ones(2, numpy_dtype(kind))
        try:
            theirs = getattr(torch, name)(to_torch(array))
        except RuntimeError:
            with pytest.raises(DTypeError, match=r"not implemented for|bool tensor"):
                getattr(gt, name)(gt.from_numpy(array))
            continue
        assert_same(getattr(gt, name)(gt.from_numpy(array)), theirs)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64", "float16", "float64"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_a_reduction_has_the_dtype_that_was_asked_for(client: Client, name: str, dtype: str):
    if name.startswith("cum") and dtype == "bool":
        pytest.skip("PyTorch has no bool scans")
    where = (0,) if name.startswith("cum") else ()
    ours = getattr(gt.tensor([100, 100, 3]), name)(*where, dtype=dtype)
    theirs = getattr(torch.tensor([100, 100, 3]), name)(*where, dtype=getattr(torch, dtype))
    assert_same(ours, theirs)


FACTORS = {
    "add": lambda x, y, z: x.add(y, alpha=100),
    "sub": lambda x, y, z: x.sub(y, alpha=100),
    "rsub": lambda x, y, z: (
        type(y).rsub(y, x, alpha=100) if isinstance(y, gt.Tensor) else torch.rsub(y, x, alpha=100)
    ),
    "addcmul": lambda x, y, z: x.addcmul(y, z, value=2),
    "addcdiv": lambda x, y, z: x.addcdiv(y, z.to(x.dtype), value=2),
}
"""Ops over tensors whose product, in the dtype of some of them, would overflow."""


@pytest.mark.parametrize("wide", ["int16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", FACTORS)
def test_a_product_inside_an_op_is_computed_in_the_dtype_of_the_result(client: Client, name: str, wide: str):
    if name == "addcdiv" and not dtypes.is_float(wide):
        pytest.skip("it divides no integers")
    arrays = np.array([1, 2], wide), np.array([100, 3], np.int8), np.array([100, 7], np.int8)
    assert_same(FACTORS[name](*map(gt.from_numpy, arrays)), FACTORS[name](*map(to_torch, arrays)))


def test_factors_that_pytorch_refuses_are_refused(client: Client):
    whole, true = gt.tensor([1, 2]), gt.tensor([True, False])
    with pytest.raises(DTypeError, match="Integer division with addcdiv"):
        whole.addcdiv(whole, whole)
    with pytest.raises(DTypeError, match="must not be a floating point number"):
        gt.rsub(whole, 1, alpha=0.5)
    with pytest.raises(DTypeError, match="bool tensor"):
        gt.rsub(true, 1, alpha=3)


def test_dtypes_promote_as_in_pytorch():
    for left in dtypes.DTYPES:
        for right in dtypes.DTYPES:
            expected = torch.promote_types(getattr(torch, left), getattr(torch, right))
            assert dtypes.promote(left, right) == dtype_name(expected)
            for left_rank, right_rank in ((0, 1), (1, 0), (0, 0)):
                ranks = (
                    torch.ones((1,) * left_rank).to(getattr(torch, left)),
                    torch.ones((1,) * right_rank).to(getattr(torch, right)),
                )
                assert dtypes.promote(left, right, left_rank, right_rank) == dtype_name(
                    torch.result_type(*ranks)
                )
        for number in (True, 1, 1.5):
            expected = torch.result_type(torch.ones(1).to(getattr(torch, left)), number)
            assert dtypes.promote_scalar(left, number) == dtype_name(expected)


def test_the_limits_of_dtypes_are_pytorchs():
    for name in dtypes.DTYPES[1:]:
        kind = "finfo" if dtypes.is_float(name) else "iinfo"
        ours, theirs = (getattr(lib, kind)(getattr(lib, name)) for lib in (gt, torch))
        for field in ("bits", "max", "min", *(("eps", "tiny") if kind == "finfo" else ())):
            assert getattr(ours, field) == getattr(theirs, field), (name, field)
    assert gt.promote_types(gt.uint8, gt.int8) == gt.int16
    assert gt.result_type(gt.arange(2), 1.5) == gt.result_type(1.5, gt.arange(2)) == gt.float32
    assert not gt.can_cast(gt.float32, gt.int64)
    assert (gt.pi, gt.inf) == (torch.pi, torch.inf)
    with pytest.raises(TypeError, match=r"use gt\.iinfo"):
        gt.finfo(gt.int64)


@pytest.mark.parametrize("to", dtypes.DTYPES)
@pytest.mark.parametrize("start", dtypes.DTYPES)
def test_cast_agrees_with_pytorch(client: Client, start: str, to: str):
    # What a negative fraction is without a sign, no language says.
    values = [0, 1, 2.75, 100] if "uint8" in (start, to) else [0, 1, 2.75, -3.5]
    array = np.array(values).astype(numpy_dtype(start))
    assert_same(gt.from_numpy(array).to(to), to_torch(array).to(getattr(torch, to)))


@pytest.mark.parametrize(
    "name", ["float", "double", "half", "bfloat16", "long", "int", "short", "bool", "byte"]
)
def test_a_cast_by_name(client: Client, name: str):
    x = ints(3)
    assert_same(getattr(gt.from_numpy(x), name)(), getattr(to_torch(x), name)())


def test_a_dtype_is_named_in_many_ways(client: Client):
    x = gt.ones(2)
    for double in ("float64", gt.float64, np.float64, np.dtype("float64"), torch.float64, "double"):
        assert x.to(double).dtype == gt.float64
        assert gt.zeros(2, dtype=double).dtype == gt.float64
    assert [gt.zeros(1, dtype=kind).dtype for kind in (float, int, bool)] == ["float32", "int64", "bool"]
    assert (
        x.type(gt.int64).dtype == x.type("torch.LongTensor").dtype == x.type_as(gt.arange(2)).dtype == "int64"
    )
    assert x.to(gt.arange(2)).dtype == x.to("cpu", dtype=gt.int64).dtype == "int64"


def test_a_device_makes_no_difference(client: Client):
    x = gt.ones(2, requires_grad=True)
    for same in (x.to("cpu"), x.to("cuda:1"), x.to(torch.device("cpu")), x.cpu(), x.cuda(), x.to(device=0)):
        assert same is x
    assert gt.zeros(2, device="cuda").to("cuda", "float64").dtype == gt.float64
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        x.to(color="red")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gt.ones(3) + gt.ones(4), ShapeError, r"size of tensor a \(3\) must match .* b \(4\)"),
        (lambda: gt.ones(2, 3) @ gt.ones(4, 5), ShapeError, r"cannot be multiplied \(2x3 and 4x5\)"),
        (lambda: gt.ones(3) @ gt.tensor(1.0), ShapeError, "at least 1D, but they are 1D and 0D"),
        (lambda: gt.ones(2, 2) @ gt.ones(2, 2, dtype="int64"), DTypeError, "float32 != int64"),
        (lambda: gt.ones(3).sum(dim=1), DimensionError, r"range of \[-1, 0\], but got 1"),
        (lambda: gt.ones(3, 3).sum(dim=(0, -2)), ShapeError, "more than once"),
        (lambda: gt.ones(3).reshape(2, 2), ShapeError, r"'\[2, 2\]' is invalid for input of size 3"),
        (lambda: gt.ones(3).reshape(-1, -1), ShapeError, "only one dimension"),
        (lambda: gt.ones(3).reshape(-2), ShapeError, "invalid shape dimension -2"),
        (lambda: gt.ones(2).expand(3), ShapeError, r"expanded size .* \(3\) must match"),
        (lambda: gt.ones(2, 2).expand(2), ShapeError, r"number of sizes provided \(1\)"),
        (lambda: gt.ones(2).expand(-1, 2), ShapeError, "-1 is not allowed"),
        (lambda: gt.arange(3).mean(), DTypeError, "floating point dtype. Got: int64"),
        (lambda: gt.arange(3) ** -1, DTypeError, "negative integer powers"),
        (lambda: -gt.full((2,), True), DTypeError, r"Negation with a bool tensor .* x\.to\('int64'\)"),
        (lambda: gt.ones(2) - True, DTypeError, "Subtraction, the `-` operator, with a bool tensor"),
        (lambda: gt.full((2,), True).relu(), DTypeError, "relu with a bool tensor"),
        (lambda: gt.full((2, 2), True) @ gt.full((2, 2), True), DTypeError, "matmul with a bool tensor"),
        (lambda: gt.zeros(2, dtype="float31"), DTypeError, "no dtype is called 'float31'"),
        (lambda: gt.randn(2, dtype="int64"), DTypeError, "not int64"),
        (lambda: gt.zeros(-1), ShapeError, "a shape cannot have negative sizes, but got"),
        (lambda: gt.tensor(["a"]), DTypeError, "no dtype is called"),
        (lambda: gt.ones(2).item(), ShapeError, "2 elements"),
        (lambda: gt.zeros(2.5), TypeError, r"a shape must be a sequence of integers, but got \(2.5,\)"),  # type: ignore[arg-type]
        (lambda: gt.manual_seed("a"), TypeError, "a seed must be an integer, but got 'a'"),  # type: ignore[arg-type]
        (lambda: bool(gt.ones(2)), ShapeError, "ambiguous"),
    ],
)
def test_a_mistake_is_reported_at_once_in_pytorchs_words(call, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        call()


def test_errors_are_subclasses_of_those_that_pytorch_raises():
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
        "tensor([1.], dtype=gt.float64, requires_grad=True)"
    )
    with pytest.raises(TypeError, match="0-d"):
        len(gt.tensor(1))
