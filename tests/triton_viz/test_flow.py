"""Control flow over lanes: programs have the same results together as alone."""

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from tests.programs import run_python
from tests.triton_viz.helpers import flow_call_kernels as call_kernels
from tests.triton_viz.helpers import flow_kernels as kernels
from tests.triton_viz.helpers import loop_kernels
from tests.triton_viz.helpers.lanes import Run, one_by_one, run
from triton_viz.dsls.triton.control_flow import lane_loops
from triton_viz.dsls.triton.control_flow.lane_flow import Flow
from triton_viz.dsls.triton.control_flow.rewrite import rewritten
from triton_viz.errors import KernelError, UnsupportedError
from triton_viz.executor.lanes import Diverged, Lanes, groups_of

PROGRAMS = range(8)


def both(kernel: Any, *args: Any, width: int = 4, **kwargs: Any) -> tuple[np.ndarray, Run]:
    """The values that a kernel stores in `out[program, :]`, compared with running one program at a time."""
    together, apart = (np.full((len(PROGRAMS), width), -1, np.int32) for _ in range(2))
    result = run(kernel, PROGRAMS, together.reshape(-1), *args, **kwargs)
    one_by_one(kernel, PROGRAMS, apart.reshape(-1), *args, **kwargs)
    np.testing.assert_array_equal(together, apart)
    return together, result


def stored(kernel: Any, *args: Any, **kwargs: Any) -> list[int]:
    """The value that each program stores, if all run together without divergence."""
    out, result = both(kernel, *args, **kwargs)
    assert result.diverged == []
    return out[:, 0].tolist()


# --- branches ---


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (kernels.if_else, [0, 10, 2, 13, 4, 16, 6, 19]),
        (kernels.elif_chain, [100, 201, 302, 303, 303, 303, 303, 303]),
        (kernels.nested_ifs, [0, 11, 102, 13, 4, 15, 106, 17]),
        (kernels.no_else, [0, 1, 2, 3, 104, 105, 106, 107]),
        (kernels.defined_in_one_branch, [5, 5, 5, 5, 7, 7, 7, 7]),
        (kernels.uniform_if, [3] * 8),
        (kernels.several_targets, [3, 3, 3, 3, 12, 12, 12, 12]),
        (kernels.swap, [1, 1, 1, 1, 2, 2, 2, 2]),
        (kernels.starred, [5, 5, 5, 5, 14, 14, 14, 14]),
        (kernels.walrus, [0, 0, 0, 0, 8, 10, 12, 14]),
        (kernels.tuples, [1, 1, 1, 1, 30, 30, 30, 30]),
        (kernels.pointers, [0, 0, 0, 0, 1, 1, 1, 1]),
        (kernels.static_in_branches, [8, 8, 8, 8, 32, 32, 32, 32]),
        (kernels.announced_static, [32] * 8),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_branches(kernel: Any, expected: list[int]):
    assert stored(kernel) == expected


def test_blocks_are_merged_lane_by_lane():
    out, result = both(kernels.block_if)
    assert result.diverged == []
    np.testing.assert_array_equal(out[:4], np.tile(np.arange(4), (4, 1)))
    np.testing.assert_array_equal(out[4:], np.tile(np.arange(4) * 10, (4, 1)))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (kernels.ternary, [0, -1, 2, -3, 4, -5, 6, -7]),
        (kernels.ternary_of_calls, [0, 1, 4, 9, 16, -5, -6, -7]),
        (kernels.nested_ternary, [1, 2, 3, 3, 3, 3, 3, 3]),
        (kernels.and_or, [0, 1, 1, 1, 0, 0, 1, 1]),
        (kernels.not_of, [1, 0, 0, 0, 0, 0, 0, 0]),
        (kernels.chained, [0, 0, 1, 1, 1, 0, 0, 0]),
        (kernels.and_of_numbers, [0, 0, 1, 1, 1, 1, 1, 1]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_expressions_that_choose(kernel: Any, expected: list[int]):
    assert stored(kernel) == expected


@pytest.mark.parametrize("flag", [False, True])
def test_python_values_short_circuit(flag: bool):
    """If a constexpr decides, the other side is not evaluated: here that would fail."""
    assert stored(kernels.short_circuit, FLAG=flag) == [int(flag)] * 8


def test_tensors_do_not_short_circuit():
    """As in compiled code: `a and f()` calls f also where a is false."""
    _, result = both(kernels.both_sides_run)
    assert result.printed == [("seen", list(PROGRAMS))]


def test_a_ternary_runs_each_side_for_its_lanes_only():
    _, result = both(kernels.ternary_prints)
    assert result.printed == [("small", [0, 1, 2, 3]), ("large", [4, 5, 6, 7])]


def test_side_effects_are_the_active_lanes_only():
    _, result = both(kernels.prints_in_branches)
    assert result.printed == [("odd", [1, 3, 5, 7]), ("even", [0, 2, 4, 6]), ("all", list(PROGRAMS))]


# --- loops ---


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (loop_kernels.equal_counts, [6, 10, 14, 18, 22, 26, 30, 34]),
        (loop_kernels.unequal_counts, [0, 0, 1, 3, 6, 10, 15, 21]),
        (loop_kernels.counts_down, [0, 1, 3, 6, 10, 15, 21, 28]),
        (loop_kernels.python_range, [10] * 8),
        (loop_kernels.static_range, [60] * 8),
        (loop_kernels.tl_range, [0, 2, 2, 4, 4, 6, 6, 8]),
        (loop_kernels.over_a_tuple, [6, 7, 8, 9, 10, 11, 12, 13]),
        (loop_kernels.loop_variable_after, [-1, 0, 1, 2, 3, 4, 5, 6]),
        (loop_kernels.loop_variable_as_tensor, [3] * 8),
        (loop_kernels.loop_variable_divided, [-11] * 8),
        (loop_kernels.loop_variable_wraps_around, [1] * 8),
        (loop_kernels.static_loop_variable_divided, [-27] * 8),
        (loop_kernels.breaks, [0, 0, 1, 3, 6, 6, 6, 6]),
        (loop_kernels.uniform_break, [3] * 8),
        (loop_kernels.continues, [0, 0, 0, 2, 2, 6, 6, 12]),
        (loop_kernels.break_and_continue, [0, 0, 0, 2, 2, 6, 6, 6]),
        (loop_kernels.for_else, [1, 1, 1, 1, 2, 2, 2, 2]),
        (loop_kernels.while_else, [100, 101, 102, 103, 7, 7, 7, 7]),
        (loop_kernels.whiles, [0, 1, 3, 6, 10, 15, 21, 28]),
        (loop_kernels.while_true, [0, 1, 3, 6, 10, 15, 21, 28]),
        (loop_kernels.while_walrus, [0, 1, 3, 6, 10, 15, 21, 28]),
        (loop_kernels.collatz, [0, 0, 1, 7, 2, 5, 8, 16]),
        (loop_kernels.nested_loops, [0, 0, 1, 5, 14, 30, 55, 91]),
        (loop_kernels.inner_break, [0, 1, 3, 6, 9, 12, 15, 18]),
        (loop_kernels.loop_in_branch, [0, 1, 2, 3, 6, 10, 15, 21]),
        (loop_kernels.while_condition, [0, 1, 3, 6, 10, 15, 21, 28]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_loops(kernel: Any, expected: list[int]):
    assert stored(kernel) == expected


def test_a_range_of_wide_numbers_counts_in_them():
    out = np.zeros(2, np.int64)
    result = run(loop_kernels.wide_range, range(2), out, 2**40)
    assert result.diverged == []
    assert out.tolist() == [2**41 + 1, 2**41 + 3]


def test_iterations_say_which_loop_and_how_far():
    seen: list[Any] = []
    calls: list[Any] = []

    def watch(flow: Flow) -> None:
        flow.before_loop.append(lambda line, count: calls.append(("before", line, count)))
        flow.loop_iteration.append(lambda line, index: seen.append(flow.iterations))
        flow.after_loop.append(lambda line: calls.append(("after", line)))

    run(loop_kernels.nested_loops, range(3), np.zeros(12, np.int32), watch=watch)
    lines, first = inspect.getsourcelines(loop_kernels.nested_loops)
    outer, inner = (first + n for n, line in enumerate(lines) if "for " in line)
    # Only program 2 has a second round, and in it i == 1.
    assert seen == [((outer, 0),), ((outer, 1),), ((outer, 1), (inner, 0))]
    assert calls == [
        ("before", outer, 2),
        ("before", inner, 0),
        ("after", inner),
        ("before", inner, 1),
        ("after", inner),
        ("after", outer),
    ]


# --- returns and calls ---


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (kernels.early_return, [0, 1, 2, 3, -1, -1, -1, -1]),
        (kernels.uniform_return, [5] * 8),
        (kernels.return_in_loop, [0, 1, 2, -1, -1, -1, -1, -1]),
        (call_kernels.calls_helper, [0, 10, 20, 30, 44, 45, 46, 47]),
        (call_kernels.calls_under_mask, [0, 1, 2, 3, 44, 45, 46, 47]),
        (call_kernels.returns_pairs, [1, 1, 1, 1, 12, 12, 12, 12]),
        (call_kernels.returns_from_loops, [8, 1, 2, 3, 4, 5, 6, 6]),
        (call_kernels.recursion, [1, 1, 2, 6, 24, 120, 720, 5040]),
        (call_kernels.uses_method_of_language, [6, 6, 6, 6, 6, 6, 6, 6]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_returns(kernel: Any, expected: list[int]):
    assert stored(kernel) == expected


@pytest.mark.parametrize("wrap", [lambda fn: fn, triton.jit, InterpretedFunction])
def test_functions_and_both_kinds_of_kernels_run(wrap: Callable):
    assert stored(wrap(kernels.if_else)) == [0, 10, 2, 13, 4, 16, 6, 19]


def test_what_python_calls_min_and_max_compares_elements():
    assert stored(call_kernels.extremes) == [2, 2, 2, 3, 4, 5, 5, 5]


def test_builtins_take_tensors_on_which_lanes_agree():
    assert stored(call_kernels.python_functions, N=3) == [3 + 3 + 1 + 2] * 8


def test_assert_and_static_assert():
    assert stored(call_kernels.asserts, N=4) == [1] * 8
    with pytest.raises(AssertionError, match="N is four"):
        run(call_kernels.asserts, PROGRAMS, np.zeros(32, np.int32), N=5)
    with pytest.raises(AssertionError, match="too many"):
        run(call_kernels.asserts, range(20), np.zeros(80, np.int32), N=4)


# --- divergence ---


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (call_kernels.none_or_tensor, "a variable is int32 for some programs and NoneType for others"),
        (call_kernels.two_types, "a variable is fp32 for some programs and int32 for others"),
        (call_kernels.as_index, "an index differs between programs"),
        (call_kernels.comprehension_condition, "a condition differs between programs"),
        (call_kernels.comprehension_range, "a range has more iterations for some programs than for others"),
        (call_kernels.element_in_branch, "an attribute or an element is assigned by some programs only"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_lanes_part_where_they_cannot_go_on_together(kernel: Any, reason: str):
    _, result = both(kernel)
    assert result.diverged[0] == f"Diverged: {reason}"


def test_groups_are_the_lanes_by_value_and_the_rest():
    active = np.array([True, True, False, True, True])
    groups = groups_of(np.array([3, 1, 9, 3, 1]), Lanes(5, active), None)
    assert [g.tolist() for g in groups] == [[1, 4], [0, 3], [2]]


def test_a_lock_is_taken_by_one_program_at_a_time():
    out, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    result = run(loop_kernels.spin_lock, PROGRAMS, out, lock)
    (reason,) = result.diverged
    assert reason.startswith("RunOneByOne: the loop in line")
    assert out.tolist() == [28]
    assert lock.tolist() == [0]


def test_a_lock_that_is_tried_a_while_is_no_vectorized_loop_either():
    out, lock = np.zeros(4, np.int32), np.zeros(1, np.int32)
    assert (
        run(loop_kernels.bounded_spin, range(4), out, lock)
        .diverged[0]
        .startswith("RunOneByOne: the loop in line")
    )
    assert out.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("kernel", [loop_kernels.spin_lock, loop_kernels.polls])
def test_waiting_for_a_program_that_does_not_exist_is_an_error(kernel: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lane_loops, "SPINS_ALONE", 50)
    with pytest.raises(KernelError, match="has run 50 times and nothing was written: this program waits"):
        run(kernel, [0], np.zeros(1, np.int32), np.ones(1, np.int32))


def test_programs_that_all_wait_are_run_one_by_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lane_loops, "SPINS_ALONE", 50)
    monkeypatch.setattr(lane_loops, "SPINS_TOGETHER", 20)
    with pytest.raises(KernelError, match="waits for another"):
        run(loop_kernels.polls, range(4), np.zeros(4, np.int32), np.ones(1, np.int32))


# --- errors ---


def test_a_name_without_a_value_is_named():
    with pytest.raises(UnboundLocalError, match="'x' has no value here: give it one before"):
        run(call_kernels.undefined, PROGRAMS, np.zeros(32, np.int32))


def test_a_block_is_no_condition():
    with pytest.raises(TypeError, match=r"a block of shape \[4\] is not a scalar"):
        run(call_kernels.block_condition, PROGRAMS, np.zeros(32, np.int32))


def test_bounds_of_a_range_are_integers():
    with pytest.raises(TypeError, match="the bounds of a range must be integers, not fp32"):
        run(loop_kernels.float_range, PROGRAMS, np.zeros(32, np.int32))


@pytest.mark.parametrize("program", [1, 6])
def test_an_error_leaves_everything_as_it_was(program: int):
    """`run` checks that no mask, region or loop remains."""
    with pytest.raises(ZeroDivisionError):
        run(call_kernels.raises_inside, PROGRAMS, np.zeros(32, np.int32), program)


def test_tracebacks_point_at_the_users_line():
    with pytest.raises(ZeroDivisionError) as caught:
        run(call_kernels.raises_inside, PROGRAMS, np.zeros(32, np.int32), 1)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename == call_kernels.__file__
    assert frame.name == "raises_inside"
    assert frame.line == "x += 1 // 0"


# --- functions that can be rewritten ---


class NoFlow:
    """A flow that must not be called."""


def test_a_rewritten_function_is_identified_by_its_name_and_file():
    new = rewritten(call_kernels.with_defaults, NoFlow())
    assert (new.__name__, new.__qualname__, new.__module__) == (
        "with_defaults",
        "with_defaults",
        call_kernels.__name__,
    )
    assert new.__code__.co_filename == call_kernels.__file__
    assert inspect.signature(new).parameters.keys() == {"out", "a", "b"}


def test_defaults_keywords_and_decorators_of_several_lines():
    assert stored(call_kernels.with_defaults) == [7] * 8
    assert stored(call_kernels.with_defaults, b=10) == [15] * 8
    assert stored(call_kernels.decorated) == [0, 1, 1, 1, 1, 1, 1, 1]


def test_the_rest_of_python_stays():
    assert stored(call_kernels.left_plain) == [113, 113, 113, 113, 114, 114, 114, 114]


def test_wrapped_kernels_are_called_like_the_inner_kernel():
    assert stored(call_kernels.calls_tuned) == [4, 7, 10, 13, 16, 19, 22, 25]


def test_kernels_made_for_the_interpreter_run_too():
    """With TRITON_INTERPRET=1 the language's own functions are of another class."""
    program = "import numpy as np\nfrom tests.triton_viz.helpers import flow_call_kernels as k\n"
    program += "from tests.triton_viz.helpers.lanes import run\n"
    program += "out = np.zeros(32, np.int32)\n"
    for kernel in ("calls_helper", "uses_method_of_language"):
        program += f"run(k.{kernel}, range(8), out); print(out[::4].tolist())\n"
    done = run_python("-c", program, environment={"TRITON_INTERPRET": "1"})
    assert done.stdout.splitlines() == ["[0, 10, 20, 30, 44, 45, 46, 47]", "[6, 6, 6, 6, 6, 6, 6, 6]"]


def test_closures_see_the_cells_as_they_are():
    kernel, change = call_kernels.make_closure()
    assert stored(kernel) == [3] * 8
    change(5)
    assert stored(kernel) == [5] * 8


def test_globals_are_those_at_the_launch_and_are_never_written(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(call_kernels, "DEFINED_LATER", tl.constexpr(4), raising=False)
    before = dict(vars(call_kernels))
    assert stored(call_kernels.reads_global) == [4, 5, 6, 7, 8, 9, 10, 11]
    monkeypatch.setattr(call_kernels, "DEFINED_LATER", tl.constexpr(5))
    assert stored(call_kernels.reads_global) == [5, 6, 7, 8, 9, 10, 11, 12]
    assert vars(call_kernels).keys() == before.keys()


def test_a_function_without_source_is_refused():
    scope: dict[str, Any] = {}
    exec("def kernel(out):\n    pass\n", scope)
    with pytest.raises(UnsupportedError, match="its source code is not available"):
        rewritten(scope["kernel"], NoFlow())
    with pytest.raises(UnsupportedError, match="a kernel is written with `def`"):
        rewritten(call_kernels.A_LAMBDA, NoFlow())
    with pytest.raises(UnsupportedError, match="no Python function"):
        rewritten(len, NoFlow())


def test_the_users_own_substitutes_come_first():
    lanes = Lanes(1)
    flow = Flow(
        lanes, None, lambda data, dtype: None, {kernels.square: lambda x: ("mine", x), len: lambda x: 7}
    )
    assert flow.call(kernels.square, 3) == ("mine", 3)
    assert flow.call(len, ()) == 7
    assert flow.call(sorted, [2, 1], reverse=True) == [2, 1]


def test_lanes_that_did_not_begin_are_in_no_group():
    lanes = Lanes(4, np.array([True, True, True, False]))
    flow = Flow(lanes, None, lambda data, dtype: None)
    with pytest.raises(Diverged) as caught:
        flow.agreed(np.array([1, 2, 1, 5]))
    assert [group.tolist() for group in caught.value.groups] == [[0, 2], [1]]
