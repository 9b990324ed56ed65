"""Gradients are PyTorch's, and the tape keeps only the values that gradients need."""

import gc
from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.client import Client
from gt.errors import DTypeError, GraphError, ShapeError
from gt.ops import TABLE
from tests.gt.samples import SAMPLES, Sample, on_every_system
from tests.gt.samples.base import assert_same_gradients, is_float, to_torch

DIFFERENTIABLE = [
    sample
    for sample in SAMPLES
    if sample.smooth and TABLE[sample.op].differentiable and any(map(is_float, sample.arrays))
]


@pytest.mark.parametrize(
    ("client", "sample"), on_every_system(DIFFERENTIABLE, each_op_on_jax=False), indirect=["client"]
)
def test_gradients_agree_with_pytorch(client: Client, sample: Sample):
    ours = [gt.from_numpy(a, requires_grad=is_float(a)) for a in sample.arrays]
    theirs = [to_torch(a).requires_grad_(is_float(a)) for a in sample.arrays]
    out, expected = sample.call(*ours), sample.call(*theirs)
    assert_same_gradients(out, ours, expected, theirs)


def test_gradient_passes_through_a_cast(client: Client):
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    (x.to("float64") * 3).sum().backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.tolist()) == ("float32", [3, 3])


def test_gradients_accumulate_over_uses_and_over_calls(client: Client):
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        (x * x + x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6, 10]


def test_a_diamond_is_visited_once_per_op(client: Client):
    x = gt.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(40):  # 2**40 paths, 40 ops
        y = y * 0.5 + y * 0.5
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 1


def test_two_graphs_live_side_by_side(client: Client):
    a, b = (gt.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    first, second = a * a, b * b
    second.backward()
    assert a.grad is None
    first.backward()
    assert a.grad is not None
    assert b.grad is not None
    assert (a.grad.item(), b.grad.item()) == (4, 6)


def test_backward_twice_needs_retain_graph():
    x = gt.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 8
    with pytest.raises(GraphError, match=r"second time.*retain_graph=True"):
        y.backward()


def test_the_gradient_of_the_output_may_be_an_array(client: Client):
    x = gt.ones(2, requires_grad=True)
    (x * 3).backward(np.array([1, 2]))
    assert x.grad is not None
    assert x.grad.tolist() == [3, 6]


def test_backward_errors_name_the_shape_or_the_cause():
    with pytest.raises(GraphError, match="only for scalar outputs, and this tensor has shape \\[2\\]"):
        (gt.ones(2, requires_grad=True) * 2).backward()
    with pytest.raises(GraphError, match="does not require grad"):
        gt.ones(1).backward()
    with pytest.raises(ShapeError, match="gradient has shape \\[3\\] and the output has shape \\[2\\]"):
        (gt.ones(2, requires_grad=True) * 2).backward(gt.ones(3))


def test_no_grad_and_detach_leave_the_tape_empty():
    x = gt.ones(2, requires_grad=True)
    before = len(gt.debug.get_tape())
    with gt.no_grad():
        y = x * 2
    z = x.detach() * 2
    assert not y.requires_grad
    assert not z.requires_grad
    assert len(gt.debug.get_tape()) == before


def test_reading_a_tensor_that_requires_grad_is_an_error_that_suggests_data():
    x = gt.ones(2, requires_grad=True)
    with pytest.raises(GraphError, match=r"x\.data\.numpy\(\)"):
        x.numpy()
    assert x.data.numpy().tolist() == [1, 1]


def test_the_tape_has_ops_in_order_and_is_freed_with_its_tensors(capsys: pytest.CaptureFixture[str]):
    x = gt.ones(2, requires_grad=True)
    y = (x * 2).relu()
    ours = [node for node in gt.debug.get_tape() if node.sequence >= len(gt.debug.get_tape()) - 2]
    assert [node.op for node in gt.debug.get_tape()][-2:] == ["mul", "relu"]
    gt.debug.print_tape()
    assert f"TENSOR[{y.id}] := RELU TENSOR[" in capsys.readouterr().out
    alive = len(gt.debug.get_tape())
    del y, ours
    assert len(gt.debug.get_tape()) == alive - 2


def test_a_graph_frees_its_tensors_without_the_garbage_collector(client: Client):
    def held() -> int:
        return sum(stats["tensors"] for stats in client.get_stats().values())

    gc.collect()
    before = held()
    gc.disable()
    try:
        for _ in range(3):
            x = gt.ones(4, requires_grad=True)
            (x * x).exp().sum().backward()
            del x
        assert held() == before
    finally:
        gc.enable()


def test_requires_grad_makes_a_leaf_in_place(client: Client):
    x = gt.ones(2).requires_grad_()
    (x * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(GraphError, match="leaf variables"):
        (x * 2).requires_grad_(False)
    with pytest.raises(
        DTypeError, match="only floating point tensors can require gradients, but this one is int64"
    ):
        gt.arange(3).requires_grad_()


def test_gradient_descent_follows_pytorch_step_by_step(client: Client):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((32, 3), np.float32), rng.standard_normal((32, 1), np.float32)
    start = rng.standard_normal((3, 1), np.float32)
    ours, theirs = gt.from_numpy(start, requires_grad=True), torch.from_numpy(start.copy()).requires_grad_()
    for _ in range(5):
        loss = ((gt.from_numpy(x) @ ours).tanh() - gt.from_numpy(y)) ** 2
        expected = ((torch.from_numpy(x) @ theirs).tanh() - torch.from_numpy(y)) ** 2
        loss.mean().backward()
        expected.mean().backward()
        np.testing.assert_allclose(loss.data.numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-6)
        assert ours.grad is not None
        assert theirs.grad is not None
        with gt.no_grad():
            ours = (ours - 0.5 * ours.grad).requires_grad_()
        theirs = (theirs - 0.5 * theirs.grad).detach().requires_grad_()


def test_set_grad_enabled_works_without_a_with(client: Client):
    x = gt.ones(2, requires_grad=True)
    gt.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        gt.set_grad_enabled(True)
    assert (x * 2).requires_grad
    with gt.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_no_grad_decorates_with_and_without_parentheses_and_over_generators(client: Client):
    x = gt.ones(2, requires_grad=True)

    @gt.no_grad
    def plain():
        return (x * 2).requires_grad

    @gt.no_grad()
    def called():
        return (x * 2).requires_grad

    @gt.no_grad()
    def generator():
        yield (x * 2).requires_grad
        yield (x * 2).requires_grad

    @gt.set_grad_enabled(False)
    def chosen():
        return (x * 2).requires_grad

    assert not any([plain(), called(), called(), chosen()])
    for recorded in generator():
        assert not recorded
        assert gt.is_grad_enabled()  # outside of it
    once = gt.no_grad()
    for _ in range(2):
        with once, gt.inference_mode():
            assert not gt.is_grad_enabled()
    assert gt.is_grad_enabled()


def test_gradients_can_be_computed_with_grad(client: Client):
    def ask(lib: Any) -> list[Any]:
        x, y = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([3.0, 4.0], requires_grad=True)
        h = x * y
        z = (h * h).sum()
        one = lib.autograd.grad(z, [x, h], retain_graph=True)
        other = lib.autograd.grad((h, z), (y,), grad_outputs=(lib.ones(2), None), allow_unused=True)
        assert x.grad is None
        assert y.grad is None
        return [part.tolist() for part in (*one, *other)]

    assert ask(gt) == ask(torch)
    w = gt.ones(1, requires_grad=True)
    with pytest.raises(GraphError, match="appears to not have been used"):
        gt.autograd.grad((w * 2).sum(), [gt.ones(1, requires_grad=True)])
    assert gt.autograd.grad((w * 2).sum(), gt.ones(1, requires_grad=True), allow_unused=True) == (None,)
    with pytest.raises(GraphError, match="does not require grad"):
        gt.autograd.grad((w * 2).sum(), gt.ones(1))


def test_a_change_in_place_under_no_grad_keeps_the_graph(client: Client):
    w = gt.tensor([1.0, -2.0], requires_grad=True)
    h = w * 3
    with gt.no_grad():
        h.clamp_(-1, 1)
    (h * h).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [6.0, -6.0]  # PyTorch's: the clamp is in the values and not in the slope


def test_hooks_see_and_change_gradients_and_can_be_taken_off(client: Client):
    def train(lib: Any) -> list[Any]:
        seen: list[Any] = []
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        handle = x.register_hook(lambda g: seen.append(g.tolist()))
        h = x * 3
        h.register_hook(lambda g: g * 10)
        h.retain_grad()
        (h * h).sum().backward()
        handle.remove()
        (x * 2).sum().backward()
        return [seen, h.grad.tolist(), x.grad.tolist()]

    assert train(gt) == train(torch)
    with pytest.raises(GraphError, match="cannot register a hook on a tensor that doesn't require gradient"):
        gt.ones(2).register_hook(lambda g: None)


@pytest.mark.parametrize("kind", ["leaf", "result"])
@pytest.mark.parametrize("change", [lambda g: g.double(), lambda g: g[:1], lambda g: g.sum()])
def test_a_hook_that_changes_the_shape_or_dtype_of_a_gradient_is_an_error(
    client: Client, kind: str, change: Any
):
    for library in (gt, torch):
        x = library.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        (x if kind == "leaf" else y).register_hook(change)
        with pytest.raises(RuntimeError, match="hook '<lambda>' has changed the"):
            y.sum().backward()


def test_an_optimizers_updates_are_never_recorded(client: Client):
    w = gt.ones(3, requires_grad=True)
    for optimizer in (gt.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.1), gt.optim.AdamW([w], lr=0.1)):
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            before = len(gt.debug.get_tape())
            optimizer.step()
            assert len(gt.debug.get_tape()) == before
            assert w.is_leaf
            assert w.requires_grad
    assert gt.debug.get_tape() == []
