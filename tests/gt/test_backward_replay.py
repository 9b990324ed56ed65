"""Replayed gradient rules issue the instructions that the rules themselves would issue."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from gt.errors import GraphError
from tests.gt.helpers.replay import Counting, check, forget, leaf, using

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, y: (x + y).sum(),
    "square": lambda x, y: (x * x + y).mean(),
    "product": lambda x, y: (x @ y.T).sum(),
    "mixed": lambda x, y: (x.exp() * y.sigmoid() - x / (y * y + 1)).mean(),
    "reused": lambda x, y: ((x + y) * (x - y) * x.relu()).sum(),
    "one gradient for both": lambda x, y: (x - x.detach() + y).sum(),
    "dropout": lambda x, y: (gt.nn.functional.dropout(x, 0.5) * y).sum(),
    "softmax": lambda x, y: (gt.nn.functional.log_softmax(x, -1) * y).mean(),
    "shapes": lambda x, y: (x.reshape(4, 3).T[1:] * y.T.reshape(3, 4)[:2]).sum(),
    "numbers": lambda x, y: (2 * x + 3.5 - y / 2).pow(2).mean(),
    "indices": lambda x, y: (x[gt.tensor([0, 0, 2])] * y).sum(),
    "half": lambda x, y: (x.half().float() * y).sum(),
    "joined": lambda x, y: gt.cat([x, y], 1).tanh().sum(),
    "gradient itself": lambda x, y: x.sum() + y.sum(),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("accumulates", [False, True])
def test_a_loop_issues_the_same_instructions_as_without_replay(
    loss: Callable[[Any, Any], Any], accumulates: bool
) -> None:
    def program() -> Any:
        x, y = leaf(3, 4), leaf(3, 4)
        for _ in range(6):
            if not accumulates:
                forget(x, y)
            loss(x, y).backward()
            with gt.no_grad():
                x -= 0.1 * x.grad
        return x.tolist(), y.grad.tolist()

    check(program, 3)


def test_a_whole_training_step_is_a_repeat() -> None:
    def program() -> Any:
        gt.manual_seed(1)
        model = gt.nn.Sequential(
            gt.nn.Linear(5, 8), gt.nn.ReLU(), gt.nn.LayerNorm(8), gt.nn.Dropout(0.2), gt.nn.Linear(8, 3)
        )
        optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
        x, y = gt.randn(7, 5), gt.tensor([0, 1, 2, 0, 1, 2, 0])
        losses = []
        for _ in range(8):
            optimizer.zero_grad()
            loss = gt.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    check(program, 6)


OPS = st.sampled_from(["add", "mul", "sub", "matmul", "exp", "scale", "twice", "transpose", "detach", "tanh"])


@st.composite
def programs(draw: Any) -> list[tuple[int, list[tuple[str, int, int, float]], bool, bool]]:
    """Steps, each a shape, ops on what there is, whether gradients add up, and whether the graph stays.

    They come from a few, so that some are the same, and others differ only a little.
    """
    one = st.tuples(OPS, st.integers(0, 5), st.integers(0, 5), st.sampled_from([0.5, 1.0, -0.0, 0.0, 2.0]))
    bodies = draw(st.lists(st.lists(one, min_size=1, max_size=5), min_size=1, max_size=3))
    steps = st.tuples(st.sampled_from([2, 3]), st.sampled_from(bodies), st.booleans(), st.booleans())
    return draw(st.lists(steps, min_size=3, max_size=10))


@settings(max_examples=40)
@given(programs())
def test_random_programs_issue_the_same_instructions_as_without_replay(steps: Any) -> None:
    def program() -> Any:
        leaves = {n: (leaf(n, n), leaf(n, n)) for n in (2, 3)}
        grads = []
        for size, body, adds_up, twice in steps:
            x, y = leaves[size]
            if not adds_up:
                forget(x, y)
            tensors = [x, y]
            for op, i, j, number in body:
                a, b = tensors[i % len(tensors)], tensors[j % len(tensors)]
                if op in ("add", "mul", "sub"):
                    made = getattr(a, f"__{op}__")(b)
                elif op == "scale":
                    made = a * number
                elif op == "matmul":
                    made = a @ b
                elif op == "twice":
                    made = a * a
                elif op == "transpose":
                    made = a.T
                else:
                    made = getattr(a, op)()
                tensors.append(made.clamp(-9, 9))
            loss = functools.reduce(operator.add, tensors).sum()
            loss.backward(retain_graph=twice)
            if twice:
                loss.backward()
            for one in (x, y):
                grads.append(None if one.grad is None else one.grad.tolist())
        return grads

    check(program, 0)


def test_other_numbers_types_and_shapes_are_another_graph() -> None:
    def program() -> Any:
        x = leaf(4)
        got = []
        for factor in (2, 2, 2, True, 2.0, -2, 0.0, -0.0, 2, 2):
            forget(x)
            (x * factor).sum().backward()
            got.append(str(x.grad.tolist()))
        return got

    assert check(program).replayed


@pytest.mark.parametrize("first", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("then", ["float32", "float64", "float16", "int64"])
def test_a_gradient_of_any_dtype_gives_gradients_in_the_leafs_own(first: str, then: str) -> None:
    """PyTorch converts the gradient that backward() is given to the dtype of the output."""

    def program(library: Any) -> Any:
        seen: list[str] = []
        x = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
        half = x.detach().half().requires_grad_()
        for step, dtype in enumerate([first] * 4 + [then] * 2 + [first]):
            for one in (x, half):
                forget(one)
                y = one * one + 1
                if step == 6:
                    y.register_hook(lambda g: seen.append(str(g.dtype).rpartition(".")[2]))
                y.backward(library.tensor([1000.5, 2.0, 3.25]).to(getattr(library, dtype)))
                data = one.grad.numpy()
                seen.append(f"{str(one.grad.dtype).rpartition('.')[2]} {data.dtype} {data.tolist()}")
        return seen

    with using(Counting()):
        assert program(gt) == program(torch)


@pytest.mark.parametrize("kind", ["leaf", "result"])
def test_gradients_by_hand_have_the_dtype_of_their_input(kind: str) -> None:
    def program(library: Any) -> list[str]:
        x = library.tensor([1.0, 2.0], requires_grad=True)
        y = x if kind == "leaf" else x * 2
        given = library.ones(2, dtype=library.float64)
        got = library.autograd.grad(y, x, given, retain_graph=True)[0]
        y.backward(given)
        return [str(one.dtype).rpartition(".")[2] for one in (got, x.grad)]

    assert program(gt) == program(torch) == ["float32", "float32"]


def test_a_gradient_that_is_a_leafs_own_is_not_reused_in_a_replay() -> None:
    def program(library: Any) -> Any:
        x = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x.grad = library.tensor([1.0, 2.0, 3.0])
        got = []
        for step in range(8):
            gradient = x.grad if step < 5 else library.ones(3)
            (x + 1).backward(gradient)
            got.append(x.grad.tolist())
        return got

    assert program(gt) == program(torch)


def test_a_tensor_that_is_used_twice_is_not_two_tensors() -> None:
    def program() -> Any:
        got = []
        x, c = leaf(4), gt.tensor([1.0, 2.0, 3.0, 4.0])
        others = [c, c, c, gt.tensor([5.0, 6.0, 7.0, 8.0]), c]
        for other in others:
            forget(x)
            ((x * c) * other).sum().backward()
            got.append(x.grad.tolist())
        for a, b in [(x, x), (x, x), (x, leaf(4)), (leaf(4), x), (x, x)]:
            forget(x)
            (a * b).sum().backward()
            got.append(x.grad.tolist())
        return got

    check(program)


def test_a_leaf_that_changed_between_two_uses_has_the_gradient_of_both() -> None:
    def program() -> Any:
        x = leaf(4)
        got = []
        for changes in (False, False, False, True, False):
            forget(x)
            first = x * 1.0
            if changes:
                with gt.no_grad():
                    x += 1
            (first * first + x * x).sum().backward()
            got.append(x.grad.tolist())
        return got

    check(program)


def test_what_looks_at_gradients_sees_them_all() -> None:
    seen: list[Any] = []

    def program() -> Any:
        seen.clear()
        x = leaf(4)
        for step in range(8):
            forget(x)
            middle = x * 2
            handles = []
            if step == 5:
                handles.append(middle.register_hook(lambda g: seen.append(g.tolist())))
            if step == 6:
                handles.append(x.register_hook(lambda g: g * 3))
            if step == 7:
                middle.retain_grad()
            (middle * middle).sum().backward()
            for handle in handles:
                handle.remove()
            if step == 7:
                seen.append(middle.grad.tolist())
            seen.append(x.grad.tolist())
        return [*seen]

    check(program, 3)


def test_backward_a_second_time_is_still_an_error() -> None:
    plans = Counting()
    with using(plans):
        x = leaf(4)
        for _ in range(4):
            loss = (x * x).sum()
            loss.backward()
            with pytest.raises(GraphError, match="second time"):
                loss.backward()
    assert plans.replayed
