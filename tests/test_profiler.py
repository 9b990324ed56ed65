"""The profiler: its numbers, against numbers worked out by hand."""

import json
from typing import Any

import msgspec
import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import triton_viz
from tests.corpus import CASES as CORPUS
from tests.corpus.case import Case, launched_with
from tests.profiled_kernels import (
    add,
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
from tests.programs import run_python
from triton_viz.clients import Profiler, Tracer
from triton_viz.clients.profiler import Device, Report
from triton_viz.clients.profiler.data import (
    Advice,
    Finding,
    KernelProfile,
    KernelReport,
    SiteProfile,
    SiteTraffic,
)
from triton_viz.core.config import cfg
from triton_viz.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")


def profiled(
    kernel: Any, grid: tuple[int, ...], *args: Any, profiler: Profiler | None = None, **constants: Any
):
    """The report of one launch, in the kernel's own numbers."""
    profiler = profiler or Profiler()
    triton_viz.trace(profiler)(kernel)[grid](*args, **constants)
    return profiler.report().launches[-1]


def site(report: KernelReport, tensor: str, kind: str = "load") -> SiteTraffic:
    (found,) = [one for one in report.sites if (one.tensor, one.kind) == (tensor, kind)]
    return found


def finding(report: KernelReport, kind: str, tensor: str = "") -> Finding:
    return next(f for f in report.findings if f.kind == kind and (not tensor or f.tensor == tensor))


def kinds(report: KernelReport) -> set[str]:
    return {found.kind for found in report.findings}


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
    assert "no order" in finding(report, "coalescing", "x").change


# --- what is read again ---


def test_a_row_that_all_programs_read_is_shared_by_them():
    x, weight, out = torch.randn(50, 64), torch.randn(64), torch.empty(50, 64)
    report = profiled(scale_rows, (50,), x, weight, out, 64, BLOCK=64)
    load = site(report, "weight")
    assert (load.bytes, load.distinct_bytes) == (50 * 256, 256)
    assert (load.repeats_in_program, load.repeats_across) == (1, 50)
    assert site(report, "x").repeats_across == 1
    assert "loaded by 50.0 programs" in finding(report, "sharing", "weight").message
    assert report.roofline.least_bytes == 2 * 50 * 256 + 256


def test_what_a_program_reads_in_every_iteration_is_read_again():
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


def test_a_reduction_by_a_function_of_the_kernel_counts_what_that_does():
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


def test_a_device_that_nobody_knows_is_an_error_that_names_those_we_do():
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


def test_a_sample_scales_what_all_programs_do_alike():
    x, y, out = torch.randn(6400), torch.randn(6400), torch.zeros(6400)
    report = profiled(add, (100,), x, y, out, 6400, BLOCK=64, profiler=Profiler(sample=10))
    assert (report.programs, report.ran) == (100, 10)
    assert (report.loaded, report.stored, report.flops) == (2 * 25600, 25600, 6400)
    assert (report.loaded_error, report.flops_error) == (0, 0)
    assert site(report, "x").distinct_bytes == 25600
    assert not site(report, "x").exact
    assert int((out != 0).sum()) == 10 * 64  # the others did not run


def test_a_sample_knows_what_programs_share():
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


# --- both modes, threads ---

CASES: dict[str, tuple[Any, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = {
    "add": (add, (5,), (torch.randn(300), torch.randn(300), torch.empty(300), 300), {"BLOCK": 64}),
    "softmax": (softmax, (7,), (torch.randn(7, 77), torch.empty(7, 77), 77), {"BLOCK": 128}),
    "passes": (softmax_in_passes, (3,), (torch.randn(3, 128), torch.empty(3, 128), 128), {"BLOCK": 32}),
    "matmul": (
        matmul,
        (2, 3),
        (torch.randn(32, 64), torch.randn(64, 48), torch.empty(32, 48), 32, 48, 64),
        {"TILE": 16},
    ),
    "histogram": (histogram, (4,), (torch.arange(200) % 7, torch.zeros(7).int(), 200), {"BLOCK": 64}),
    "triangle": (triangle, (6,), (torch.randn(6, 16), torch.empty(6, 16)), {"BLOCK": 16}),
    "windows": (windows, (5,), (torch.randn(6 * 32), torch.empty(5 * 32)), {"BLOCK": 32}),
    "odd": (odd_programs, (5,), (torch.randn(80), torch.zeros(80)), {"BLOCK": 16}),
    "gather": (
        gather,
        (3,),
        (torch.randn(90), torch.randint(0, 90, (90,)), torch.empty(90), 90),
        {"BLOCK": 32},
    ),
    "means": (means, (1,), (torch.randn(64), torch.empty(1)), {"BLOCK": 64}),
}


@pytest.mark.parametrize("setting", [("vectorized", False), ("num_sms", 3)], ids=["one by one", "threads"])
@pytest.mark.parametrize("case", CASES)
def test_modes_agree_on_every_number(case: str, setting: tuple[str, Any], monkeypatch: pytest.MonkeyPatch):
    kernel, grid, args, constants = CASES[case]
    together = profiled(kernel, grid, *args, **constants)
    monkeypatch.setattr(cfg, *setting)
    assert profiled(kernel, grid, *args, **constants) == together


@pytest.mark.filterwarnings("ignore:view is deprecated")
@pytest.mark.parametrize("case", CORPUS[::3], ids=lambda case: case.name)
def test_modes_agree_on_kernels_of_the_corpus(case: Case, monkeypatch: pytest.MonkeyPatch):
    def once() -> list[KernelReport]:
        profiler, arguments = Profiler(), case.fresh()
        triton_viz.trace(profiler)(case.kernel)[case.grid](**launched_with(arguments))
        # A number that only one program knows to be constant is folded there, as Python does.
        return [msgspec.structs.replace(one, integer_ops=0) for one in profiler.report().launches]

    together = once()
    monkeypatch.setattr(cfg, "vectorized", False)
    assert once() == together


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_tracer_element_by_element(case: str):
    kernel, grid, args, constants = CASES[case]
    report = profiled(kernel, grid, *args, **constants)
    triton_viz.trace(Tracer())(kernel)[grid](*args, **constants)
    launch = triton_viz.launches[-1]
    for traffic in report.sites:
        touched: dict[Any, list[int]] = {}
        masked = sectors = 0
        for program in launch.programs():
            for op in launch.at(program):
                if op.call_path != traffic.site or type(op).__name__.lower() != traffic.kind:
                    continue
                mask, offsets = op.mask.reshape(-1), op.offsets.reshape(-1)  # type: ignore[attr-defined]
                if op.tensor not in (traffic.tensor, ""):  # type: ignore[attr-defined]
                    continue
                masked += int((~mask).sum())
                touched.setdefault(program, []).extend(offsets[mask].tolist())
                if len(traffic.block) == 1:
                    for begin in range(0, len(mask), 32):
                        own = offsets[begin : begin + 32][mask[begin : begin + 32]]
                        sectors += len({int(o) * traffic_width(traffic) // 32 for o in own})
        width = traffic_width(traffic)
        assert traffic.elements == sum(map(len, touched.values()))
        assert traffic.masked_off == masked
        assert traffic.distinct_in_programs == sum(len(set(one)) for one in touched.values()) * width
        assert traffic.distinct_bytes == len({o for one in touched.values() for o in one}) * width
        if len(traffic.block) == 1:
            assert traffic.sectors == sectors


def traffic_width(traffic: SiteTraffic) -> int:
    return {"float32": 4, "int64": 8, "int32": 4}[traffic.dtype]


# --- results ---


def test_records_stand_in_the_launch_and_survive_a_file(tmp_path: Any):
    x, out = torch.randn(8, 585), torch.empty(8, 585)
    triton_viz.trace("profiler")(softmax)[(8,)](x, out, 585, BLOCK=1024)
    (launch,) = triton_viz.launches
    triton_viz.save(tmp_path / "profile.tvz")
    triton_viz.load(tmp_path / "profile.tvz")
    (loaded,) = triton_viz.launches
    assert loaded.records == launch.records
    assert {type(record) for record in loaded.records} == {SiteProfile, Advice, KernelProfile}
    assert loaded.records[-1].report.kernel == "softmax"  # type: ignore[attr-defined]


def test_finalize_gives_the_same_again_and_counts_a_launch_once():
    profiler = Profiler()
    x, y, out = torch.randn(64), torch.randn(64), torch.empty(64)
    triton_viz.trace(profiler)(add)[(1,)](x, y, out, 64, BLOCK=64)
    assert profiler.finalize() == triton_viz.launches[-1].records == profiler.finalize()
    assert len(profiler.report().launches) == 1
    profiler.clear()
    assert profiler.report().launches == ()


def test_a_launch_without_programs_has_nothing_to_report():
    profiler = Profiler()
    x = torch.randn(64)
    triton_viz.trace(profiler)(add)[(0,)](x, x, x, 64, BLOCK=64)
    assert profiler.report().launches == ()
    assert triton_viz.launches[-1].records == []


def test_a_report_is_json_and_back():
    profiler = Profiler()
    profiled(matmul, *CASES["matmul"][1:2], *CASES["matmul"][2], TILE=16, profiler=profiler)
    report = profiler.report()
    assert json.loads(report.to_json())["launches"][0]["kernel"] == "matmul"
    assert Report.from_json(report.to_json()) == report


def test_a_report_is_printed_as_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    profiler = Profiler(show=True, sample=4)
    x, out = torch.randn(8, 585), torch.empty(8, 585)
    profiled(softmax, (8,), x, out, 585, BLOCK=1024, profiler=profiler)
    shown = capsys.readouterr().out
    assert "grid (8, 1, 1), 8 programs" in shown
    assert "a sample of 4 programs" in shown
    assert "Loop over blocks of 128" in shown
    profiler.print_report()
    assert capsys.readouterr().out == shown


# --- the compiler ---


def compiled_for_hopper(source: ASTSource) -> Any:
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": True})


def test_what_the_compiler_made_of_a_line_is_part_of_the_report():
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(4)}
    source = ASTSource(
        add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}, aligned
    )
    compiled = compiled_for_hopper(source)
    profiler = Profiler()
    profiler.post_warmup_callback(add, compiled)
    x = torch.randn(1024)
    report = profiled(add, (1,), x, x.clone(), torch.empty(1024), 1024, BLOCK=1024, profiler=profiler)
    made = report.compiled
    assert made is not None
    assert (made.target, made.shared, made.warps) == ("cuda:90", 0, 4)
    line = next(one for one in made.lines if one.line == site(report, "x").site[0].line)
    assert sum("ld.global.v4" in text for text in line.ptx) == 4
    assert sum("st.global.v4" in text for text in line.ptx) == 2
    assert set(line.widths) == {16}
    assert sum("tt.load" in text for text in line.ttgir) == 2
    assert any("tt.store" in text for text in line.ttgir)
    assert "vector width" not in kinds(report)


def test_the_compiler_is_asked_only_if_there_is_a_target():
    assert not Profiler().pre_warmup_callback(add)
    assert Profiler(target="cuda:90").pre_warmup_callback(add)


def test_narrow_accesses_of_the_compiler_are_found():
    source = ASTSource(add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 2048})
    profiler = Profiler()
    profiler.post_warmup_callback(add, compiled_for_hopper(source))
    x = torch.randn(2048)
    report = profiled(add, (1,), x, x.clone(), torch.empty(2048), 2048, BLOCK=2048, profiler=profiler)
    assert "at most 4 bytes" in finding(report, "vector width", "x").message


# --- the command ---

PROGRAM = """
import sys
import torch, triton
import triton.language as tl

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

x = torch.ones(100)
double[(2,)](x, 100, BLOCK=64)
print("sum", x.sum().item(), sys.argv[1:])
if "fail" in sys.argv:
    sys.exit(3)
"""


def test_the_command_profiles_a_program_as_it_is(tmp_path: Any):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = tmp_path / "report.json"
    command = ("-m", "triton_viz.clients.profiler.cli", "--json", str(found))
    done = run_python(*command, str(tmp_path / "program.py"), "--flag", "a")
    assert "sum 200.0 ['--flag', 'a']" in done.stdout
    assert "double (program.py:6), grid (2, 1, 1)" in done.stdout
    (launch,) = Report.from_json(found.read_text()).launches
    assert (launch.loaded, launch.stored, launch.flops) == (400, 400, 128)


def test_the_command_runs_modules_and_hands_on_exit_codes(tmp_path: Any):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_python(
        *("-m", "triton_viz.clients.profiler.cli", "--device", "A100", "-m", "program", "fail"),
        cwd=tmp_path,
        fails=True,
        environment={"PYTHONPATH": str(triton_viz.__path__[0]).removesuffix("triton_viz")},
    )
    assert done.returncode == 3
    assert "on a A100" in done.stdout


def test_the_command_says_what_is_missing():
    done = run_python("-m", "triton_viz.clients.profiler.cli", fails=True)
    assert "Give a script, or -m and a module" in done.stderr
    done = run_python("-m", "triton_viz.clients.profiler.cli", "--device", "abacus", "x.py", fails=True)
    assert "no device is called 'abacus'" in done.stderr
