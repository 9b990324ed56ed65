"""Threads that share one client do not see each other's incomplete state."""

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gt
from gt.autograd import backward_replay
from gt.autograd.backward_replay import GradientPlans
from gt.client import Client
from gt.client import session as session_module
from gt.client.client import BATCH
from gt.server.embedded import LocalConnection, LocalServer
from gt.stream.hotpath_detector import HotPathDetector
from gt.stream.instructions import GetData, Op, Signal, Site
from gt.stream.sequences import HotSequence, Step
from tests.programs import TIMEOUT

WAIT = TIMEOUT
"""Seconds after which a test gives up, however busy the machine is."""


class Thread(threading.Thread):
    """A thread whose error is raised where it is joined."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised by end()
            self._error = error

    def end(self) -> None:
        self.join(WAIT)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of this test's own."""
    client = Client(LocalConnection(LocalServer("numpy")))
    monkeypatch.setattr(session_module, "_current", client)
    yield client
    client.close()


@pytest.fixture
def switching_often() -> Iterator[None]:
    """Python changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def leaf() -> Any:
    return gt.tensor([1.0, 2.0, 3.0], requires_grad=True)


class Issued:
    """The instructions that a client's threads issue."""

    def __init__(self, client: Client) -> None:
        self._sites: dict[int, int] = {}
        self._ops: list[tuple[int, Op]] = []
        client.add_listener(self._hear)

    def _hear(self, instruction: Any) -> None:
        if type(instruction) is Site:
            self._sites[instruction.number] = int(instruction.where.rpartition(":")[2])
        elif type(instruction) is Op:
            self._ops.append((threading.get_ident(), instruction))

    def forget(self) -> None:
        """Forget the ops so far."""
        self._ops.clear()

    def lines(self, thread: int) -> set[int]:
        """The lines that a thread's ops are attributed to."""
        return {self._sites[op.site] for ident, op in self._ops if ident == thread}


def this_line() -> int:
    return sys._getframe(1).f_lineno


def test_a_gradient_is_attributed_to_its_own_line_while_another_thread_goes_backward(client: Client):
    issued = Issued(client)
    inside, go_on = threading.Event(), threading.Event()
    line = 0

    def slow() -> None:
        nonlocal line
        y, line = leaf().exp(), this_line()

        def wait(g: Any) -> None:
            inside.set()
            assert go_on.wait(WAIT)

        y.register_hook(wait)  # it is called when all but the gradient of exp has been issued
        y.sum().backward()

    thread = Thread(slow)
    assert inside.wait(WAIT)

    def end_the_other(g: Any) -> None:
        issued.forget()
        go_on.set()
        thread.end()

    y = leaf() * 3
    y.register_hook(end_the_other)  # the other thread goes on while this one is in the middle of its graph
    ident = thread.ident
    y.sum().backward()
    assert ident is not None
    assert issued.lines(ident) == {line}


def test_a_gradient_is_attributed_to_its_own_line_after_a_hook_went_backward(client: Client):
    issued = Issued(client)
    y, line = leaf().exp(), this_line()

    def go_backward(g: Any) -> None:
        with gt.enable_grad():
            (leaf() * 3).sum().backward()
        issued.forget()

    y.register_hook(go_backward)
    y.sum().backward()
    assert issued.lines(threading.get_ident()) == {line}


def test_gradients_keep_their_signals_while_another_thread_goes_backward(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "signals.yaml"
    path.write_text("layer:\n  backward: other\nother:\n  replicate: true\n")
    gt.load_config(path)
    signals: list[int] = []
    client.add_listener(lambda one: signals.append(threading.get_ident()) if type(one) is Signal else None)
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with gt.signal.context("layer"):
            y = leaf().exp()

        def wait(g: Any) -> None:
            inside.set()
            assert go_on.wait(WAIT)

        y.register_hook(wait)
        y.sum().backward()

    thread = Thread(slow)
    assert inside.wait(WAIT)

    def end_the_other(g: Any) -> None:
        assert not signals
        go_on.set()
        thread.end()

    y = leaf() * 3
    y.register_hook(end_the_other)
    ident = thread.ident
    y.sum().backward()
    assert set(signals) == {ident}


def test_a_node_may_be_replayed_while_another_thread_drops_all_plans(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    """The plan that one thread replays may be dropped before it is done."""
    monkeypatch.setattr(backward_replay, "MAX_GRADIENT_PLANS", 20)
    begun, go_on = threading.Event(), threading.Event()
    waits = threading.local()
    replay = GradientPlans._replay

    def slowly(self: GradientPlans, *args: Any) -> Any:
        if getattr(waits, "here", False):
            begun.set()
            assert go_on.wait(WAIT)
        return replay(self, *args)

    monkeypatch.setattr(GradientPlans, "_replay", slowly)

    def step(x: Any, factor: float) -> Any:
        x.grad = None
        (x * factor).sum().backward()
        return x.grad

    x = leaf()
    for _ in range(3):
        step(x, 2.0)

    def replays() -> None:
        waits.here = True
        assert step(leaf(), 2.0).tolist() == [2, 2, 2]

    thread = Thread(replays)
    assert begun.wait(WAIT)
    for factor in range(3, 40):
        for _ in range(3):
            assert step(x, float(factor)).tolist() == [factor] * 3
    go_on.set()
    thread.end()


def test_threads_go_backward_from_one_line_through_changing_graphs(client: Client, switching_often: None):
    together = threading.Barrier(4)

    def step(x: Any, ops: int) -> Any:
        x.grad = None
        y = x
        for _ in range(ops):
            y = y * 2
        y.sum().backward()
        return x.grad

    def work(first: int) -> None:
        x = leaf()
        together.wait(WAIT)
        for n in range(60):
            ops = 1 + (first + n // 3) % 5
            assert step(x, ops).tolist() == [2**ops] * 3

    for thread in [Thread(lambda n=n: work(n)) for n in range(4)]:
        thread.end()


def test_the_prediction_can_be_read_while_another_thread_feeds_the_detector(switching_often: None):
    detector = HotPathDetector()
    numbers = itertools.count(100)
    fed = threading.Event()

    def step() -> list[Any]:
        instructions: list[Any] = []
        last = 1
        for name in ["exp", "tanh", "neg", "relu"] * 4 + ["sum"]:
            instructions.append(Op(next(numbers), name, (last,), None, 0))
            last = instructions[-1].result
        return [*instructions, GetData(0, last)]

    def feed() -> None:
        try:
            for _ in range(6000):
                instructions = step()
                detector.feed(instructions[:5])
                detector.feed(instructions[5:])
        finally:
            fed.set()

    for _ in range(4):
        detector.feed(step())
    thread = Thread(feed)
    answers = set()
    while not fed.is_set():
        left, sequence = detector.expected
        assert (left == 0) == (sequence is None)
        answers.add(sequence)
    thread.end()
    assert len(answers) > 1  # it was asked while something was expected, and while nothing was


def test_the_next_flush_is_computed_while_another_thread_sends(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    """Whatever the prediction is at one moment, it may be another at the next."""
    sequence = HotSequence([Step(f"op{n}", (n - 1,), None) for n in range(40)])
    predictions = itertools.cycle([(7, sequence), (0, None)])
    monkeypatch.setattr(
        Client, "_expected", property(lambda _: next(predictions), lambda *_: None), raising=False
    )
    client.flush()
    assert [client.flush_ready() for _ in range(4)] == [8, BATCH, 8, BATCH]
