"""The symbolic engine: proofs hold, witnesses are actual violations, and unknown verdicts have reasons."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
from hypothesis import given, settings
from hypothesis import strategies as st

import triton_viz
from benchmarks.kernels import WORKLOADS
from tests.thorough import some
from tests.triton_viz.corpus import CASES
from tests.triton_viz.corpus.case import Case, launched_with
from tests.triton_viz.corpus.features import OLD_NAMES_ARE_FINE
from tests.triton_viz.helpers import symbolic_kernels as kernels
from tests.triton_viz.helpers import symbolic_programs as programs
from tests.triton_viz.helpers.generating import imported
from tests.triton_viz.helpers.symbolic_programs import (
    BLOCK,
    PROGRAMS,
    REACH,
    analyzed,
    check,
    memory,
    touched,
)
from triton_viz.dsls.triton.grid_launch import normalize_grid
from triton_viz.dsls.triton.symbolic import Analysis
from triton_viz.dsls.triton.wrappers import Call, bind

pytestmark = [
    pytest.mark.usefixtures("no_launches"),
    OLD_NAMES_ARE_FINE,
]

N = 30
"""The size of the kernels' tensors; eight programs have blocks of four elements, one of which is half
full."""
GRID = (8,)


def of_one_dimension(
    kernel: Any, grid: tuple[int, ...] = GRID, n: int = N
) -> tuple[Analysis, dict[str, Any]]:
    """The analysis of a kernel on two tensors, and its arguments."""
    x, out = memory()[0], memory()[0]
    arguments = {"x": x, "out": out, "n": n, "BLOCK": 4}
    return analyzed(kernel, grid, arguments, x=(0, 4 * n), out=(0, 4 * n)), arguments


def verdicts(analysis: Analysis) -> list[str]:
    return [access.verdict for access in analysis.accesses]


RIGHT = [
    kernels.masked_copy,
    kernels.shifted_window,
    kernels.clamped,
    kernels.wrapped_index,
    kernels.first_program_only,
    kernels.early_return,
    kernels.through_a_call,
    kernels.strided_loop,
    kernels.persistent,
    kernels.counting_while,
    kernels.halving_while,
    kernels.skipping_loop,
    kernels.break_at_the_end,
    kernels.two_steps_in_turn,
    kernels.unrolled,
    kernels.either_tensor,
    kernels.guarded_gather,
    kernels.argmax_index,
    kernels.sum_of_bits,
    kernels.squares,
]
VIOLATING = [
    (kernels.copy_without_mask, "x"),
    (kernels.mask_off_by_one, "x"),
    (kernels.before_the_start, "out"),
    (kernels.wrapped_one_too_far, "x"),
    (kernels.wrong_program_only, "out"),
    (kernels.loop_without_mask, "x"),
    (kernels.while_one_too_far, "out"),
    (kernels.last_of_a_loop, "out"),
]


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.__name__)
def test_accesses_that_stay_inside_are_proved(kernel: Any):
    analysis, arguments = of_one_dimension(kernel)
    assert analysis.proved, analysis
    check(analysis, touched(kernel, GRID, arguments, "out"), "out", 0, 4 * N)


@pytest.mark.parametrize(("kernel", "tensor"), VIOLATING, ids=lambda value: getattr(value, "__name__", value))
def test_accesses_that_go_outside_are_shown_by_an_element_that_does(kernel: Any, tensor: str):
    analysis, arguments = of_one_dimension(kernel)
    (violation,) = analysis.violations
    assert violation.tensor == tensor
    assert analysis.complete
    assert set(verdicts(analysis)) <= {"ok", "violation"}
    check(analysis, touched(kernel, GRID, arguments, tensor), tensor, 0, 4 * N)


def test_the_first_program_with_a_violation_is_shown():
    analysis, arguments = of_one_dimension(kernels.copy_without_mask)
    witness = analysis.violations[0].witness
    assert witness is not None
    assert witness.program == (7, 0, 0)
    assert witness.index == (2,)
    assert witness.address == arguments["x"].data_ptr() + 4 * N
    analysis, _ = of_one_dimension(kernels.loop_without_mask, (1,))
    witness = analysis.violations[0].witness
    assert witness is not None
    assert [iteration for _, iteration in witness.iterations] == [7]


@settings(max_examples=60, deadline=None)
@given(
    programs.kernels(),
    st.sampled_from([1, 3, 4, 9]),
    st.sampled_from([(0, 96), (0, 40), (-16, 400), (0, 4 * REACH)]),
)
def test_violations_of_generated_kernels_happen(text: str, n: int, window: tuple[int, int]):
    with tempfile.TemporaryDirectory() as folder:
        kernel = imported(text, Path(folder)).kernel
        x, data = memory()
        arguments = {"x": x, "data": data, "n": n, "BLOCK": BLOCK}
        analysis = analyzed(kernel, (PROGRAMS,), arguments, x=window)
        check(analysis, touched(kernel, (PROGRAMS,), arguments, "x"), "x", *window)


@pytest.mark.parametrize("case", some([case for case in CASES if case.runs], 5), ids=lambda case: case.name)
def test_no_kernel_of_the_corpus_is_accused_and_all_are_followed_to_the_end(case: Case):
    arguments = launched_with(case.fresh())
    fn = case.kernel.fn
    grid = normalize_grid(case.grid, Call(fn, bind(fn, (), arguments), {}))
    analysis = analyzed(case.kernel, grid, arguments)
    assert analysis.complete, analysis.reason
    assert set(verdicts(analysis)) <= {"ok", "concrete"}
    assert not any(a.outside_view or a.misaligned for a in analysis.accesses)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_benchmarks_are_proved(name: str):
    work = WORKLOADS[name]()
    assert analyzed(work.kernel, work.grid, work.arguments).proved


@pytest.mark.parametrize("programs", [2_000, 2_000_000])
def test_a_grid_of_any_size_is_one_run(programs: int):
    n = 4 * programs - 3
    arguments = {"x": torch.zeros(8), "out": torch.zeros(8), "n": n, "BLOCK": 4}
    analysis = analyzed(kernels.masked_copy, (programs,), arguments, x=(0, 4 * n), out=(0, 4 * n))
    assert analysis.proved
    assert len(analysis.accesses) == 2
    analysis = analyzed(kernels.masked_copy, (programs,), arguments, x=(0, 4 * n), out=(0, 4 * n - 4))
    (violation,) = analysis.violations
    assert violation.witness is not None
    assert violation.witness.program == (programs - 1, 0, 0)


def test_an_empty_grid_touches_nothing():
    analysis, _ = of_one_dimension(kernels.copy_without_mask, (0,))
    assert analysis.proved
    assert not analysis.accesses


@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 64, 64), (50, 70, 33), (16, 16, 16), (100, 20, 40), (1, 90, 5)]
)
def test_grouped_tiles_of_uneven_products_stay_inside(m: int, n: int, k: int):
    a, b, c = torch.zeros(m, k), torch.zeros(k, n), torch.zeros(m, n)
    grid = (triton.cdiv(m, 16) * triton.cdiv(n, 16),)
    arguments = {"a": a, "b": b, "c": c, "m": m, "n": n, "k": k, "TILE": 16, "GROUP": 3}
    assert analyzed(kernels.product, grid, arguments).proved
    # With one row less than the argument says, a program reads past the end.
    analysis = analyzed(kernels.product, grid, arguments, a=(0, 4 * (m * k - 1)))
    (violation,) = analysis.violations
    assert violation.tensor == "a"
    assert violation.witness is not None
    assert violation.witness.address == a.data_ptr() + 4 * (m * k - 1)


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (10, 6), (5, 13)])
def test_masks_of_two_axes_are_followed_through_a_transpose(rows: int, columns: int):
    x, out = memory()[0], memory()[0]
    arguments = {"x": x, "out": out, "rows": rows, "columns": columns, "BLOCK": 4}
    grid = (triton.cdiv(rows, 4), triton.cdiv(columns, 4))
    window = (0, 4 * rows * columns)
    assert analyzed(kernels.transposed, grid, arguments, x=window, out=window).proved
    found = analyzed(kernels.transposed_with_the_wrong_mask, grid, arguments, x=window, out=window)
    real = touched(kernels.transposed_with_the_wrong_mask, grid, arguments, "out")
    check(found, real, "out", *window)
    assert bool(found.violations) == any(place.offset >= window[1] for place in real)


def test_joined_and_reshaped_blocks_keep_track_of_their_elements():
    out = memory()[0]
    arguments = {"x": out, "out": out, "n": 0, "BLOCK": 4}
    assert analyzed(kernels.reshaped, (1,), arguments, out=(0, 128)).proved
    found = analyzed(kernels.reshaped, (1,), arguments, out=(0, 124))
    assert len(found.violations) == 1
    check(found, touched(kernels.reshaped, (1,), arguments, "out"), "out", 0, 124)


# --- unknown values ---


def test_an_address_from_data_is_left_to_the_data():
    analysis, _ = of_one_dimension(kernels.gather)
    assert verdicts(analysis) == ["ok", "concrete"]
    assert analysis.accesses[1].reason == "it depends on a loaded value"
    assert analysis.complete
    assert not analysis.proved


def test_an_address_from_a_float_is_left_to_the_data():
    analysis, _ = of_one_dimension(kernels.float_in_the_way)
    assert verdicts(analysis) == ["concrete"]
    assert "a float turned into an integer" in analysis.accesses[0].reason


def test_unsupported_code_ends_the_analysis_with_a_reason():
    analysis, _ = of_one_dimension(kernels.no_single_number)
    assert not analysis.complete
    assert analysis.reason == "an index that Python needs differs between programs"
    assert verdicts(analysis) == ["ok"]
    assert not analysis.proved


def test_a_kernel_that_raises_is_not_our_error():
    analysis, _ = of_one_dimension(kernels.raises)
    assert not analysis.complete
    assert "never" in analysis.reason


def test_kernels_run_as_before_after_an_analysis():
    for kernel in (kernels.masked_copy, kernels.raises):
        of_one_dimension(kernel)
    x, out = torch.arange(8.0), torch.zeros(8)
    triton_viz.trace("tracer")(kernels.masked_copy)[(2,)](x, out, 8, BLOCK=4)
    assert torch.equal(out, x)


# --- tensors ---


def test_int32_arithmetic_that_wraps_around_is_seen():
    stride = 2**20
    grid, bytes_ = (4096,), 4096 * stride * 4
    arguments = {"x": torch.zeros(8), "stride": stride, "BLOCK": 8}
    analysis = analyzed(kernels.far_row, grid, arguments, x=(0, bytes_))
    (violation,) = analysis.violations
    assert violation.overflow is not None
    assert violation.overflow.program == (2048, 0, 0)
    assert violation.witness is not None
    assert violation.witness.program[0] >= 2048
    assert violation.witness.address < arguments["x"].data_ptr()
    assert analyzed(kernels.far_row_in_64_bits, grid, arguments, x=(0, bytes_)).proved
    assert analyzed(kernels.far_row, (2048,), arguments, x=(0, bytes_)).proved


def test_a_view_is_its_storage_with_a_remark():
    whole = torch.zeros(64, dtype=torch.int32)
    view = whole[8:24]
    arguments = {"x": view, "out": view, "n": 32, "BLOCK": 4}
    analysis = analyzed(kernels.masked_copy, (8,), arguments)
    assert analysis.proved
    for access in analysis.accesses:
        assert access.outside_view is not None
        assert access.outside_view.program == (4, 0, 0)
    assert not any(a.outside_view for a in analyzed(kernels.masked_copy, (4,), arguments).accesses)
    (load, _) = analyzed(kernels.masked_copy, (16,), arguments | {"n": 64}).accesses
    assert load.verdict == "violation"


def test_elements_between_those_of_a_strided_view_are_not_its_own():
    view = torch.zeros(8, 8, dtype=torch.int32)[:, ::2]
    arguments = {"x": view, "out": torch.zeros(64, dtype=torch.int32), "n": 60, "BLOCK": 4}
    load, store = analyzed(kernels.masked_copy, (16,), arguments).accesses
    assert (load.verdict, store.verdict) == ("ok", "ok")
    assert load.outside_view is not None
    assert load.outside_view.index == (1,)
    assert store.outside_view is None


def test_a_broadcast_view_has_one_row():
    row = torch.zeros(1, 4, dtype=torch.int32)
    out = torch.zeros(32, dtype=torch.int32)
    arguments = {"x": row.expand(8, 4), "out": out, "n": 32, "BLOCK": 4}
    load, store = analyzed(kernels.masked_copy, (8,), arguments).accesses
    assert (load.verdict, store.verdict) == ("violation", "ok")
    assert load.witness is not None
    assert load.witness.program == (1, 0, 0)


def test_an_empty_tensor_has_nothing_to_touch():
    empty = torch.zeros(0, dtype=torch.int32)
    arguments = {"x": empty, "out": empty, "n": 0, "BLOCK": 4}
    assert analyzed(kernels.masked_copy, (4,), arguments).proved
    assert verdicts(analyzed(kernels.masked_copy, (4,), arguments | {"n": 1})) == ["violation", "violation"]


def test_descriptors_mask_elements_outside_and_must_describe_existing_ones():
    x, out = torch.zeros(12, 16), torch.zeros(12, 16)
    arguments = {"x": x, "out": out, "rows": 12, "columns": 16, "BLOCK": 8}
    analysis = analyzed(kernels.described, (2, 2), arguments)
    assert analysis.proved
    assert [a.kind for a in analysis.accesses] == ["descriptor", "load", "descriptor", "store"]
    found = analyzed(kernels.described, (2, 2), arguments | {"rows": 13})
    assert verdicts(found) == ["violation"] * 4
    # The descriptor that is not loaded from past its end is a violation, too.
    assert verdicts(analyzed(kernels.described, (1, 1), arguments | {"rows": 13})) == ["violation", "ok"] * 2


def test_all_axes_of_a_grid_are_open():
    out = torch.zeros(2 * 3 * 5 * 4, dtype=torch.int32)
    arguments = {"out": out, "BLOCK": 4}
    analysis = analyzed(kernels.three_axes, (2, 3, 5), arguments)
    assert analysis.proved
    assert analysis.accesses[0].kind == "atomic"
    (violation,) = analyzed(kernels.three_axes, (2, 3, 5), arguments, out=(0, 4 * 119)).violations
    assert violation.witness is not None
    assert violation.witness.program == (1, 2, 4)


def test_tensors_in_a_tuple_have_different_names():
    pair = (torch.zeros(30), torch.zeros(28))
    analysis = analyzed(kernels.from_a_tuple, (8,), {"both": pair, "n": 30, "BLOCK": 4})
    assert [(a.tensor, a.verdict) for a in analysis.accesses] == [("both[0]", "ok"), ("both[1]", "violation")]


# --- expressions in messages ---


def test_an_address_is_shown_in_the_users_names():
    analysis, _ = of_one_dimension(kernels.copy_without_mask)
    load, store = analysis.accesses
    assert load.expression == "x + at\nat = tl.program_id(0) * 4 + tl.arange(0, 4)"
    assert not load.masked
    assert store.masked
    assert load.call_path[-1].function == "copy_without_mask"


def test_a_pointer_that_a_loop_moves_shows_where_from_and_how():
    analysis, _ = of_one_dimension(kernels.strided_loop)
    assert analysis.accesses[0].expression.splitlines()[0] == "x + at, then pointers + 4 after each iteration"
    assert [iteration for _, iteration in analysis.accesses[0].loops] == [None]


def test_an_unrolled_loop_has_a_verdict_for_each_iteration():
    analysis, _ = of_one_dimension(kernels.unrolled)
    assert [iteration for a in analysis.accesses for _, iteration in a.loops] == [0, 1, 2, 3]


def test_where_an_access_is_includes_the_calls_that_led_there():
    analysis, _ = of_one_dimension(kernels.store_in_a_call)
    assert [site.function for site in analysis.accesses[0].call_path] == ["store_in_a_call", "put"]
