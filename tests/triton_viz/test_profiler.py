"""The profiler: its numbers agree with numbers that are computed by hand."""

import pytest
import torch

import triton_viz
from tests.triton_viz.helpers.profiled_kernels import (
    add,
    bits_set,
    column_sums,
    gather,
    histogram,
    matmul,
    means,
    odd_programs,
    same_row_again,
    scale_rows,
    softmax,
    softmax_in_passes,
    transposed,
    triangle,
    windows,
)
from tests.triton_viz.helpers.profiling import finding, kinds, profiled, site
from triton_viz.clients import Profiler, Tracer
from triton_viz.clients.profiler import Device, blocks, profiler, totals
from triton_viz.clients.profiler.kernel_profile import KernelReport
from triton_viz.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")


# --- bytes and masks ---


def test_a_vector_add_moves_each_element_once_and_wastes_the_end_of_its_last_block():
    x, y, out = torch.randn(1000), torch.randn(1000), torch.empty(1000)
    report = profiled(add, (4,), x, y, out, 1000, BLOCK=256)
    torch.testing.assert_close(out, x + y)
    assert (report.loaded, report.stored, report.flops) == (8000, 4000, 1024)
    load = site(report, "x")
    assert (load.elements, load.masked_off, load.bytes) == (1000, 24, 4000)
    assert load.mask_waste == pytest.approx(24 / 1024)
    assert (load.requests, load.sectors) == (32, 125)  # the last request has 8 elements, in one sector
    assert (load.coalescing, load.repeats_in_program, load.repeats_across) == (1, 1, 1)
    assert load.distinct_bytes == 4000
    assert load.exact
    (bytes_each, flops_each) = report.balance
    assert (bytes_each.least, bytes_each.most) == ((1000 - 768) * 12, 256 * 12)
    assert (bytes_each.lightest, bytes_each.heaviest) == ((3, 0, 0), ((0, 0, 0), (1, 0, 0), (2, 0, 0)))
    assert (flops_each.least, flops_each.most, flops_each.imbalance) == (256, 256, 1)
    assert kinds(report) == set()


def test_programs_that_are_masked_off_altogether_count_as_waste():
    x, y, out = torch.randn(100), torch.randn(100), torch.empty(100)
    report = profiled(add, (4,), x, y, out, 100, BLOCK=128)
    assert site(report, "x").masked_off == 4 * 128 - 100
    assert site(report, "out", "store").masked_off == 4 * 128 - 100


def test_a_block_that_is_too_long_for_its_rows_is_found_and_named():
    x, out = torch.randn(8, 585), torch.empty(8, 585)
    report = profiled(softmax, (8,), x, out, 585, BLOCK=1024)
    load = site(report, "x")
    assert load.mask_waste == pytest.approx(1 - 585 / 1024)
    assert load.most_used == (585,)
    advice = finding(report, "mask", "x")
    assert "wastes 43%" in advice.message
    assert "BLOCK=1024 for columns=585" in advice.message
    assert advice.change == "loop over blocks of 128: 5 of them are 640 elements"
    assert advice.line == load.site[0].line


def test_a_masked_softmax_computes_all_of_its_block():
    x, out = torch.randn(8, 585), torch.empty(8, 585)
    report = profiled(softmax, (8,), x, out, 585, BLOCK=1024)
    # minus, exp and divided by: one each. max and sum: 1023 each.
    assert report.flops == 8 * (3 * 1024 + 2 * 1023)
    assert {w.precision for w in report.work} == {"fp32"}


def test_a_library_function_of_integers_is_no_floating_point_operation():
    x, out = torch.arange(32, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
    report = profiled(bits_set, (1,), x, out, BLOCK=32)
    assert out.tolist() == [n.bit_count() for n in range(32)]
    assert (report.flops, report.integer_ops, report.work) == (0, 32, ())


def test_lanes_that_do_not_come_to_a_line_do_not_count_there():
    x, out = torch.randn(6 * 32), torch.zeros(6 * 32)
    report = profiled(odd_programs, (6,), x, out, BLOCK=32)
    load = site(report, "x")
    assert (load.elements, load.masked_off) == (3 * 32, 0)
    assert report.flops == 3 * 32
    (bytes_each, _) = report.balance
    assert (bytes_each.least, bytes_each.most, bytes_each.lightest) == (0, 256, (0, 0, 0))


# --- coalescing ---


def test_a_column_of_a_matrix_needs_eight_times_the_sectors():
    x, out = torch.randn(64, 64), torch.empty(64)
    report = profiled(column_sums, (64,), x, out, 64, 64, BLOCK=64)
    torch.testing.assert_close(out, x.sum(0))
    load = site(report, "x")
    assert (load.sectors_per_request, load.coalescing) == (32, 1 / 8)
    advice = finding(report, "coalescing", "x")
    assert "8.0 times as many" in advice.message
    assert "64 elements apart" in advice.change


def test_threads_follow_memory_along_any_axis_of_a_tile():
    x, out = torch.randn(32, 32), torch.empty(32, 32)
    report = profiled(transposed, (1,), x, out, N=32)
    torch.testing.assert_close(out, x.T)
    assert site(report, "x").coalescing == site(report, "out", "store").coalescing == 1


def test_blocks_that_begin_between_sectors_need_one_more():
    x, y, out = torch.randn(65)[1:], torch.randn(64), torch.empty(64)
    report = profiled(add, (1,), x, y, out, 64, BLOCK=64)
    assert (site(report, "x").sectors_per_request, site(report, "y").sectors_per_request) == (5, 4)
    assert "multiples of 32 bytes" in finding(report, "alignment", "x").change


def test_gathered_elements_are_looked_at_one_by_one():
    n = 256
    x, out = torch.randn(n), torch.empty(n)
    apart = (torch.arange(n) * 8 % n).to(torch.int64)  # every element in a sector of its own, 32 elements
    report = profiled(gather, (2,), x, apart, out, n, BLOCK=128)
    torch.testing.assert_close(out, x[apart])
    load = site(report, "x")
    assert (load.requests, load.sectors) == (8, 8 * 32)
    assert load.distinct_bytes == 32 * 4
    assert load.distinct_in_programs == 2 * 32 * 4
    assert (load.repeats_in_program, load.repeats_across) == (4, 2)
    assert load.exact
    assert "irregular" in finding(report, "coalescing", "x").change


# --- repeated reads ---


def test_a_row_that_all_programs_read_is_shared_by_them():
    x, weight, out = torch.randn(50, 64), torch.randn(64), torch.empty(50, 64)
    report = profiled(scale_rows, (50,), x, weight, out, 64, BLOCK=64)
    load = site(report, "weight")
    assert (load.bytes, load.distinct_bytes) == (50 * 256, 256)
    assert (load.repeats_in_program, load.repeats_across) == (1, 50)
    assert site(report, "x").repeats_across == 1
    assert "loaded by 50.0 programs" in finding(report, "sharing", "weight").message
    assert report.roofline.least_bytes == 2 * 50 * 256 + 256


def test_reads_in_every_iteration_count_as_repeated_reads():
    x, out = torch.randn(64), torch.empty(64)
    report = profiled(same_row_again, (1,), x, out, BLOCK=64)
    assert (site(report, "x").repeats_in_program, site(report, "x").repeats_across) == (5, 1)
    assert "before the loop" in finding(report, "reread", "x").change


def test_passes_over_a_row_are_found_though_each_line_reads_it_once():
    x, out = torch.randn(4, 256), torch.empty(4, 256)
    report = profiled(softmax_in_passes, (4,), x, out, 256, BLOCK=64)
    torch.testing.assert_close(out, x.softmax(1))
    assert [s.repeats_in_program for s in report.sites if s.tensor == "x"] == [1, 1, 1]
    (tensor,) = [t for t in report.tensors if t.tensor == "x"]
    assert (tensor.loaded, tensor.distinct_loaded) == (3 * 4096, 4096)
    assert (tensor.repeats_in_program, tensor.repeats_across, tensor.exact) == (3, 1, True)
    assert "3.0 times, in lines" in finding(report, "reread", "x").message


def test_overlapping_windows_are_counted_element_by_element():
    x, out = torch.randn(6 * 32), torch.empty(5 * 32)
    report = profiled(windows, (5,), x, out, BLOCK=32)
    load = site(report, "x")
    assert load.distinct_in_programs == 5 * 64 * 4  # 32 and twice 16 more
    assert load.distinct_bytes == 6 * 32 * 4
    assert load.repeats_in_program == pytest.approx(96 / 64)


# --- arithmetic ---


def test_a_matmul_is_two_m_n_k():
    m, n, k, tile = 64, 96, 128, 32
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    report = profiled(matmul, (m // tile, n // tile), a, b, c, m, n, k, TILE=tile)
    torch.testing.assert_close(c, a @ b, atol=1e-4, rtol=1e-4)
    (dot,) = [w for w in report.work if w.unit == "dot"]
    assert dot.flops == report.flops == 2 * m * n * k
    assert (site(report, "a").bytes, site(report, "b").bytes) == (m * k * 4 * 3, k * n * 4 * 2)
    assert (site(report, "a").repeats_across, site(report, "b").repeats_across) == (3, 2)
    assert site(report, "a").repeats_in_program == 1
    roof = report.roofline
    assert roof.least_bytes == 4 * (m * k + k * n + m * n)
    assert roof.intensity == pytest.approx(2 * m * n * k / roof.least_bytes)
    assert roof.bound == "memory"
    assert roof.seconds == pytest.approx(roof.least_bytes / 3.35e12)
    (loop,) = report.loops
    assert (loop.kind, loop.unrolled, loop.trips_least, loop.trips_most) == ("range", False, 4, 4)


def test_a_reduction_counts_the_operations_of_its_function():
    x, out = torch.randn(64), torch.empty(1)
    report = profiled(means, (1,), x, out, BLOCK=64)
    torch.testing.assert_close(out[0], x.mean())
    assert report.flops == 63 * 5


def test_a_device_that_computes_slowly_is_bound_by_it():
    n = 256
    a, b, c = torch.randn(n, n), torch.randn(n, n), torch.empty(n, n)
    slow = Device("slow", 1e15, 1 << 30, 1, {"fp32": 1e9}, {"fp32": 1e9})
    report = profiled(matmul, (n // 64, n // 64), a, b, c, n, n, n, TILE=64, profiler=Profiler(device=slow))
    assert report.roofline.bound == "compute"
    assert report.roofline.seconds == pytest.approx(2 * n**3 / 1e9)
    assert report.roofline.attainable == pytest.approx(1e9)


def test_an_unknown_device_is_an_error_that_lists_the_known_ones():
    with pytest.raises(UnsupportedError, match="no device is called 'abacus': there are H100"):
        Profiler(device="abacus")


# --- loops, balance, atomics ---


def test_loops_say_whether_they_were_unrolled():
    x, out = torch.randn(64), torch.empty(64)
    report = profiled(same_row_again, (1,), x, out, BLOCK=64)
    assert [(loop.kind, loop.unrolled, loop.trips_most) for loop in report.loops] == [
        ("range", False, 5),
        ("static_range", True, 3),
    ]
    assert finding(report, "loop").line == report.loops[0].line


def test_a_triangle_of_work_is_uneven():
    n = 20
    x, out = torch.randn(n, 16), torch.empty(n, 16)
    report = profiled(triangle, (n,), x, out, BLOCK=16)
    torch.testing.assert_close(out, x.cumsum(0))
    (bytes_each, flops_each) = report.balance
    assert (bytes_each.least, bytes_each.most) == (2 * 64, (n + 1) * 64)
    assert flops_each.median == 16 * (n + 1) / 2
    assert flops_each.heaviest == ((19, 0, 0), (18, 0, 0), (17, 0, 0))
    assert flops_each.imbalance == pytest.approx(n / ((n + 1) / 2))
    (loop,) = report.loops
    assert (loop.trips_least, loop.trips_most, loop.trips_total) == (1, n, n * (n + 1) // 2)
    assert "(19, 0, 0)" in finding(report, "balance").message
    load = site(report, "x")
    assert load.repeats_in_program == 1
    assert load.distinct_bytes == n * 64


def test_atomics_that_meet_at_one_element_are_counted():
    n = 1000
    x = torch.arange(n) % 10
    x[:300] = 7
    bins = torch.zeros(10, dtype=torch.int32)
    report = profiled(histogram, (4,), x, bins, n, BLOCK=256)
    assert bins.tolist() == torch.bincount(x).tolist()
    (contention,) = report.contention
    assert contention.hottest == (7,)
    assert contention.hits == bins[7] == 370
    assert (contention.updates, contention.elements, contention.mean) == (n, 10, 100)
    assert "370 of 1,000" in finding(report, "contention").message


# --- sampling and skipping ---


def test_a_sample_scales_equal_work_exactly():
    x, y, out = torch.randn(6400), torch.randn(6400), torch.zeros(6400)
    report = profiled(add, (100,), x, y, out, 6400, BLOCK=64, profiler=Profiler(sample=10))
    assert (report.programs, report.ran) == (100, 10)
    assert (report.loaded, report.stored, report.flops) == (2 * 25600, 25600, 6400)
    assert (report.loaded_error, report.flops_error) == (0, 0)
    assert site(report, "x").distinct_bytes == 25600
    assert not site(report, "x").exact
    assert int((out != 0).sum()) == 10 * 64  # the others did not run


def test_a_sample_extrapolates_shared_elements():
    x, weight, out = torch.randn(200, 64), torch.randn(64), torch.empty(200, 64)
    report = profiled(scale_rows, (200,), x, weight, out, 64, BLOCK=64, profiler=Profiler(sample=0.1))
    assert report.ran == 20
    assert site(report, "weight").distinct_bytes == 256
    assert site(report, "x").distinct_bytes == 200 * 256


def test_the_error_of_a_sample_is_stated_and_holds_nearly_always():
    n = 200
    x, out = torch.randn(n, 16), torch.empty(n, 16)
    exact = profiled(triangle, (n,), x, out, BLOCK=16)
    samples = [
        profiled(triangle, (n,), x, out, BLOCK=16, profiler=Profiler(sample=0.2, seed=seed))
        for seed in range(20)
    ]
    assert all(0.05 < sample.flops_error < 0.35 for sample in samples)
    inside = [abs(s.flops - exact.flops) <= s.flops_error * s.flops for s in samples]
    assert sum(inside) >= 17
    loads = [site(sample, "x") for sample in samples]
    of_site = [abs(load.bytes - site(exact, "x").bytes) <= load.error * load.bytes for load in loads]
    assert sum(of_site) >= 17


def test_a_sample_is_the_same_each_time_and_another_with_another_seed():
    x, out = torch.randn(50, 16), torch.empty(50, 16)

    def once(seed: int) -> KernelReport:
        return profiled(triangle, (50,), x, out, BLOCK=16, profiler=Profiler(sample=5, seed=seed))

    assert once(1) == once(1)
    assert once(1).flops != once(2).flops


def test_all_programs_run_if_another_client_needs_them():
    x, y, out = torch.randn(640), torch.randn(640), torch.zeros(640)
    profiler = Profiler(sample=2)
    triton_viz.trace([profiler, Tracer()])(add)[(10,)](x, y, out, 640, BLOCK=64)
    torch.testing.assert_close(out, x + y)
    (report,) = profiler.report().launches
    assert (report.ran, report.loaded) == (10, 5120)


@pytest.mark.parametrize("sample", [0, -1, 1.5, True])
def test_a_sample_that_makes_no_sense_is_refused(sample: float):
    with pytest.raises(UnsupportedError, match="a sample is a share of the programs"):
        Profiler(sample=sample)


def test_accesses_that_are_skipped_are_still_counted():
    x, y, out = torch.randn(1000), torch.randn(1000), torch.zeros(1000)
    full = profiled(add, (4,), x, y, torch.empty(1000), 1000, BLOCK=256)
    report = profiled(
        add, (4,), x, y, out, 1000, BLOCK=256, profiler=Profiler(skip_loads=True, skip_stores=True)
    )
    assert not out.any()
    assert report.skipped == ("loads", "stores")
    assert (report.sites, report.flops) == (full.sites, full.flops)


# --- estimates for large launches ---


def test_distinct_elements_of_large_tensors_are_an_estimate(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(totals, "MOST_FOOTPRINT", 100)
    x, weight, out = torch.randn(50, 64), torch.randn(64), torch.empty(50, 64)
    report = profiled(scale_rows, (50,), x, weight, out, 64, BLOCK=64)
    assert (site(report, "x").distinct_bytes, site(report, "x").exact) == (50 * 256, False)
    assert (site(report, "weight").distinct_bytes, site(report, "weight").exact) == (256, True)


def test_a_chunk_in_parts_has_equal_counts_and_marks_estimates(
    monkeypatch: pytest.MonkeyPatch,
):
    x, out = torch.randn(6 * 32), torch.empty(5 * 32)
    whole = site(profiled(windows, (5,), x, out, BLOCK=32), "x")
    monkeypatch.setattr(profiler, "_MOST_STAGED", 1)
    parts = site(profiled(windows, (5,), x, out, BLOCK=32), "x")
    assert (parts.bytes, parts.sectors, parts.distinct_bytes) == (
        whole.bytes,
        whole.sectors,
        whole.distinct_bytes,
    )
    assert (whole.exact, parts.exact) == (True, False)
    assert parts.repeats_in_program == 1  # overlaps of iterations are not seen


def test_of_many_lanes_that_all_differ_some_stand_for_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blocks, "MOST_ELEMENTS", 64)
    index = torch.arange(256) // 2
    report = profiled(gather, (8,), torch.randn(256), index, torch.empty(256), 256, BLOCK=32)
    load = site(report, "x")
    assert (load.distinct_in_programs, load.repeats_in_program, load.exact) == (256 // 2 * 4, 2, False)
