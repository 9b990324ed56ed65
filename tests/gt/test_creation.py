"""Tensors are made as in PyTorch, from all kinds of data, and random ones are reproducible."""

from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.client import Client
from gt.errors import DTypeError
from gt.worker.engine.base import load_engine
from tests.gt.samples.base import assert_same

CREATED: list[Any] = [
    lambda lib: lib.zeros(2, 3),
    lambda lib: lib.zeros((2, 3), dtype=lib.bfloat16),
    lambda lib: lib.ones((2,), dtype=lib.int64),
    lambda lib: lib.ones(()),
    lambda lib: lib.full((2, 2), 7),
    lambda lib: lib.full((2, 2), 0.5),
    lambda lib: lib.full((2,), True),
    lambda lib: lib.full((2,), 2.5, dtype=lib.int64),
    lambda lib: lib.full((2,), float("-inf")),
    lambda lib: lib.arange(5),
    lambda lib: lib.arange(0),
    lambda lib: lib.arange(1, 2, 0.25),
    lambda lib: lib.arange(0, 1, 0.1),
    lambda lib: lib.arange(5, 0, -2),
    lambda lib: lib.arange(3, dtype=lib.float32),
    lambda lib: lib.arange(2**62, 2**62 + 3),
    lambda lib: lib.linspace(0, 1, 5),
    lambda lib: lib.linspace(-3, 7, 11),
    lambda lib: lib.linspace(2, 3, 1),
    lambda lib: lib.linspace(0, 1, 3, dtype=lib.float64),
    lambda lib: lib.logspace(0, 2, 3),
    lambda lib: lib.eye(3),
    lambda lib: lib.eye(2, 3, dtype=lib.int64),
    lambda lib: lib.zeros_like(lib.ones(2, 3, dtype=lib.int32)),
    lambda lib: lib.ones_like(lib.zeros(3), dtype=lib.float16),
    lambda lib: lib.full_like(lib.zeros(2), 3),
    lambda lib: lib.zeros_like(lib.empty(2, 3)),
    lambda lib: lib.zeros_like(lib.empty_like(lib.arange(3))),
    lambda lib: lib.ones(2).new_zeros(3),
    lambda lib: lib.ones(2, dtype=lib.float64).new_ones((2, 1)),
    lambda lib: lib.ones(2).new_full((2,), 3, dtype=lib.int64),
    lambda lib: lib.tensor([1.5, 2]),
    lambda lib: lib.tensor([[1, 2], [3, 4]]),
    lambda lib: lib.tensor([]),
    lambda lib: lib.tensor([[], []]),
    lambda lib: lib.tensor(3),
    lambda lib: lib.tensor(True),
    lambda lib: lib.tensor([True, 2]),
    lambda lib: lib.tensor((1, 2.5)),
    lambda lib: lib.tensor(range(3)),
    lambda lib: lib.tensor([1e40]),
    lambda lib: lib.tensor(2, dtype=lib.bfloat16),
    lambda lib: lib.tensor([1.7, -1.7], dtype=lib.int32),
    lambda lib: lib.tensor(np.float64(1.5)),
    lambda lib: lib.tensor(np.int32(2)),
    lambda lib: lib.tensor(np.arange(3, dtype=np.uint8)),
    lambda lib: lib.tensor([np.array([1, 2]), np.array([3, 4])]),
    lambda lib: lib.tensor([lib.tensor(1.5), 2]),
    lambda lib: lib.tensor([[lib.tensor(1), lib.tensor(2)], [3, 4]]),
    lambda lib: lib.as_tensor([1, 2]),
    lambda lib: lib.as_tensor(lib.ones(2), dtype=lib.int64),
    lambda lib: lib.from_numpy(np.ones((2, 2), np.float64)),
]


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")  # PyTorch's advice on speed
@pytest.mark.parametrize("number", range(len(CREATED)))
def test_creation_agrees_with_pytorch(client: Client, number: int):
    assert_same(CREATED[number](gt), CREATED[number](torch))


def test_arrays_of_any_layout_and_byte_order_are_taken_in(client: Client):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    layouts = (
        array[::-1, ::2],
        array.T,
        np.asfortranarray(array),
        array.astype(">f4"),
        array[1:2, 1],
        array[1, 1],
    )
    for layout in layouts:
        np.testing.assert_array_equal(gt.tensor(layout).numpy(), layout)
    frozen = array.copy()
    frozen.flags.writeable = False
    assert gt.tensor(frozen).sum().item() == 66


def test_a_tensor_keeps_its_data_when_the_array_changes(client: Client):
    array = np.ones(3, np.float32)
    tensors = gt.tensor(array), gt.from_numpy(array), gt.as_tensor(array), gt.tensor(torch.from_numpy(array))
    array[:] = 7
    assert all(x.tolist() == [1, 1, 1] for x in tensors)


def test_pytorchs_tensors_are_taken_in(client: Client):
    for dtype in (torch.bfloat16, torch.float64, torch.bool):
        theirs = torch.ones(2, dtype=dtype)
        assert_same(gt.tensor(theirs), theirs)
    assert not gt.tensor(torch.ones(2, requires_grad=True)).requires_grad


def test_a_tensor_of_a_tensor_is_a_new_leaf(client: Client):
    x = gt.ones(2, requires_grad=True)
    copy = gt.tensor(x * 2, requires_grad=True)
    (copy * 3).sum().backward()
    assert copy.grad is not None
    assert (x.grad, copy.grad.tolist()) == (None, [3, 3])
    assert gt.as_tensor(x) is x


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "complex64", "datetime64[s]"])
def test_a_dtype_that_does_not_exist_here_is_named(dtype: str):
    with pytest.raises(
        DTypeError, match=rf"no dtype is called '{np.dtype(dtype).name.replace('[', '.')[:9]}"
    ):
        gt.tensor(np.zeros(2, dtype))


def test_lists_that_are_no_tensor_are_explained():
    with pytest.raises(ValueError, match=r"expected sequence of length 1 at dim 1 \(got 2\)"):
        gt.tensor([[1], [1, 2]])
    with pytest.raises(ValueError, match="expected numbers at dim 1, but some are sequences"):
        gt.tensor([1, [2, 3]])
    with pytest.raises(TypeError, match=r"not \{1\}, a set"):
        gt.tensor([0, {1}])


def test_random_numbers_are_the_same_on_every_engine_and_fit_their_distribution():
    pytest.importorskip("jax", reason="an extra: pip install tapestry[jax]")
    engines = [load_engine(name) for name in ("numpy", "pytorch", "jax")]
    expected = {
        ("rand", ()): (0.5, 12**-0.5),
        ("randn", ()): (0.0, 1.0),
        ("randint", (("low", -50), ("high", 51))): (0.0, (101**2 / 12) ** 0.5),
        ("bernoulli", (("p", 0.25),)): (0.25, (3 / 16) ** 0.5),
    }
    for (op, attrs), (mean, deviation) in expected.items():
        for dtype in ("float32", "bfloat16"):
            call = {"shape": (100, 100), "dtype": dtype, "seed": 7, **dict(attrs)}
            one, *others = (engine.get(engine.run(op, [], call)).astype("float64") for engine in engines)
            for other in others:
                np.testing.assert_array_equal(one, other)
            assert abs(one.mean() - mean) < 0.03 * deviation
            assert abs(one.std() - deviation) < 0.03 * deviation
    assert (
        len(np.unique(engines[0].run("randn", [], {"shape": (100, 100), "dtype": "float32", "seed": 7})))
        > 9_900
    )


def test_a_shuffle_holds_every_number_once(client: Client):
    shuffled = gt.randperm(100)
    assert shuffled.dtype == gt.int64
    assert sorted(shuffled.tolist()) == list(range(100)) != shuffled.tolist()


def test_a_seed_repeats_the_random_numbers_and_two_draws_differ(client: Client):
    gt.manual_seed(3)
    first, second = gt.randn(5), gt.randn(5)
    gt.manual_seed(3)
    again = gt.randn(5)
    np.testing.assert_array_equal(first.numpy(), again.numpy())
    assert not (first == second).numpy().any()


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_draws_by_weight(client: Client, replacement: bool):
    weights = gt.tensor([[0.0, 1.0, 3.0, 0.0], [4.0, 0.0, 0.0, 4.0]])
    gt.manual_seed(0)
    drawn = gt.multinomial(weights, 2, replacement)
    assert (drawn.shape, drawn.dtype) == ((2, 2), "int64")
    draws = [gt.multinomial(weights, 1, replacement).tolist() for _ in range(200)]
    first, second = ([draw[row][0] for draw in draws] for row in range(2))
    assert set(first) == {1, 2}
    assert set(second) == {0, 3}
    assert 0.6 < first.count(2) / len(first) < 0.9
    if not replacement:
        assert all(
            sorted(row) == [1, 2] for row in [gt.multinomial(weights[0], 2).tolist() for _ in range(5)]
        )
    with pytest.raises(RuntimeError, match="without replacement"):
        gt.multinomial(weights, 5)


def test_sampling_from_a_tensor_does_not_change_the_tensor(client: Client):
    x = gt.full((4,), 0.25)
    for draw in (gt.rand_like, gt.randn_like, gt.bernoulli, gt.zeros_like):
        draw(x)
    gt.bernoulli(x, 0.5)
    gt.multinomial(x, 2)
    assert x.tolist() == [0.25] * 4
