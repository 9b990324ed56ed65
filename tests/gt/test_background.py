"""The background thread: calls run in order, each with pending results of the one before it."""

import copy
import ctypes
import math
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gt.stream.instructions import Exchange, GetData, Lost, Op, Upload
from gt.stream.layouts import Placement, Replicated
from gt.stream.repeats import Repeat, Template, flat
from gt.stream.sequences import HotSequence, Step
from gt.transport.peers import Peers
from gt.worker.compile.background import Background
from gt.worker.compile.compiled_code import Invocation, PendingResult, Skipped
from gt.worker.limits.guard import Guard
from gt.worker.limits.memory import Limit
from gt.worker.worker import Outcome, Worker
from tests.gt.helpers.hot_server import COMPILER_TIMEOUT

_Pointers = ctypes.POINTER(ctypes.c_void_p)
_Function = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    _Pointers,
    ctypes.c_size_t,
    _Pointers,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_void_p,
)

AOTI: Any = torch._C._aoti  # type: ignore[attr-defined]


class Code:
    """Stands for a compiled graph: it takes two tensors, and gives the second back."""

    num_inputs, num_outputs = 2, 1
    Inputs, Outputs = ctypes.c_void_p * 2, ctypes.c_void_p * 1
    container = None
    set_threads = None
    to_handles = staticmethod(AOTI.unsafe_alloc_void_ptrs_from_tensors)
    from_handles = staticmethod(AOTI.alloc_tensors_by_stealing_from_void_ptrs)

    def __init__(self, code: int = 0) -> None:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        self.share: Any = library.aoti_torch_new_tensor_handle
        delete: Any = library.aoti_torch_delete_tensor_object
        delete.argtypes = [ctypes.c_void_p]

        def compute(_: Any, inputs: Any, taken: int, outputs: Any, given: int, *rest: Any) -> int:
            delete(inputs[0])
            outputs[0] = inputs[1]
            return code

        self.compute = _Function(compute)


@pytest.fixture(scope="module")
def background() -> Background:
    return Background(threads=1)


def invocation(code: Code, tensors: list[Any], before: Invocation | None = None) -> Invocation:
    return Invocation(code, tensors, before)  # type: ignore[arg-type]


def test_each_call_gets_the_results_of_the_previous_call(background: Background):
    code, zero = Code(), torch.zeros(1)
    first = invocation(code, [zero, torch.arange(3.0)])
    background.start(first)
    calls = [first]
    for _ in range(50):
        # A pending result in either place; the one before may be done by now, or not.
        calls.append(invocation(code, [PendingResult(0, None), PendingResult(0, None)], calls[-1]))
        background.start(calls[-1])
        (result,) = calls[-2].results(background.wait()[0])
        assert result.tolist() == [0, 1, 2]
    (result,) = calls[-1].results(background.wait()[0])
    assert result.tolist() == [0, 1, 2]


def test_what_follows_a_call_that_failed_is_not_begun(background: Background):
    good, bad = Code(), Code(code=3)
    tensor = torch.ones(2)
    first = invocation(bad, [tensor, tensor])
    background.start(first)
    second = invocation(good, [tensor, PendingResult(0, None)], first)
    background.start(second)
    with pytest.raises(RuntimeError, match="code 3"):
        first.results(background.wait()[0])
    with pytest.raises(Skipped):
        second.results(background.wait()[0])
    third = invocation(good, [tensor, tensor])
    background.start(third)
    assert third.results(background.wait()[0])[0].tolist() == [1, 1]


def test_a_number_of_tensors_that_is_not_the_functions_is_refused():
    with pytest.raises(ValueError, match="compiled code takes 2 tensors, but got 3"):
        invocation(Code(), [torch.zeros(1)] * 3)


# --- repeats of one message ---


class Steps:
    """A worker with a compiled step that takes long in simulated time, and one that gets each op.

    A step makes the next state out of a state and a weight, and something beside it.
    """

    template = Template(
        HotSequence(
            [
                Step("mul", (-1, -2), None),
                Step("sin", (0,), None),
                Step("add", (1, -2), None),
                Step("tanh", (2,), None),
            ]
        ),
        (0, 0, 0, 0),
    )

    def __init__(self) -> None:
        self.worker, self.plain = Worker("w", embedded=True), Worker("w")
        self.plain.compiles = False
        self.worker.repeats.background_seconds = 0.0
        self.state, self.weight, self.next = 0, 1, 10
        for n in (self.state, self.weight):
            self.do(Upload(n, np.linspace(-1, 2, 64, dtype=np.float32) * (n + 1)))
        for _ in range(3):
            self.do(self.step())
        assert self.worker.hot_paths.compiler.wait(COMPILER_TIMEOUT)
        self.do(self.step())
        self.worker.execute_held()
        self._before = self.worker.hot_paths.replays
        assert self._before, self.worker.hot_paths.fallbacks

    def step(self, weight: int | None = None) -> Repeat:
        """One more: the state before it is freed."""
        before, weight = self.state, self.weight if weight is None else weight
        results = [*range(self.next, self.next + 4)]
        self.state, self.next = results[3], self.next + 4
        return Repeat(self.template, [before, weight], results, [1, 3], [before], {})

    def upload(self) -> int:
        """Another weight."""
        self.next += 1
        self.do(Upload(self.next - 1, np.linspace(0, self.next % 7, 64, dtype=np.float32)))
        return self.next - 1

    def do(self, *instructions: Any) -> Outcome:
        """Carry out a message: as it is, and op by op."""
        own = [Upload(i.result, i.array.copy()) if isinstance(i, Upload) else i for i in instructions]
        self.plain.execute("c", flat(own))
        return self.worker.execute("c", instructions)

    @property
    def replays(self) -> int:
        """How many ran compiled since the beginning."""
        return self.worker.hot_paths.replays - self._before

    @property
    def values(self) -> dict[int, Any]:
        return self.worker.clients["c"].values

    def check(self) -> None:
        """Everything is as op by op."""
        self.worker.execute_held()
        mine, others = self.worker.clients["c"], self.plain.clients["c"]
        assert mine.failures == others.failures
        assert mine.values.keys() == others.values.keys()
        for number, value in mine.values.items():
            torch.testing.assert_close(value, others.values[number])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[Steps]:
    monkeypatch.setenv("GT_AUTO_COMPILE", "1")
    monkeypatch.setenv("GT_COMPILE_AFTER", "0")
    monkeypatch.setenv("GT_CACHE_DIR", str(cache))
    steps = Steps()
    yield steps
    steps.worker.execute_held()
    steps.worker.hot_paths.compiler.close()


def let_fail(monkeypatch: pytest.MonkeyPatch, which: int) -> None:
    """Let the function of one call fail, counted from the next one on."""
    start, begun = Background.start, []

    def starting(background: Background, invocation: Invocation) -> None:
        if len(begun) == which:
            invocation.code = copy.copy(invocation.code)
            invocation.code.compute = _Function(fail)
        begun.append(invocation.code)
        start(background, invocation)

    library: Any = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    library.aoti_torch_delete_tensor_object.argtypes = [ctypes.c_void_p]

    def fail(_: Any, inputs: Any, taken: int, *rest: Any) -> int:
        for n in range(taken):
            library.aoti_torch_delete_tensor_object(inputs[n])
        return 3

    monkeypatch.setattr(Background, "start", starting)


def test_repeats_of_one_message_follow_each_other_and_give_the_same(steps: Steps, followed: list[bool]):
    steps.do(*[steps.step() for _ in range(6)])
    assert followed == [False, True, True, True, True, True]
    assert steps.worker.repeats.running, "nothing has waited for the last"
    steps.do(*[steps.step() for _ in range(3)])
    assert followed[6:] == [True, True, True]
    steps.check()
    assert steps.replays == 9
    assert not steps.worker.hot_paths.fallbacks


@pytest.mark.parametrize("which", [0, 1, 3])
def test_if_a_call_fails_the_calls_after_it_run_eagerly(
    steps: Steps, followed: list[bool], monkeypatch: pytest.MonkeyPatch, which: int
):
    let_fail(monkeypatch, which)
    steps.do(*[steps.step() for _ in range(5)])
    steps.check()
    assert steps.replays == which
    fallbacks = steps.worker.hot_paths.fallbacks
    assert fallbacks["the compiled function failed"] == 1
    assert fallbacks["the compiled function before it failed"] == 1
    assert len(followed) == which + 2


def test_if_a_call_fails_near_the_memory_limit_the_calls_after_it_wait(
    steps: Steps, followed: list[bool], monkeypatch: pytest.MonkeyPatch
):
    let_fail(monkeypatch, 0)
    steps.do(steps.step(), steps.step())
    assert followed == [False, True]
    guard = steps.worker.guard = Guard()
    guard._found, guard._polled = Limit(1 << 30), math.inf  # from now on, op by op
    steps.check()
    assert steps.state in steps.values


@pytest.mark.parametrize("fails", [False, True])
def test_tensors_freed_between_calls_are_kept_until_the_calls_have_ended(
    steps: Steps, followed: list[bool], monkeypatch: pytest.MonkeyPatch, fails: bool
):
    if fails:
        let_fail(monkeypatch, 0)
    weights = [steps.upload() for _ in range(3)]
    refs = [weakref.ref(steps.values[n]) for n in weights]
    message: list[Any] = []
    for weight in weights:
        step = steps.step(weight)
        message += [step, weight, step.results[1]]  # what it was given, and what it made beside the state
    steps.do(*message)
    assert followed[:2] == [False, True]
    steps.check()
    assert steps.values.keys().isdisjoint(weights)
    assert [ref() for ref in refs] == [None, None, None]


def test_what_has_failed_can_be_freed_between_them(steps: Steps, followed: list[bool]):
    steps.do(Lost([5], "it was lost"))
    steps.do(steps.step(), 5, steps.step())
    assert followed == [False, True]
    steps.check()
    assert not steps.worker.clients["c"].failures


def test_uploads_between_calls_do_not_wait(steps: Steps, followed: list[bool]):
    first, weight = steps.step(), steps.next
    steps.next += 1
    upload = Upload(weight, np.linspace(0, 3, 64, dtype=np.float32))
    steps.do(first, upload, steps.step(weight))
    assert followed == [False, True]
    steps.check()


def test_a_read_waits_for_background_calls(steps: Steps, followed: list[bool]):
    message = [steps.step() for _ in range(3)]
    states = [step.results[1] for step in message] + [steps.state]
    outcome = steps.do(*message, *[GetData(n, state) for n, state in enumerate(states)])
    assert followed == [False, True, True]
    assert not steps.worker.repeats.running
    for state, fetched in zip(states, outcome.data, strict=True):
        assert fetched.array is not None
        np.testing.assert_allclose(fetched.array, steps.plain.clients["c"].values[state], rtol=1e-6)
    steps.check()


def test_an_op_after_them_waits_for_all_of_them(steps: Steps, followed: list[bool]):
    message = [steps.step() for _ in range(3)]
    beside = message[0].results[1]
    outcome = steps.do(*message, Op(steps.next, "add", (beside, steps.state), None, 0))
    assert followed == [False, True, True]
    assert not outcome.failed
    assert steps.next in steps.values
    steps.check()


def test_an_exchange_after_them_waits_for_all_of_them(steps: Steps, followed: list[bool]):
    here = Placement(Replicated(), ("w",))
    for worker in (steps.worker, steps.plain):
        worker.peers = Peers(f"inproc://{id(worker)}")
        worker.peers.name = "w"
    try:
        message = [steps.step() for _ in range(3)]
        order = Exchange("Move", 0, steps.state, steps.next, (64,), "float32", here, here)
        outcome = steps.do(*message, order)
        assert followed == [False, True, True]
        assert not outcome.failed
        assert not steps.worker.repeats.running
        assert steps.next in steps.values
        steps.check()
    finally:
        for worker in (steps.worker, steps.plain):
            assert worker.peers is not None
            worker.peers.close()


def test_another_client_waits_for_all_of_them_and_touches_nothing_of_theirs(steps: Steps):
    steps.worker.execute("d", [Upload(steps.weight, np.ones(2))])
    steps.do(*[steps.step() for _ in range(3)])
    assert steps.worker.repeats.running
    steps.worker.execute("d", [steps.weight])  # its own, which has the same number
    assert not steps.worker.repeats.running
    assert not steps.worker.clients["d"].values
    assert steps.weight in steps.values
    steps.check()
