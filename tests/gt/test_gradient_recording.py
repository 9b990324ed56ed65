"""Gradient rules are recorded once, and only where a replay would issue the same."""

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

import gt
from gt.autograd import backward_replay
from gt.client import session as session_module
from gt.ops import TABLE
from gt.stream.instructions import Op
from tests.gt.helpers.replay import Counting, check, forget, leaf, using
from tests.programs import TIMEOUT


def test_signals_are_called_for_every_op(tmp_path) -> None:
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


def test_a_signal_first_used_while_a_node_is_recorded_leaves_no_listener_behind(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "signals.yaml"
    path.write_text("layer:\n  replicate: true\n")
    plans, calls = Counting(), []

    def gradient(g: Any, node: Any) -> Any:
        calls.append(g)
        if len(calls) < 2:
            return -g
        with gt.signal.context("layer"):  # in the second call, which is the one that is recorded
            return -g

    monkeypatch.setitem(TABLE, "neg", dataclasses.replace(TABLE["neg"], grads=(gradient,)))
    with using(plans):
        gt.load_config(str(path))
        client = session_module.current()
        for _ in range(4):
            x = leaf(4)
            (-x).backward(gt.ones(4))
            assert x.grad.tolist() == [-1] * 4
        assert plans.recorded == 1
        assert len(client.listeners) == 1  # the one that announces signals
        calls.clear()


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


def test_an_interrupted_backward_pass_frees_its_tensors() -> None:
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
                together.wait(TIMEOUT)
                for _ in range(40):
                    forget(x)
                    (x * x * factor).sum().backward()
                    np.testing.assert_allclose(x.grad.numpy(), 2 * factor * x.data.numpy(), rtol=1e-6)
            except Exception as error:  # noqa: BLE001 - returned to the test
                errors.append(error)

        threads = [threading.Thread(target=work, args=(1.0 + n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
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
    monkeypatch.setattr(backward_replay, "MAX_GRADIENT_PLANS", 10)
    plans = Counting()
    with using(plans):
        for n in range(1, 40):
            for _ in range(3):
                leaf(n).exp().sum().backward()
            assert len(plans._plans) <= len(plans._seen) + 1 <= 12
    assert plans.replayed > 30
