"""A repeat that runs step by step has the effects of its instructions: values, failures and memory use."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from gt.stream.instructions import GetData, Lost
from gt.stream.repeats import Repeat
from gt.worker.limits.guard import Guard
from gt.worker.limits.memory import Limit
from tests.gt.helpers.eager_repeats import RESULTS, Line, Pair, outcome_of, repeat_of

EAGER_ENGINES = ("pytorch", "numpy")


@pytest.fixture(scope="module", autouse=True)
def nothing_is_compiled() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GT_AUTO_COMPILE", "1")
        patch.setenv("GT_COMPILE_AFTER", "100000")
        yield


# --- any sequence ---

OUTSIDE = {0: [[1.5, -2.0], [0.5, 3.0]], 1: [[0.25, 1.0], [-1.0, 2.0]], 2: [3.0, -0.5], 3: 2.0}


ODD, LOST = 4, 5
"""A tensor whose shape seldom fits, and one that has failed."""


fractions = st.sampled_from([-1.5, -0.0, 0.0, 0.5, 2.0])
seeds = st.integers(0, 1 << 20)


KINDS: dict[str, tuple[int, Callable[[], st.SearchStrategy[Any]]]] = {
    "full": (0, lambda: st.fixed_dictionaries({"value": fractions}).map(lambda a: {**a, **MADE})),
    "rand": (0, lambda: st.fixed_dictionaries({"seed": seeds}).map(lambda a: {**a, **MADE})),
    "randn": (0, lambda: st.fixed_dictionaries({"seed": seeds}).map(lambda a: {**a, **MADE})),
    "neg": (1, st.none),
    "tanh": (1, st.none),
    "relu": (1, st.none),
    "clamp": (1, lambda: st.fixed_dictionaries({"min": fractions, "max": st.none()})),
    "dropout": (1, lambda: st.fixed_dictionaries({"p": st.just(0.5), "seed": seeds})),
    "dropout_mask": (1, lambda: st.fixed_dictionaries({"p": st.just(0.5), "seed": seeds})),
    "sum": (
        1,
        lambda: st.fixed_dictionaries({"dim": st.sampled_from([None, 0, 1]), "keepdim": st.booleans()}),
    ),
    "sub": (1, lambda: st.fixed_dictionaries({"scalar": fractions, "reflected": st.booleans()})),
    "add": (2, st.none),
    "mul": (2, st.none),
    "maximum": (2, st.none),
    "matmul": (2, st.none),
    "weighted_sum": (2, lambda: st.fixed_dictionaries({"x_scale": fractions, "y_scale": fractions})),
    "where": (3, st.none),
    "stack": (3, lambda: st.fixed_dictionaries({"dim": st.just(0)})),
}


MADE = {"shape": [2, 2], "dtype": "float32"}


@st.composite
def rounds(draw: st.DrawFn) -> list[Repeat]:
    """The same sequence several times over: what is kept, freed and changed is different every time."""
    good = st.sampled_from([*OUTSIDE])
    outside = draw(st.sampled_from([good, good, st.sampled_from([*OUTSIDE, ODD, LOST])]))
    lines: list[Line] = []
    for n in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from([*KINDS]))
        arity, attrs = KINDS[op]
        made = st.integers(RESULTS, RESULTS + n - 1) if n else outside
        inputs = draw(st.tuples(*[outside | made] * arity))
        if arity > 1 and draw(st.booleans()):
            inputs = (inputs[0],) * arity
        lines.append(Line(op, inputs, draw(attrs())))
    sequence = None
    repeats = []
    for _ in range(draw(st.integers(1, 3))):
        kept = draw(st.sets(st.integers(0, len(lines) - 1)))
        freed = draw(st.permutations([*OUTSIDE, ODD, LOST]))
        changed = {}
        for n, line in enumerate(lines):
            new = {
                name: draw(seeds if name == "seed" else fractions)
                for name, value in (line.attrs or {}).items()
                if (name == "seed" or type(value) is float) and name != "p"
            }
            if new and draw(st.booleans()):
                changed[n] = {**(line.attrs or {}), **new}
        gone = freed[: draw(st.integers(0, len(freed)))]
        repeats.append(repeat_of(lines, sorted(kept), gone, changed, sequence))
        sequence = repeats[0].sequence
    return repeats


@pytest.mark.parametrize("engine", EAGER_ENGINES)
@settings(max_examples=200)
@given(repeats=rounds())
def test_a_repeat_leaves_the_same_values_as_its_ops_one_by_one(engine: str, repeats: list[Repeat]):
    pair = Pair(engine, hot=False)
    for repeat in repeats:
        for number, array in OUTSIDE.items():
            pair.put(number, np.array(array, np.float32))
        pair.put(ODD, np.ones((3, 5), np.float32))
        pair.do(Lost([LOST], "it was lost"))
        pair.repeat(repeat)
        pair.do(*[number for number in repeat.results if number in pair.there or number in pair.failures])


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_an_op_gets_its_inputs_in_their_order_and_as_often_as_they_are_named(engine: str):
    pair = Pair(engine)
    pair.put(0, np.float32(5))
    pair.put(1, np.float32(6))
    lines = [Line("neg", (0,)), Line("stack", (1, RESULTS, 1), {"dim": 0}), Line("sub", (0, 1))]
    pair.repeat(repeat_of(lines, kept=[1, 2]))
    assert pair.there[RESULTS + 1].tolist() == [6, -5, 6]
    assert pair.there[RESULTS + 2].tolist() == -1


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_nothing_is_expanded_as_long_as_all_goes_well(engine: str, monkeypatch: pytest.MonkeyPatch):
    pair = Pair(engine)
    pair.put(0, np.ones(2, np.float32))
    repeat = repeat_of([Line("add", (0, 0)), Line("neg", (RESULTS,))], kept=[1], freed=[0])
    monkeypatch.setattr(Repeat, "expanded", lambda repeat: pytest.fail("it was expanded"))
    outcome = outcome_of(pair.ours, repeat, GetData(3, RESULTS + 1))
    assert outcome.data[0].array is not None
    assert outcome.data[0].array.tolist() == [-2, -2]
    assert pair.there.keys() == {RESULTS + 1}


# --- failures ---


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_a_failing_step_fails_only_the_results_that_depend_on_it(engine: str):
    pair = Pair(engine)
    pair.put(0, np.ones((2, 3), np.float32))
    pair.put(1, np.ones((2, 3), np.float32))
    lines = [
        Line("add", (0, 1)),
        Line("neg", (RESULTS,)),
        Line("matmul", (0, RESULTS + 1)),  # [2, 3] by [2, 3]
        Line("tanh", (RESULTS + 1,)),
        Line("add", (RESULTS + 2, RESULTS + 3)),
        Line("sub", (RESULTS + 3,), {"scalar": 1.0, "reflected": False}),
    ]
    outcome = pair.repeat(repeat_of(lines, kept=[0, 2, 4, 5], freed=[0]))
    assert [one.tensor for one in outcome.failed] == [RESULTS + 2, RESULTS + 4]
    message = outcome.failed[0].error
    assert message.startswith(f"matmul([2, 3], [2, 3]), issued at here.py:7, failed on w ({engine}): ")
    assert pair.failures == dict.fromkeys([RESULTS + 2, RESULTS + 4], message)
    assert pair.there.keys() == {1, RESULTS, RESULTS + 5}


@pytest.mark.parametrize("engine", EAGER_ENGINES)
@pytest.mark.parametrize("place", [0, 3])
def test_the_first_and_the_last_may_fail(engine: str, place: int):
    pair = Pair(engine)
    pair.put(0, np.ones((2, 3), np.float32))
    lines = [Line("neg", (0,)) for _ in range(4)]
    lines[place] = Line("matmul", (0, 0))
    outcome = pair.repeat(repeat_of(lines, kept=range(4), freed=[0]))
    assert [one.tensor for one in outcome.failed] == [RESULTS + place]
    assert len(pair.there) == 3


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_a_failed_input_fails_the_dependent_results_with_its_own_cause(engine: str):
    pair = Pair(engine)
    pair.put(0, np.ones(2, np.float32))
    pair.do(Lost([1], "worker_3 is gone"))
    lines = [Line("neg", (0,)), Line("add", (0, 1)), Line("neg", (RESULTS + 1,)), Line("tanh", (RESULTS,))]
    pair.repeat(repeat_of(lines, kept=[1, 2, 3], freed=[1]))
    assert pair.failures == dict.fromkeys([RESULTS + 1, RESULTS + 2], "worker_3 is gone")
    assert pair.there.keys() == {0, RESULTS + 3}


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_an_input_that_does_not_exist_is_not_found(engine: str):
    pair = Pair(engine)
    outcome = pair.repeat(
        repeat_of([Line("neg", (9,)), Line("full", (), {**MADE, "value": 1.0})], kept=[0, 1])
    )
    assert [one.error for one in outcome.failed] == ["Tensor not found: there is no tensor 9"]
    assert pair.there.keys() == {RESULTS + 1}


@pytest.mark.parametrize("engine", EAGER_ENGINES)
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (Line("add", (0,), {"out": 1.0}), "TypeError: add has no attribute out; it has reflected, scalar"),
        (Line("tanh", (0,), {"out": 1.0}), "TypeError: tanh has no attribute out; it has none"),
        # PyTorch would take the first of these, and change its input; NumPy the second.
        (Line("silu", (0,), {"inplace": True}), "TypeError: silu has no attribute inplace; it has "),
        (
            Line("maximum", (0, 0), {"order": "C"}),
            "TypeError: maximum has no attribute order; it has reflected, scalar",
        ),
        (Line("no_such_op", (0,)), "KeyError: 'no_such_op'"),
        (Line("no_such_op", (0,), {"dim": 1}), "KeyError: 'no_such_op'"),
    ],
)
def test_an_op_or_an_attribute_that_there_is_not_is_refused_as_ever(engine: str, line: Line, said: str):
    pair = Pair(engine)
    pair.put(0, np.ones(2, np.float32))
    lines = [Line("neg", (0,)), line, Line("neg", (RESULTS,))]
    for _ in range(2):  # it is remembered, and refused again
        outcome = pair.repeat(repeat_of(lines, kept=[1, 2]))
        assert [one.tensor for one in outcome.failed] == [RESULTS + 1]
        assert said in outcome.failed[0].error
        assert pair.there.keys() == {0, RESULTS + 2}


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_a_tensor_that_has_failed_can_be_freed_where_nothing_needs_it(engine: str):
    pair = Pair(engine)
    pair.put(0, np.ones(2, np.float32))
    pair.do(Lost([LOST], "it was lost"))
    pair.repeat(repeat_of([Line("neg", (0,))], kept=[0], freed=[LOST]))
    assert not pair.failures


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_a_tensor_that_is_named_twice_from_outside_is_freed_once(engine: str):
    """No client of ours does that; one that does is to be answered as ever."""
    pair = Pair(engine)
    pair.put(0, np.ones(2, np.float32))
    pair.put(1, np.ones(2, np.float32))
    repeat = repeat_of([Line("add", (0, 1))], kept=[0], freed=[0])
    repeat.inputs = [0, 0]
    pair.repeat(repeat)
    assert pair.there.keys() == {1, RESULTS}


def test_what_will_fail_can_be_a_repeat_that_draws_random_numbers():
    pair = Pair("pytorch")
    pair.put(0, np.ones((2, 3), np.float32))
    lines = [Line("dropout", (0,), {"p": 0.5, "seed": 3}), Line("matmul", (0, RESULTS))]
    outcome = pair.repeat(repeat_of(lines, kept=[0, 1]))
    assert [one.tensor for one in outcome.failed] == [RESULTS + 1]


def test_a_failing_sequence_can_be_repeated_until_it_would_be_compiled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "0")
    pair = Pair("pytorch")
    pair.put(0, np.ones((2, 3), np.float32))
    for _ in range(5):
        outcome = pair.repeat(repeat_of([Line("neg", (0,)), Line("matmul", (0, RESULTS))], kept=[0, 1]))
        assert [one.tensor for one in outcome.failed] == [RESULTS + 1]


# --- room ---


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_a_freed_tensor_is_removed_after_the_last_op_that_needs_it(engine: str):
    pair = Pair(engine)
    pair.put(0, np.ones(2, np.float32))
    lines = [
        Line("neg", (0,)),
        Line("neg", (RESULTS,)),
        Line("add", (0, RESULTS + 1)),
        Line("sub", (RESULTS + 2,), {"scalar": 1.0, "reflected": False}),
        Line("neg", (RESULTS + 3,)),
    ]
    pair.repeat(repeat_of(lines, kept=[4], freed=[0]))
    (watch, _) = pair.watches
    there = [seen[0] for _, seen in watch.seen]
    assert there == [True, True, True, False, False]


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_a_result_that_is_not_kept_is_removed_after_its_last_use(engine: str):
    pair = Pair(engine)
    pair.put(0, np.ones(2, np.float32))
    lines = [
        Line("neg", (0,)),
        Line("tanh", (RESULTS,)),
        Line("full", (), {**MADE, "value": 1.0}),  # nothing needs this
        Line("add", (RESULTS, RESULTS + 1)),
        Line("neg", (RESULTS + 3,)),
        Line("neg", (RESULTS + 4,)),
    ]
    pair.repeat(repeat_of(lines, kept=[1, 5]))
    (watch, _) = pair.watches
    seen = watch.seen[-1][1]  # what was there when the last began
    assert seen == [True, False, True, False, False, True]
    assert watch.seen[3][1] == [True, True, True, False]


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_within_a_limit_every_op_of_a_repeat_is_looked_at(engine: str):
    pair = Pair(engine, memory_limit=1 << 20)
    megabyte = {"shape": [1 << 17], "dtype": "float32", "value": 1.0}  # half of one
    fits = [Line("full", (), megabyte)]
    fits += [Line("neg", (RESULTS + n,)) for n in range(20)]  # each instead of the one before
    assert not pair.repeat(repeat_of(fits, kept=[20])).failed
    pair.do(RESULTS + 20)
    many = [Line("full", (), megabyte) for _ in range(3)] + [Line("neg", (RESULTS + 2,))]
    outcome = pair.repeat(repeat_of(many, kept=range(4)))
    assert [one.tensor for one in outcome.failed] == [RESULTS + 2, RESULTS + 3]
    assert "MemoryError: the result takes 0.5 MB, but the worker has 0 bytes of 1.0 MB left" in str(outcome)
    assert pair.there.keys() == {RESULTS, RESULTS + 1}
    pair.do(*range(RESULTS, RESULTS + 4))
    assert not pair.repeat(repeat_of(fits, kept=[20])).failed


@pytest.mark.parametrize("engine", EAGER_ENGINES)
def test_near_the_machines_limit_every_op_of_a_repeat_is_looked_at(engine: str):
    pair = Pair(engine)
    for worker in (pair.ours, pair.theirs):
        worker.guard = Guard()
        worker.guard._found, worker.guard._polled = Limit(1 << 20, used=1 << 19), math.inf
    large = {"shape": [1 << 20], "dtype": "float32", "value": 1.0}
    lines = [Line("full", (), large), Line("full", (), {**large, "shape": [2]}), Line("neg", (RESULTS,))]
    outcome = pair.repeat(repeat_of(lines, kept=range(3)))
    assert [one.tensor for one in outcome.failed] == [RESULTS, RESULTS + 2]
    assert "MemoryError: the result takes 4.0 MB, but the worker has 0.5 MB of 1.0 MB left" in str(outcome)
    assert pair.there.keys() == {RESULTS + 1}
