"""The sanitizer: its verdicts and issues for control flow, data-dependent values and pointers."""

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

import triton_viz
from tests.triton_viz.helpers import sanitizer_kernels as kernels
from tests.triton_viz.helpers.small_tensors import floats, ints, zeros
from tests.triton_viz.helpers.watching import issues_in, line_of
from triton_viz.clients import RaceDetector, Sanitizer, Tracer
from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.core.data import Issue, Load, Store
from triton_viz.errors import KernelError, SanitizerError

pytestmark = pytest.mark.usefixtures("no_launches")

OUT = "out of bounds"
HALF = 16
"""The size of the margins before and after the tensors of `memory`."""


def verdicts() -> list[tuple[str, str]]:
    """For each access of the last launch: load, store or atomic, and the verdict."""
    return [(r.access, r.verdict) for r in triton_viz.launches[-1].records if isinstance(r, Verdict)]


# ------------------------------------------------------------------------------------------ control flow


@pytest.mark.usefixtures("way")
def test_a_violation_in_a_branch_names_only_programs_that_take_it():
    assert issues_in(kernels.only_program, (8,), zeros(20), 8, WHICH=3) == []
    (issue,) = issues_in(kernels.only_program, (8,), zeros(20), 17, WHICH=3)
    assert (issue.kind, issue.program, issue.index, issue.past_end) == (OUT, (3, 0, 0), (20,), 4)
    assert issues_in(kernels.only_program, (3,), zeros(20), 100, WHICH=3) == []


@pytest.mark.usefixtures("way")
def test_returned_programs_access_nothing():
    x = zeros(5)
    assert issues_in(kernels.early_return, (9,), x, 5) == []
    assert x.tolist() == [0, 1, 2, 3, 4]
    (issue,) = issues_in(kernels.early_return_too_late, (9,), zeros(5), 5)
    assert (issue.program, issue.index) == ((5, 0, 0), (5,))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("n", "wrong"), [(20, False), (21, True)])
def test_a_while_is_followed_to_its_end(n: int, wrong: bool):
    issues = issues_in(kernels.while_there_is_more, (3,), torch.arange(20).int(), zeros(3), n, BLOCK=1)
    assert [issue.program for issue in issues] == ([(2, 0, 0)] if wrong else [])
    if wrong:
        assert issues[0].index == (20,)
        assert issues[0].iterations[-1][1] == 6


@pytest.mark.usefixtures("way")
def test_swizzled_programs_stay_inside():
    x = zeros(5, 7)
    assert issues_in(kernels.swizzled, (5, 7), x, 5, 7, GROUP=2) == []
    assert x.flatten().tolist() == [i * 100 + j for i in range(5) for j in range(7)]
    assert issues_in(kernels.grouped, (35,), x, 5, 7, GROUP=3) == []
    assert sorted(x.flatten().tolist()) == list(range(35))


@pytest.mark.usefixtures("way")
def test_indices_held_inside_by_minima_and_maxima_are_right():
    assert issues_in(kernels.clamped, (3,), torch.arange(10).int(), zeros(10), 10, BLOCK=4) == []
    assert {issue.kind for issue in issues_in(kernels.clamped, (3,), zeros(9), zeros(10), 10, BLOCK=4)} == {
        OUT
    }


@pytest.mark.usefixtures("way")
def test_each_call_of_a_helper_on_one_line_has_its_own_verdict():
    x, y = torch.arange(4).int(), torch.arange(4).int()
    (issue,) = issues_in(kernels.helper_twice_on_a_line, (4,), x, y, zeros(4), 2)
    assert (issue.tensor, issue.program, issue.index) == ("x", (2, 0, 0), (4,))
    assert [site.function for site in issue.call_path] == ["helper_twice_on_a_line", "at_two"]
    assert "2 programs" in issue.message


@pytest.mark.usefixtures("way")
def test_loops_of_constants_are_loops():
    x = torch.arange(12).int()
    assert issues_in(kernels.static_range, (4,), x, zeros(4), COUNT=3, STEP=1) == []
    (issue,) = issues_in(kernels.static_range, (4,), x, zeros(4), COUNT=3, STEP=2)
    assert (issue.program, issue.index, issue.past_end) == ((3, 0, 0), (13,), 8)


@pytest.mark.usefixtures("way")
def test_pointers_carried_by_nested_loops_are_followed():
    x, out = torch.arange(40).int().view(5, 8)[:, :6], zeros(1)
    assert issues_in(kernels.nested_loops_that_carry_pointers, (1,), x, out, 5, 6, 8) == []
    assert out.item() == x.sum().item()
    (issue,) = issues_in(kernels.nested_loops_that_carry_pointers, (1,), x, out, 5, 7, 8)
    assert issue.index == (0, 6)
    assert [n for _, n in issue.iterations] == [0, 6]
    (issue,) = issues_in(kernels.nested_loops_that_carry_pointers, (1,), x, out, 6, 6, 8)
    assert issue.index == (5, 0)


@pytest.mark.usefixtures("way")
def test_programs_of_three_axes_are_named_by_all_three():
    assert issues_in(kernels.place_in_three_axes, (2, 3, 4), zeros(2, 3, 4), 3, 4) == []
    (issue,) = issues_in(kernels.place_in_three_axes, (2, 3, 4), zeros(2, 3, 3), 3, 4)
    assert issue.program == (1, 1, 2)
    assert issue.index == (2, 0, 0)


@pytest.mark.parametrize("execute", [True, False])
def test_a_grid_without_programs_touches_nothing(execute: bool):
    client = Sanitizer(execute=execute)
    assert issues_in(kernels.copy_without_mask, (0,), zeros(0), zeros(0), 5, client=client, BLOCK=4) == []


def test_a_loop_that_all_leave_in_different_ways_is_over():
    """Otherwise calls after it would run without an active program."""
    out = zeros(5)
    assert issues_in(kernels.break_either_way, (5,), out) == []
    assert out.tolist() == [0, 1, 2, 3, 4]


def test_an_error_of_the_kernel_is_the_users_and_the_next_launch_works():
    with pytest.raises(KernelError, match="only two"):
        issues_in(kernels.asserting, (4,), zeros(4))
    assert triton_viz.launches == []
    # The violation before may be the cause.
    with pytest.raises(KernelError, match="only ones"):
        issues_in(kernels.asserting_ones, (4,), torch.ones(3))
    (launch,) = triton_viz.launches
    assert [r.index for r in launch.records if isinstance(r, Issue)] == [(3,)]
    assert issues_in(kernels.copy, (3,), zeros(10), zeros(10), 10, BLOCK=4) == []


# ---------------------------------------------------------------------------------------- values from data


@pytest.mark.usefixtures("way")
def test_an_index_from_argmax_is_at_most_the_last():
    x = ints(1, 5, 2, 3, 9, 1, 0, 0)
    out = zeros(2)
    assert issues_in(kernels.at_argmax, (2,), x, ints(10, 11, 12, 13), out, BLOCK=4) == []
    assert out.tolist() == [11, 10]
    # It depends on data: in one program it is the second of two elements, in the other the fourth.
    (issue,) = issues_in(kernels.at_argmax, (2,), ints(1, 5, 2, 3, 0, 1, 0, 7), ints(10, 11), out, BLOCK=4)
    assert (issue.tensor, issue.program, issue.index) == ("y", (1, 0, 0), (3,))


@pytest.mark.usefixtures("way")
def test_indices_from_sums_scans_and_histograms_are_checked_on_the_data():
    out = zeros(4)
    assert issues_in(kernels.at_sum, (2,), ints(1, 0, 1, 0, 1, 1, 1, 0), ints(5, 6, 7, 8), out, BLOCK=4) == []
    (issue,) = issues_in(kernels.at_sum, (2,), ints(1, 0, 1, 0, 1, 1, 1, 1), ints(5, 6, 7, 8), out, BLOCK=4)
    assert (issue.tensor, issue.program, issue.index) == ("y", (1, 0, 0), (4,))
    assert issues_in(kernels.at_scan, (1,), ints(0, 3, 0, 4, 5, 0, 0, 6), out, BLOCK=8) == []
    assert out.tolist() == [3, 4, 5, 6]
    (issue,) = issues_in(kernels.at_scan, (1,), ints(2, 3, 0, 4, 5, 0, 0, 6), out, BLOCK=8)
    assert (issue.tensor, issue.index) == ("out", (4,))
    assert out.tolist() == [2, 3, 4, 5]
    values = ints(0, 0, 0, 1, 1, 2, 3, 3)
    assert issues_in(kernels.at_histogram, (1,), values, zeros(4), ints(0, 1, 2, 3), BLOCK=8, BINS=4) == []
    (issue,) = issues_in(kernels.at_histogram, (1,), values, zeros(4), ints(0, 1, 2), BLOCK=8, BINS=4)
    assert (issue.tensor, issue.index) == ("table", (3,))


@pytest.mark.usefixtures("way")
def test_random_indices_are_checked_on_the_numbers_that_come():
    assert issues_in(kernels.at_random, (4,), zeros(10), zeros(64), 10, BLOCK=16) == []
    (issue,) = issues_in(kernels.at_random, (4,), zeros(5), zeros(64), 10, BLOCK=16)
    assert (issue.tensor, issue.kind) == ("x", OUT)


@pytest.mark.usefixtures("way")
def test_a_number_that_an_atomic_gave_is_an_index_like_any_other():
    out = zeros(8)
    assert issues_in(kernels.ticket, (8,), zeros(1), out) == []
    assert sorted(out.tolist()) == list(range(8))
    (issue,) = issues_in(kernels.ticket, (8,), zeros(1), zeros(7))
    assert (issue.tensor, issue.index) == ("out", (7,))
    bins = zeros(3)
    (issue,) = issues_in(kernels.count, (4,), bins, ints(0, 2, 3, 9), 3)
    assert (issue.tensor, issue.program, issue.index, issue.mask) == ("bins", (2, 0, 0), (3,), True)
    assert bins.tolist() == [1, 0, 1]


@pytest.mark.usefixtures("way")
def test_a_verdict_holds_for_its_launch_and_not_for_other_data_numbers_or_views():
    x, out = torch.arange(8).int(), zeros(4)
    kernel = triton_viz.trace("sanitizer")(kernels.gathered)

    def launch(x: torch.Tensor, index: torch.Tensor) -> list[Any]:
        kernel[(1,)](x, index, out, BLOCK=4)
        return [r.index for r in triton_viz.launches[-1].records if isinstance(r, Issue)]

    index = ints(0, 7, 3, 1)
    assert launch(x, index) == []
    index[2] = 8
    assert launch(x, index) == [(8,)]
    index[2] = 5
    assert launch(x, index) == []
    assert launch(x[:7], index) == [(7,)]
    assert launch(x[1:], index) == [(7,)]
    copy = triton_viz.trace("sanitizer")(kernels.copy)
    for n in (8, 9, 8):
        copy[(3,)](x, x.clone(), n, BLOCK=4)
        found = [r.tensor for r in triton_viz.launches[-1].records if isinstance(r, Issue)]
        assert found == ([] if n == 8 else ["x", "out"])


def test_bounded_data_are_proved_for_memory_and_for_views():
    x, index, out = torch.arange(100).int(), ints(7, -30, 1000, 5), zeros(4)
    assert issues_in(kernels.remainder_of_data, (4,), x, index, out, 100) == []
    (issue,) = issues_in(kernels.remainder_of_data, (4,), x[:50:2], index, out, 100)
    assert (issue.program, issue.tensor) == ((0, 0, 0), "x")
    (issue,) = issues_in(kernels.remainder_of_data, (4,), x[:20], index, out, 100)
    assert (issue.program, issue.index) == ((1, 0, 0), (30,))


@pytest.mark.usefixtures("way")
def test_a_hash_that_wraps_around_is_no_overflow():
    x, out = torch.arange(16).int(), zeros(8)
    assert issues_in(kernels.hashed, (8,), x, out, 16) == []
    assert issues_in(kernels.hashed_data, (8,), x, torch.arange(8).int(), out, 16) == []
    issues = issues_in(kernels.hashed, (8,), x, out, 16, client=Sanitizer(execute=False))
    assert [issue for issue in issues if issue.verdict == "violation"] == []


@pytest.mark.usefixtures("way")
def test_a_product_that_does_not_fit_is_an_overflow():
    x = zeros(64)
    (issue,) = issues_in(kernels.product_of_data_too_large, (2,), x, ints(3, 2**20), 2**12)
    assert (issue.kind, issue.program) in (("overflow", (1, 0, 0)), (OUT, (0, 0, 0)))


def test_a_product_of_programs_that_does_not_fit_is_an_overflow():
    (issue,) = issues_in(kernels.product_too_large, (4,), zeros(64), 2**30)
    assert issue.kind == "overflow"
    assert "int64" in issue.suggestion


# -------------------------------------------------------------------------------------------------- pointers


# --------------------------------------------------------------------------------------------------- reports


@pytest.mark.usefixtures("way")
def test_an_issue_has_the_element_line_and_distance():
    x = torch.arange(20).int().view(4, 5)
    out = zeros(30)
    (issue,) = issues_in(kernels.copy_without_mask, (6,), x, out, 20, BLOCK=4)
    assert (issue.kind, issue.tensor, issue.program) == (OUT, "x", (5, 0, 0))
    assert (issue.index, issue.offset, issue.past_end, issue.mask) == ((4, 0), 20, 4, None)
    assert issue.call_path[-1].line == line_of(kernels.copy_without_mask, "tl.load")
    assert "4 elements of this program" in issue.message
    assert "no mask" in issue.suggestion
    assert out[:20].tolist() == list(range(20))


@pytest.mark.usefixtures("way")
def test_a_suggestion_knows_a_mask_that_is_always_true_and_names_no_number_as_an_index():
    issues = issues_in(kernels.copy, (3,), zeros(11), zeros(12), 12, BLOCK=4)
    assert [(issue.mask, issue.suggestion) for issue in issues] == [
        (True, "its mask lets this element through: let it include at < 11")
    ]
    (issue,) = issues_in(kernels.at_distance, (1,), floats(4), torch.zeros(1), 4)
    assert issue.suggestion == "the access has no mask: add mask=(the index) < 4"


@pytest.mark.usefixtures("way")
def test_a_view_is_more_than_its_memory_between_and_around():
    x = torch.arange(100).int()
    (issue,) = issues_in(kernels.copy_without_mask, (3,), x[10:20], zeros(12), 10, BLOCK=4)
    assert (issue.program, issue.index, issue.past_end) == ((2, 0, 0), (10,), 4)
    (issue,) = issues_in(kernels.copy_without_mask, (3,), x[:24:2], zeros(12), 12, BLOCK=4)
    assert (issue.program, issue.index, issue.past_end, issue.offset) == ((0, 0, 0), None, 0, 1)
    assert "strides" in issue.suggestion
    assert issues_in(kernels.transpose_in_place, (4, 4), x[:16].view(4, 4).T, zeros(4, 4), 4) == []


@pytest.mark.usefixtures("way")
def test_an_empty_tensor_has_no_elements():
    for empty in (zeros(0), zeros(4)[2:2], zeros(3, 0)):
        (issue,) = issues_in(kernels.copy_without_mask, (1,), empty, zeros(4), 4, BLOCK=4)
        assert (issue.kind, issue.tensor) == (OUT, "x")
    assert issues_in(kernels.copy, (1,), zeros(0), zeros(4), 0, BLOCK=4) == []


# --------------------------------------------------------------------------------------------- what it takes


def test_without_running_nothing_is_written_and_violations_are_found():
    out = zeros(10)
    assert (
        issues_in(
            kernels.copy, (3,), torch.arange(10).int(), out, 10, client=Sanitizer(execute=False), BLOCK=4
        )
        == []
    )
    assert out.tolist() == [0] * 10
    assert set(verdicts()) == {("load", "ok"), ("store", "ok")}
    (issue,) = issues_in(
        kernels.copy_without_mask, (3,), zeros(10), out, 10, client=Sanitizer(execute=False), BLOCK=4
    )
    assert (issue.verdict, issue.program, issue.index) == ("violation", (2, 0, 0), (10,))
    issues = issues_in(
        kernels.gathered, (1,), zeros(10), zeros(4), out, client=Sanitizer(execute=False), BLOCK=4
    )
    assert [(issue.verdict, issue.tensor) for issue in issues] == [("undecided", "x")]
    assert "loaded value" in issues[0].message


def test_an_error_can_be_caught_and_launches_go_on():
    client = Sanitizer(abort_on_error=True)
    kernel = triton_viz.trace(client)(kernels.gathered)
    out = zeros(4)
    kernel[(1,)](zeros(10), ints(1, 2, 3, 4), out, BLOCK=4)
    with pytest.raises(SanitizerError, match=r"sanitizer_kernels\.py:\d+.*x\[10\]") as error:
        kernel[(1,)](zeros(10), ints(1, 2, 10, 4), out, BLOCK=4)
    assert [issue.index for issue in error.value.issues] == [(10,)]
    # A failed launch is appended, too: its records have the violations.
    assert [[r.index for r in launch.records if isinstance(r, Issue)] for launch in triton_viz.launches] == [
        [],
        [(10,)],
    ]
    kernel[(1,)](torch.arange(10).int(), ints(1, 2, 3, 4), out, BLOCK=4)
    assert out.tolist() == [1, 2, 3, 4]
    assert len(triton_viz.launches) == 3
    with pytest.raises(SanitizerError):
        issues_in(kernels.copy_without_mask, (3,), zeros(10), zeros(10), 10, client=client, BLOCK=4)


def test_fake_memory_is_neither_read_nor_written():
    x, out = torch.arange(10).int(), zeros(10)
    assert issues_in(kernels.copy, (3,), x, out, 10, client=Sanitizer(fake_memory=True), BLOCK=4) == []
    assert out.tolist() == [0] * 10
    (issue,) = issues_in(
        kernels.copy_without_mask, (3,), x, out, 10, client=Sanitizer(fake_memory=True), BLOCK=4
    )
    assert issue.index == (10,)
    counter = zeros(1)
    issues_in(kernels.ticket, (4,), counter, zeros(4), client=Sanitizer(fake_memory=True))
    assert counter.item() == 0


def test_other_clients_receive_the_reduced_mask():
    x, out = torch.arange(10).int(), zeros(12)
    clients = [Tracer(), Sanitizer(), RaceDetector()]
    (issue,) = issues_in(kernels.copy_without_mask, (3,), x, out, 12, client=clients, BLOCK=4)
    assert issue.index == (10,)
    launch = triton_viz.launches[-1]
    (load,) = [record for record in launch.at((2, 0, 0)) if isinstance(record, Load)]
    assert load.mask.tolist() == [True, True, False, False]
    (store,) = [record for record in launch.at((2, 0, 0)) if isinstance(record, Store)]
    assert store.mask.tolist() == [True] * 4
    assert out.tolist() == [*range(10), 0, 0]


def test_a_trace_around_kernels_that_have_clients_of_their_own():
    traced = triton_viz.trace("tracer")(kernels.copy_without_mask)
    with triton_viz.trace("sanitizer"):
        traced[(3,)](zeros(10), zeros(12), 12, BLOCK=4)
        kernels.copy_without_mask[(3,)](zeros(10), zeros(12), 12, BLOCK=4)  # type: ignore[arg-type]
    for launch in triton_viz.launches:
        assert [r.index for r in launch.records if isinstance(r, Issue)] == [(10,)]


def test_an_autotuned_kernel_is_checked():
    configs = [triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})]
    tuned = triton.autotune(configs, key=["n"])(kernels.copy)
    out = zeros(10)
    with triton_viz.trace("sanitizer"):
        tuned[lambda meta: (triton.cdiv(10, meta["BLOCK"]),)](torch.arange(10).int(), out, 10)
        tuned[lambda meta: (triton.cdiv(10, meta["BLOCK"]),)](zeros(10), zeros(9), 10)
    first, *_, last = triton_viz.launches
    assert [r for r in first.records if isinstance(r, Issue)] == []
    assert [(r.tensor, r.index) for r in last.records if isinstance(r, Issue)] == [("out", (9,))]
    assert out.tolist() == list(range(10))


@triton.jit
def loads_far(x, out, stride: tl.int64):  # pyright: ignore[reportInvalidTypeForm]
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0) * stride))


@triton.jit
def loads_far_in_32_bits(x, out, stride):
    tl.store(out + tl.program_id(0), tl.load(x + tl.program_id(0) * stride))


@triton.jit
def loads_at_a_byte(x, out, at: tl.int8):  # pyright: ignore[reportInvalidTypeForm]
    tl.store(out, tl.load(x + at))


@pytest.mark.parametrize("execute", [True, False])
def test_the_type_that_a_kernel_names_is_the_arguments(execute: bool):
    client = Sanitizer(execute=execute)
    x = torch.empty(3 << 30, dtype=torch.int8)  # of which only a few pages are ever touched
    out = torch.zeros(3, dtype=torch.int8)
    assert issues_in(loads_far, (3,), x, out, 1 << 30, client=client) == []
    found = issues_in(loads_far_in_32_bits, (3,), x, out, 1 << 30, client=client)
    assert {issue.kind for issue in found} == {"overflow"}
    assert issues_in(loads_at_a_byte, (1,), zeros(4), zeros(1), 256 + 3, client=client) == []
    (issue,) = issues_in(loads_at_a_byte, (1,), zeros(4), zeros(1), 255, client=client)
    assert (issue.kind, issue.tensor, issue.index) == ("out of bounds", "x", (-1,))
