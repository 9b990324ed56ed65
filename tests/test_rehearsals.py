"""Backward passes that were gone through before: what they issue is what the rules would issue."""

import contextlib
import functools
import gc
import itertools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from gt.client import Client, rehearsals
from gt.client import session as session_module
from gt.client.autograd import GRAPH
from gt.client.rehearsals import PER_LINE, Recorder, Rehearsal, Rehearsals
from gt.errors import GraphError
from gt.server.local import LocalConnection, LocalServer
from gt.transport.protocol import Op, Site


class Seen:
    """A modifier that keeps what passes."""

    def __init__(self) -> None:
        self.instructions: list[Any] = []

    def process(self, cmd: Any) -> Iterator[Any]:
        self.instructions.append(cmd)
        yield cmd

    def get_stats(self) -> dict[str, Any]:
        return {}


class Unknown(Rehearsals):
    """Nothing was ever gone through."""

    def perform(self, root: Any, gradient: Any, retain_graph: bool) -> bool:
        return False

    def record(self, root: Any, gradient: Any, go: Any) -> None:
        go(None)


@contextlib.contextmanager
def using(known: Rehearsals) -> Iterator[Seen]:
    """A new session whose backward passes are remembered here."""
    seen = Seen()
    client = Client(LocalConnection(LocalServer("numpy")), [seen])
    before, session_module._current = session_module._current, client
    others, GRAPH._rehearsals = GRAPH._rehearsals, known
    try:
        yield seen
    finally:
        GRAPH._rehearsals = others
        session_module._current = before
        client.close()


class Counting(Rehearsals):
    """Counts how often one was used."""

    performed = 0

    def perform(self, root: Any, gradient: Any, retain_graph: bool) -> bool:
        done = super().perform(root, gradient, retain_graph)
        self.performed += done
        return done


def run(program: Callable[[], Any], known: Rehearsals) -> tuple[list[Any], set[int], Any]:
    """What a program issued, what was freed in the end, and its result."""
    with using(known) as seen:
        gt.manual_seed(3)
        result = program()
        gc.collect()
    lines = {one.number: one.where for one in seen.instructions if type(one) is Site}
    ops = [(one, lines[one.site]) for one in seen.instructions if type(one) is Op]
    freed = [one for one in seen.instructions if isinstance(one, int)]
    assert len(freed) == len(set(freed)), "something was freed twice"
    said = [(one.result, one.op, one.inputs, str(one.attrs), line) for one, line in ops]
    return said, set(freed), result


def check(program: Callable[[], Any], at_least: int = 1) -> Counting:
    """A program issues, frees and gives the same with rehearsals as without; so many passes are repeats."""
    ops, freed, result = run(program, Unknown())
    known = Counting()
    ops_again, freed_again, again = run(program, known)
    assert ops_again == ops
    assert freed_again == freed
    np.testing.assert_equal(again, result)
    assert known.performed >= at_least
    return known


def leaf(*shape: int) -> Any:
    count = int(np.prod(shape))
    data = np.linspace(-1, 2, count, dtype=np.float32).reshape(shape)
    return gt.tensor(data, requires_grad=True)


def forget(*leaves: Any) -> None:
    for one in leaves:
        one.grad = None


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

    check(program, 0 if accumulates else 3)


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

    assert check(program).performed


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
    known = Counting()
    with using(known):
        x = leaf(4)
        for _ in range(4):
            loss = (x * x).sum()
            loss.backward()
            with pytest.raises(GraphError, match="second time"):
                loss.backward()
    assert known.performed


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


def test_a_graph_that_is_another_every_time_is_not_written_down_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Counting()
    written: list[Rehearsal | None] = []
    learn = rehearsals._Line.learn

    def count(line: Any, rehearsal: Rehearsal | None) -> None:
        written.append(rehearsal)
        learn(line, rehearsal)

    monkeypatch.setattr(rehearsals._Line, "learn", count)
    with using(known):
        for n in range(1, 60):
            leaf(n).exp().sum().backward()
    assert len(written) == 2 * PER_LINE
    assert not known.performed


def test_a_pass_that_is_broken_off_frees_what_it_made() -> None:
    known = Counting()
    with using(known) as seen:
        client = session_module.current()
        x = leaf(4)

        def forward() -> Any:
            forget(x)
            return (x.exp() * x.tanh()).sum()

        for _ in range(4):
            forward().backward()
        assert known.performed
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
    known = Counting()
    errors: list[Any] = []
    with using(known):
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
    assert known.performed


def test_what_a_rule_reads_from_outside_cannot_be_written_down() -> None:
    with using(Unknown()):
        client = session_module.current()
        x = leaf(4)
        y = x.exp()
        stranger = gt.ones(4)
        recorder = Recorder(client, stranger)
        recorder.at(y._edge)
        _ = y * stranger + x.tanh()
        recorder.at_leaves([])
        assert recorder.rehearsal() is None
        assert client.emit.__name__ == "append"


def test_numbers_of_lines_are_kept_in_bounds() -> None:
    known = Counting()
    with using(known):
        for n, _ in itertools.product(range(3), range(rehearsals.MOST // 2)):
            known._lines["op", n * 10_000 + len(known._lines)] = rehearsals._Line()
        leaf(3).sum().backward()
        assert len(known._lines) <= rehearsals.MOST
