"""Replayed gradient rules issue the instructions that the rules themselves would issue."""

import dataclasses
import functools
import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from gt.autograd import backward_replay
from gt.client import session as session_module
from gt.errors import GraphError
from gt.ops import TABLE
from gt.stream.instructions import Op
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
def test_a_loop_issues_what_it_always_did(loss: Callable[[Any, Any], Any], accumulates: bool) -> None:
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
def test_any_programs_issue_what_they_always_did(steps: Any) -> None:
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


def test_a_gradient_that_is_a_leafs_own_is_not_taken_for_it_later() -> None:
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


def test_signals_are_told_of_every_op(tmp_path) -> None:
    path = tmp_path / "signals.yaml"
    path.write_text("layer:\n  replicate: true\n  backward: other\nother:\n  replicate: true\n")
    with using(Counting()) as seen:
        gt.load_config(str(path))
        x = leaf(4)
        counts = []
        for _ in range(4):
            forget(x)
            with gt.signal.context("layer"):
                loss = (x * x).sum()
            before = len(seen.instructions)
            loss.backward()
            session_module.current().flush()
            counts.append(sum(type(one).__name__ == "Signal" for one in seen.instructions[before:]))
        assert counts[1:] == counts[:-1]
        assert counts[0]


def test_a_signal_first_used_inside_a_backward_pass_leaves_no_listener_behind(tmp_path) -> None:
    path = tmp_path / "signals.yaml"
    path.write_text("layer:\n  replicate: true\n")
    plans = Counting()
    with using(plans) as seen:
        gt.load_config(str(path))
        client = session_module.current()
        x = leaf(4)

        def use_a_signal(g: Any) -> Any:
            with gt.signal.context("layer"):
                return g * 2

        for step in range(3):
            forget(x)
            middle = x * 2
            if step == 1:  # the second node of a kind is the one that is recorded
                middle.register_hook(use_a_signal)
            (middle * middle).sum().backward()
            client.flush()
        assert plans.recorded
        assert len(client.listeners) == 1  # the one that announces signals
        before = plans.replayed
        forget(x)
        with gt.signal.context("layer"):
            (x * x).sum().backward()
        client.flush()
        assert any(type(one).__name__ == "Signal" for one in seen.instructions)
        assert plans.replayed == before, "which signal is due depends on more than the node"


def test_a_kind_of_node_that_occurs_once_is_not_recorded() -> None:
    plans = Counting()
    with using(plans):
        for n in range(1, 60):
            leaf(n).exp().sum().backward()
    assert (plans.recorded, plans.replayed) == (0, 0)
    with using(plans):
        for _ in range(5):
            leaf(70).exp().sum().backward()
    assert (plans.recorded, plans.replayed) == (2, 6)


def test_hooks_and_accumulated_gradients_do_not_prevent_replay() -> None:
    def program() -> Any:
        x, seen = leaf(4), []
        for _ in range(5):
            middle = x.exp()
            middle.register_hook(lambda g: g * 2)
            middle.retain_grad()
            (middle * x).sum().backward()
            seen.append((middle.grad.tolist(), x.grad.tolist()))
        return seen

    check(program, 9)


def test_a_pass_that_is_broken_off_frees_what_it_made() -> None:
    plans = Counting()
    with using(plans) as seen:
        client = session_module.current()
        x = leaf(4)

        def forward() -> Any:
            forget(x)
            return (x.exp() * x.tanh()).sum()

        for _ in range(4):
            forward().backward()
        assert plans.replayed
        loss = forward()
        client.flush()
        start = len(seen.instructions)
        flush, client.next_flush = client.flush, loss.id + 2  # after the gradient that it begins with

        def interrupted(whole: bool = True) -> None:
            raise KeyboardInterrupt

        client.flush = interrupted
        with pytest.raises(KeyboardInterrupt):
            loss.backward()
        client.flush = flush
        del loss
        client.flush()
        made = {one.result for one in seen.instructions[start:] if type(one) is Op}
        freed = {one for one in seen.instructions[start:] if type(one) is int}
        assert made
        assert made <= freed
        left = x.grad
        assert left is None
        x.exp().sum().backward()
        assert x.grad.tolist() == x.detach().exp().tolist()


def test_threads_go_back_through_their_own_graphs() -> None:
    plans = Counting()
    errors: list[Any] = []
    with using(plans):
        together = threading.Barrier(4)

        def work(factor: float) -> None:
            try:
                x = leaf(4)
                together.wait(10)
                for _ in range(40):
                    forget(x)
                    (x * x * factor).sum().backward()
                    np.testing.assert_allclose(x.grad.numpy(), 2 * factor * x.data.numpy(), rtol=1e-6)
            except Exception as error:  # noqa: BLE001 - told to the test
                errors.append(error)

        threads = [threading.Thread(target=work, args=(1.0 + n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not errors
    assert plans.replayed


def test_a_rule_that_reads_another_tensor_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = Counting()
    with using(plans):
        factors = [gt.full((4,), float(n)) for n in range(6)]
        for step, factor in enumerate(factors):
            row = dataclasses.replace(TABLE["neg"], grads=(lambda g, n, factor=factor: g * factor,))
            monkeypatch.setitem(TABLE, "neg", row)
            x = leaf(4)
            (-x).backward(gt.ones(4))
            assert x.grad.tolist() == [step] * 4
        assert not session_module.current().listeners
    assert (plans.recorded, plans.replayed) == (1, 0)


def test_a_rule_that_keeps_a_tensor_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    plans, kept = Counting(), []

    def gradient(g: Any, node: Any) -> Any:
        kept.append(g * 2)
        return g * 3

    monkeypatch.setitem(TABLE, "neg", dataclasses.replace(TABLE["neg"], grads=(gradient,)))
    with using(plans):
        for _ in range(5):
            (-leaf(4)).backward(gt.ones(4))
        assert [one.tolist() for one in kept] == [[2] * 4] * 5
        kept.clear()
    assert (plans.recorded, plans.replayed) == (1, 0)


def test_the_number_of_plans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward_replay, "MOST", 10)
    plans = Counting()
    with using(plans):
        for n in range(1, 40):
            for _ in range(3):
                leaf(n).exp().sum().backward()
            assert len(plans._plans) <= len(plans._seen) + 1 <= 12
    assert plans.replayed > 30
