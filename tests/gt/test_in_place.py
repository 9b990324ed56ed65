"""In-place methods give PyTorch's values and errors, and gradients use the values that were read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.client import Client
from gt.errors import DTypeError, GraphError, ShapeError
from tests.gt.samples.base import assert_same, floats, ints, signed, to_torch


def _statement(code: str) -> Callable[..., None]:
    return lambda x, y: exec(code, {"x": x, "y": y})


CHANGES: dict[str, Callable[..., Any]] = {
    **{
        code: _statement(code)
        for code in ("x += y", "x -= y", "x *= 2", "x /= y", "x **= 2", "x //= 2", "x %= y", "x += x")
    },
    "add_": lambda x, y: x.add_(y, alpha=2),
    "sub_": lambda x, y: x.sub_(1),
    "mul_": lambda x, y: x.mul_(y),
    "div_": lambda x, y: x.div_(y),
    "div_ floor": lambda x, y: x.div_(y, rounding_mode="floor"),
    "pow_": lambda x, y: x.pow_(3),
    "remainder_": lambda x, y: x.remainder_(y),
    "lerp_": lambda x, y: x.lerp_(y, 0.25),
    "addcmul_": lambda x, y: x.addcmul_(y, y, value=0.5),
    "addcdiv_": lambda x, y: x.addcdiv_(y, y + 1),
    "clamp_": lambda x, y: x.clamp_(0.5, 1),
    "clamp_min_": lambda x, y: x.clamp_min_(0.5),
    "clamp_max_": lambda x, y: x.clamp_max_(0.5),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 1, 0),
    "zero_": lambda x, y: x.zero_(),
    "fill_": lambda x, y: x.fill_(2.5),
    "fill_ tensor": lambda x, y: x.fill_(y.sum()),
    "copy_": lambda x, y: x.copy_(y),
    "copy_ broadcast": lambda x, y: x.copy_(y.sum(0)),
    **{
        name: lambda x, y, name=name: getattr(x, name)()
        for name in (
            *("neg_", "abs_", "sign_", "square_", "sqrt_", "rsqrt_", "reciprocal_", "exp_", "log_", "log1p_"),
            *("sin_", "cos_", "tanh_", "erf_", "sigmoid_", "relu_", "floor_", "ceil_", "round_", "trunc_"),
        )
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_in_place_agrees_with_pytorch(client: Client, name: str):
    arrays = (floats(2, 3), 0.7 * floats(2, 3)[::-1].copy())
    x, y = map(gt.tensor, arrays)
    a, b = map(to_torch, arrays)
    same = x
    CHANGES[name](x, y)
    CHANGES[name](a, b)
    assert same is x
    assert_same(x, a)


@pytest.mark.parametrize(
    "name", ["x += y", "x *= 2", "mul_", "lerp_", "exp_", "zero_", "copy_", "masked_fill_"]
)
def test_gradients_flow_through_in_place_ops(client: Client, name: str):
    arrays = (floats(2, 3), 0.7 * floats(2, 3)[::-1].copy())
    grads = []
    for to in (gt.tensor, torch.tensor):
        x, y = (to(array).requires_grad_() for array in arrays)
        z = x * 3
        # The gradient of what was computed before is that of the z it read. (PyTorch overwrites that one,
        # and then refuses to go back: it gets another.)
        read = z if isinstance(z, gt.Tensor) else x * 3
        before = read * read
        CHANGES[name](z, y)
        (before + z).sum().backward()
        grads.append([np.zeros((2, 3)) if v.grad is None else np.asarray(v.grad) for v in (x, y)])
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-5)


def test_an_in_place_result_keeps_the_dtype(client: Client):
    for dtype in ("int32", "float16", "uint8"):
        x, a = gt.tensor(ints(3, dtype=dtype)), to_torch(ints(3, dtype=dtype))
        x += gt.tensor(ints(3))
        a += to_torch(ints(3))
        assert_same(x, a)
    half = gt.ones(2, dtype="float16")
    half *= gt.ones(2, dtype="float64")
    assert half.dtype == gt.float16


def test_in_place_errors_name_the_shapes_or_dtypes_that_do_not_fit():
    for kind, change in (("Float", lambda x: x.add_(1.5)), ("Float", lambda x: x.div_(2))):
        with pytest.raises(
            DTypeError, match=f"result type {kind} can't be cast to the desired output type Long"
        ):
            change(gt.arange(2))
    with pytest.raises(DTypeError, match="result type Long can't be cast to the desired output type Bool"):
        gt.full((2,), True).add_(1)
    with pytest.raises(
        ShapeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]"
    ):
        gt.ones(2).add_(gt.ones(3, 2))
    with pytest.raises(ShapeError, match=r"expanded size .* \(2\) must match the existing size \(3\)"):
        gt.ones(2).copy_(gt.ones(3))
    with pytest.raises(ShapeError, match="0-dimension value tensor but got tensor with 1 dimensions"):
        gt.ones(2).fill_(gt.ones(2))
    x: Any = gt.ones(2)
    with pytest.raises(TypeError, match="unsupported operand"):
        x += "one"
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        gt.ones(2).copy_("one")


@pytest.mark.parametrize("name", ["x += y", "zero_", "fill_", "copy_", "exp_", "clamp_"])
def test_a_leaf_that_requires_grad_changes_only_inside_no_grad(client: Client, name: str):
    x, y = gt.ones(2, requires_grad=True), gt.ones(2)
    with pytest.raises(GraphError, match="a leaf Variable that requires grad is being used in an in-place"):
        CHANGES[name](x, y)
    assert x.tolist() == [1, 1]
    with gt.no_grad():
        CHANGES[name](x, y)
    assert x.is_leaf
    assert x.requires_grad


def test_a_copy_does_not_follow(client: Client):
    x = gt.ones(2)
    clone, other = x.clone(), gt.tensor(x)
    x += 1
    assert (x.tolist(), clone.tolist(), other.tolist()) == ([2, 2], [1, 1], [1, 1])
    y = gt.ones(2, requires_grad=True)
    (y.clone() * 3).sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [3, 3]


def test_random_filling(client: Client):
    x = gt.zeros(10_000, dtype="float64")
    x.normal_(3, 2)
    assert (abs(x.mean().item() - 3), abs(x.std().item() - 2)) < (0.1, 0.1)
    x.uniform_(-1, 3)
    assert (-1 <= x.min().item() < -0.99, 2.99 < x.max().item() < 3) == (True, True)
    x.bernoulli_(0.25)
    assert sorted(set(x.tolist())) == [0, 1]
    assert abs(x.mean().item() - 0.25) < 0.03
    chances = gt.bernoulli(gt.tensor([0.0, 1.0, 0.0]))
    assert (chances.tolist(), chances.dtype) == ([0, 1, 0], "float32")
    gt.manual_seed(1)
    first = gt.zeros(4).normal_()
    gt.manual_seed(1)
    assert gt.equal(gt.zeros(4).normal_(), first)


def test_comparing_whole_tensors(client: Client):
    x = gt.tensor(signed(5))
    assert gt.allclose(x.abs() * x.sign(), x)
    assert not gt.allclose(x, x + 1)
    assert gt.equal(x, x)
    assert not gt.equal(x, gt.ones(1))
    assert 3 in gt.arange(5)
    assert 7 not in gt.arange(5)


def test_data_that_was_kept_follows_its_tensor(client: Client):
    x = gt.ones(2, requires_grad=True)
    data = x.data
    with gt.no_grad():
        x.add_(1)
    assert data.tolist() == [2.0, 2.0]
    data.mul_(3)
    assert x.tolist() == [6.0, 6.0]
