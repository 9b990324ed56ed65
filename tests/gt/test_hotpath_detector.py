"""The detector finds the repeated sequences of a stream for any tensor ids, and changes nothing else."""

import itertools
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gt.stream.hotpath_detector import HotPathDetector, HotSequence
from gt.stream.instructions import GetData, Op, Site, WorkerHotPathEnd, WorkerHotPathStart


class Stream:
    """Writes instructions with numbers as a client gives them."""

    def __init__(self) -> None:
        self.instructions: list[Any] = []
        self._ids = itertools.count(100)

    def op(self, name: str, *inputs: int, **attrs: Any) -> int:
        result = next(self._ids)
        self.instructions.append(Op(result, name, inputs, attrs or None, 0))
        return result

    def free(self, tensor: int) -> None:
        self.instructions.append(tensor)

    def fetch(self, tensor: int) -> None:
        self.instructions.append(GetData(0, tensor))


def without_marks(instructions: list[Any]) -> list[Any]:
    return [one for one in instructions if not isinstance(one, WorkerHotPathStart | WorkerHotPathEnd)]


def complete(detector: HotPathDetector, marked: list[Any]) -> Iterator[tuple[HotSequence, list[Op]]]:
    """Each sequence that came whole, with the ops between its marks."""
    ops: list[Op] | None = None
    for one in marked:
        if isinstance(one, WorkerHotPathStart):
            assert ops is None
            ops = []
        elif isinstance(one, WorkerHotPathEnd):
            assert ops is not None
            if one.complete:
                yield detector.sequences[one.sequence], ops
            ops = None
        elif isinstance(one, Op) and ops is not None:
            ops.append(one)


def agrees(sequence: HotSequence, ops: list[Op]) -> bool:
    """Whether ops are a sequence, up to the names of tensors: by following each by itself."""
    names: dict[int, int] = {}
    for place, (step, op) in enumerate(zip(sequence.steps, ops, strict=True)):
        if step.op != op.op or len(step.inputs) != len(op.inputs):
            return False
        for ref, tensor in zip(step.inputs, op.inputs, strict=True):
            if ref < 0 and -ref - 1 == sum(name < 0 for name in names.values()) and tensor not in names:
                names[tensor] = ref
            if names.get(tensor) != ref:
                return False
        names[op.result] = place
    return True


def repeated(body: Callable[[Stream, int], object], times: int = 40) -> tuple[HotPathDetector, list[Any]]:
    """A detector, and what it makes of a loop."""
    stream = Stream()
    for n in range(times):
        body(stream, n)
    detector = HotPathDetector()
    marked = detector.feed(stream.instructions)
    assert without_marks(marked) == stream.instructions
    assert all(agrees(sequence, ops) for sequence, ops in complete(detector, marked))
    return detector, marked


def chain(stream: Stream, n: int, length: int = 20, **attrs: Any) -> int:
    x = stream.op("relu", 1)
    for k in range(length):
        x = stream.op(f"op{k}", x, 2, **attrs)
    return x


def test_a_loop_becomes_one_sequence():
    detector, marked = repeated(chain)
    assert [len(sequence) for sequence in detector.sequences.values()] == [21]
    assert len(list(complete(detector, marked))) >= 35


def test_what_a_step_hands_to_the_next_is_from_outside():
    carried = [7, 8]

    def step(stream: Stream, n: int) -> None:
        x = chain(stream, n)
        for k in range(2):
            new = stream.op("weighted_sum", carried[k], x, y_scale=-0.01)
            stream.free(carried[k])
            carried[k] = new
        stream.free(x)

    detector, marked = repeated(step)
    (sequence,) = detector.sequences.values()
    assert len(sequence) == 23
    assert min(min(step.inputs, default=0) for step in sequence.steps) == -4
    assert len(list(complete(detector, marked))) >= 35


@pytest.mark.parametrize("name", ["scalar", "rate", "seed"])
def test_fractions_and_seeds_may_differ(name: str):
    def step(stream: Stream, n: int) -> None:
        attrs: dict[str, Any] = {name: n if name == "seed" else 0.1 * n}
        chain(stream, n, **attrs)

    detector, marked = repeated(step)
    assert len(detector.sequences) == 1
    assert len(list(complete(detector, marked))) >= 35


def test_structural_attributes_may_not():
    detector, _ = repeated(lambda stream, n: chain(stream, n, dim=n))
    assert not detector.sequences


def test_data_flow_that_differs_is_another_sequence():
    def step(stream: Stream, n: int) -> None:
        x = [stream.op("relu", 1) for _ in range(20)]
        stream.op("add", x[n % 7], x[0])

    detector, marked = repeated(step, 60)
    assert all(len(sequence) != 21 for sequence, _ in complete(detector, marked))


def test_when_tensors_are_freed_does_not_matter():
    def step(stream: Stream, n: int) -> None:
        x = stream.op("relu", 1)
        for k in range(20):
            new = stream.op(f"op{k}", x)
            if (n + k) % 3:
                stream.free(x)
            x = new

    detector, _ = repeated(step)
    assert len(detector.sequences) == 1


def test_a_fetch_ends_a_sequence():
    def step(stream: Stream, n: int) -> None:
        first = chain(stream, n, 10)
        stream.fetch(first)
        chain(stream, n, 15)

    detector, _ = repeated(step)
    # From one fetch to the next: the rest of a step and the beginning of the next one.
    assert [len(sequence) for sequence in detector.sequences.values()] == [27]


def test_the_sequence_of_a_loop_begins_where_the_loop_is_interrupted():
    stream = Stream()
    w, m, v = ([stream.op("full") for _ in range(4)] for _ in range(3))
    for n in range(60):
        x = stream.op("linear", 10_000 + n, w[0], w[1])
        loss = stream.op("cross_entropy", stream.op("linear", stream.op("relu", x), w[2], w[3]))
        grads = [stream.op("matmul", loss, x) for _ in range(4)]
        for k, grad in enumerate(grads):
            m[k] = stream.op("weighted_sum", m[k], grad)
            v[k] = stream.op("average_of_squares", v[k], grad)
            w[k] = stream.op("adaptive_step", w[k], m[k], v[k])
        if n % 5 == 4:
            stream.fetch(loss)
    detector = HotPathDetector()
    marked = detector.feed(stream.instructions)
    left = next(place for place, one in enumerate(marked) if isinstance(one, GetData))
    ends = [one for one in marked[left:] if isinstance(one, WorkerHotPathEnd)]
    assert len(ends) == 55
    assert {(one.sequence, one.complete) for one in ends} == {(ends[0].sequence, True)}
    assert len(detector.sequences[ends[0].sequence]) == 20


def test_an_unexpected_fetch_ends_the_prediction():
    stream = Stream()
    for n in range(20):
        chain(stream, n)
    detector = HotPathDetector()
    detector.feed(stream.instructions)
    again = Stream()
    x = again.op("relu", 1)
    again.fetch(x)
    marked: list[Any] = detector.feed(again.instructions)
    assert [type(one) for one in marked] == [WorkerHotPathStart, Op, WorkerHotPathEnd, GetData]
    assert marked[2].complete is False


def test_two_loops_in_turn_are_both_known_once_learnt():
    def other(stream: Stream) -> None:
        x = stream.op("relu", 1)
        for k in range(25):
            x = stream.op(f"other{k}", x)

    stream = Stream()
    for part in range(12):
        for n in range(6):
            chain(stream, n) if part % 2 else other(stream)
    detector = HotPathDetector()
    marked = detector.feed(stream.instructions)
    lengths = [len(sequence) for sequence, _ in complete(detector, marked)]
    assert {21, 26} <= set(lengths)
    tail = lengths[-12:]
    assert tail.count(21) + tail.count(26) == 12


@pytest.mark.parametrize(
    ("ops", "length"),
    [(1, 128), (2, 128), (5, 130), (7, 133), (8, 16), (9, 18), (15, 30), (16, 16), (17, 17)],
)
def test_short_loops_become_one_sequence_several_times_over(ops: int, length: int):
    def step(stream: Stream, n: int) -> None:
        for k in range(ops):
            stream.op(f"op{k}", 1, 2)

    detector, marked = repeated(step, 1000 // ops)
    (sequence,) = detector.sequences.values()
    assert len(sequence) == length
    assert len(list(complete(detector, marked))) >= 3


@pytest.mark.parametrize("ops", [10, 40])
def test_a_short_loop_that_is_read_now_and_then_is_one_sequence_from_one_fetch_to_the_next(ops: int):
    def step(stream: Stream, n: int) -> None:
        stream.fetch([stream.op("add", 1, 2) for _ in range(ops)][-1])

    detector, _ = repeated(step)
    assert [len(sequence) for sequence in detector.sequences.values()] == [ops]


@pytest.mark.parametrize("count", [70, 100, 200, 300])
def test_a_short_loop_that_is_left_now_and_then_stays_in_long_sequences(count: int):
    def step(stream: Stream, n: int) -> None:
        x = stream.op("full")
        for _ in range(count):
            x = stream.op("add", x, 2)
        stream.fetch(x)

    detector, marked = repeated(step, 60)
    hits = [len(ops) for _, ops in complete(detector, marked)]
    assert sum(hits) > 0.9 * 60 * count
    assert len(hits) < 60 * (count / 128 + 1)


def test_a_sequence_that_is_the_beginning_of_a_longer_one_can_occur_alone():
    stream = Stream()
    for n in range(120):
        x = chain(stream, n)
        if n % 3 != 2:
            for _ in range(9):
                x = stream.op("grad", stream.op("exp", x), 3)
        stream.fetch(x)
    detector = HotPathDetector()
    marked = detector.feed(stream.instructions)
    assert [len(sequence) for sequence, _ in complete(detector, marked)][-3:] == [39, 39, 21]
    assert all(agrees(sequence, ops) for sequence, ops in complete(detector, marked))


def test_it_can_be_switched_off():
    stream = Stream()
    for n in range(20):
        chain(stream, n)
    assert HotPathDetector(enabled=False).feed(stream.instructions) == stream.instructions


def test_instructions_may_come_one_at_a_time():
    stream = Stream()
    for n in range(30):
        chain(stream, n)
    together, apart = HotPathDetector(), HotPathDetector()
    marked = together.feed(stream.instructions)
    assert [out for one in stream.instructions for out in apart.process(one)] == marked
    assert together.get_stats() == apart.get_stats()
    assert together.get_stats()["hot_instructions"] > 500


OPS = st.tuples(st.sampled_from(["add", "mul", "relu", "sum"]), st.lists(st.integers(0, 5), max_size=2))


@settings(max_examples=60)
@given(
    st.lists(st.lists(OPS, min_size=1, max_size=12), min_size=1, max_size=3),
    st.integers(0, 2**32),
)
def test_generated_loops_pass_unchanged_and_their_markers_are_right(bodies: list, seed: int):
    random, stream = Random(seed), Stream()
    recent = [0, 1, 2, 3, 4, 5]
    for _ in range(60):
        for name, inputs in random.choice(bodies) if random.random() < 0.2 else bodies[0]:
            recent.append(stream.op(name, *[recent[-1 - back] for back in inputs]))
        if random.random() < 0.1:
            stream.fetch(recent[-1])
        if random.random() < 0.1:
            stream.instructions.append(Site(1, "x.py:1"))
        if random.random() < 0.05:
            x = stream.op("relu", recent[-1])
            for _ in range(random.randint(1, 100)):
                x, before = stream.op(random.choice(["tanh", "exp", "sqrt", "relu"]), x), x
                stream.free(before)
    detector = HotPathDetector()
    marked = []
    rest = stream.instructions
    while rest:
        n = random.randint(1, 40 if random.random() < 0.8 else 400)
        marked += detector.feed(rest[:n])
        rest = rest[n:]
    assert without_marks(marked) == stream.instructions
    apart = HotPathDetector()
    assert [out for one in stream.instructions for out in apart.process(one)] == marked
    assert detector.get_stats() == apart.get_stats()
    assert all(agrees(sequence, ops) for sequence, ops in complete(detector, marked))
