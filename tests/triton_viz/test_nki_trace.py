"""Tracing NKI kernels: grids, decorators, clients, records, files, and the modules that stand in."""

import dataclasses
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from examples import nki_rms_norm
from tests.triton_viz.helpers.watching import Watch
from tests.triton_viz.nki_kernels import classic, modern
from triton_viz.clients import Profiler, RaceDetector, Sanitizer, Tracer
from triton_viz.clients.profiler.kernel_profile import Advice, KernelProfile, SiteProfile
from triton_viz.core.client import ForLoopCallbacks, OpCallbacks
from triton_viz.core.data import (
    Compute,
    Dot,
    Issue,
    Launch,
    Load,
    Op,
    Record,
    Reduce,
    SbufEvent,
    Store,
    Transfer,
)
from triton_viz.core.trace import NKITrace
from triton_viz.dsls.nki import Instruction, NeuronProfile, isa, language, summary
from triton_viz.errors import KernelError, SanitizerError, UnsupportedError
from triton_viz.visualizer.analysis import analyze_records
from triton_viz.visualizer.draw import get_visualization_data
from triton_viz.visualizer.payloads import AccessPayload

pytestmark = pytest.mark.usefixtures("no_launches")

nl: Any = language
nisa: Any = isa


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def traced(kernel: Any, *clients: Any) -> Any:
    return triton_viz.trace(clients or "tracer", backend="nki")(kernel)


def last() -> Launch:
    return triton_viz.launches[-1]


def of(kind: type[Record], launch: Launch | None = None) -> list[Any]:
    return [record for record in (launch or last()).records if type(record) is kind]


# --- ways to run a kernel ---


def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 2, 2)
    nl.store(out[rows, :], nl.load(x[rows, :]) * 2.0)
    return out


def test_a_plain_function_and_a_jitted_one_run_with_and_without_a_grid():
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for kernel in (traced(double), traced(classic.nki.jit(double)), traced(modern.nki.jit(double))):
        assert isinstance(kernel, NKITrace)
        np.testing.assert_array_equal(kernel(x), x * 2)
        np.testing.assert_array_equal(kernel[1](x), x * 2)
        np.testing.assert_array_equal(kernel[(1, 1)](x), x * 2)
    assert [launch.grid for launch in triton_viz.launches] == [(1, 1, 1)] * 9


def test_an_untraced_kernel_runs_and_leaves_nothing():
    np.testing.assert_array_equal(modern.nki.jit(double)[2](ones(4, 3)), 2 * ones(4, 3))
    np.testing.assert_array_equal(modern.nki.simulate(double)(ones(2, 3)), 2 * ones(2, 3))
    np.testing.assert_array_equal(classic.nki.simulate_kernel(double, ones(2, 3)), 2 * ones(2, 3))
    assert not triton_viz.launches


def test_programs_of_a_grid_share_what_is_in_shared_hbm():
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.testing.assert_array_equal(traced(double)[3](x), x * 2)
    (load,) = of(Load)
    assert load.programs.count == 3
    for program in last().programs():
        mine = load.at(program)
        np.testing.assert_array_equal(mine.offsets.reshape(-1), np.arange(8) + program[0] * 8)


def test_a_grid_has_axes_and_sizes_of_cores():
    def where(out):
        place = nl.program_id(0) * nl.num_programs(1) + nl.program_id(1)
        tile = nl.full((1, 1), float(place), dtype=nl.float32)
        nl.store(out[nl.ds(place, 1), :], tile)
        assert (nl.program_ndim(), nl.num_programs()) == (2, 6)

    out = np.zeros((6, 1), np.float32)
    traced(where)[nl.nc(2), nl.spmd_dim(3, 1)](out)
    np.testing.assert_array_equal(out[:, 0], np.arange(6))


def test_in_a_with_every_kernel_is_traced():
    with triton_viz.trace("tracer", backend="nki"):
        modern.softmax(ones(4, 4))
        classic.softmax(ones(4, 4))
    modern.softmax(ones(4, 4))
    assert [launch.kernel for launch in triton_viz.launches] == ["softmax", "softmax"]


def test_a_with_adds_its_clients_to_a_kernel_that_is_traced_anyway():
    kernel = traced(double)
    with triton_viz.trace(Profiler(), backend="nki"), triton_viz.trace("race_detector", backend="triton"):
        np.testing.assert_array_equal(kernel[1](ones(2, 3)), 2 * ones(2, 3))
        np.testing.assert_array_equal(kernel.run(ones(2, 3), grid=(1,)), 2 * ones(2, 3))
    kernel(ones(2, 3))
    kinds = [{type(record) for record in launch.records} for launch in triton_viz.launches]
    assert KernelProfile in kinds[0]
    assert Load in kinds[0]
    assert kinds[0] == kinds[1]
    assert kinds[2] == kinds[0] - {KernelProfile, SiteProfile, Advice}


def reads_outside_and_fails(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[nl.ds(0, 2), :], nl.load(x[nl.ds(1, 2), :]))
    if nl.program_id(0) == 1:
        raise LookupError("no such row")
    return out


def test_a_failed_launch_is_kept_with_what_was_recorded_if_a_client_found_something_wrong():
    kernel = traced(reads_outside_and_fails, "tracer", "sanitizer")
    with pytest.raises(
        KernelError, match=r"kernel reads_outside_and_fails, program \(1, 0, 0\): LookupError"
    ):
        kernel[2](ones(2, 3))
    (launch,) = triton_viz.launches
    assert (launch.kernel, launch.grid) == ("reads_outside_and_fails", (2, 1, 1))
    assert [tensor.name for tensor in launch.tensors] == ["x", "out"]
    assert {type(r) for r in launch.records} >= {Issue, Load, Store, SbufEvent, NeuronProfile}
    assert of(Issue, launch)[0].tensor == "x"
    with pytest.raises(KernelError):
        traced(reads_outside_and_fails, "tracer")[2](ones(2, 3))
    assert len(triton_viz.launches) == 1, "as with Triton, a failure without a finding leaves nothing"


def test_a_sanitizer_that_aborts_leaves_its_launch():
    with pytest.raises(SanitizerError, match="out of bounds"):
        traced(reads_outside_and_fails, Sanitizer(abort_on_error=True))(ones(2, 3))
    (launch,) = triton_viz.launches
    assert of(Issue, launch)


def test_a_kernel_calls_functions_and_kernels():
    inner = modern.nki.jit(modern.load_tile)

    def outer(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in range(2):
            nl.store(out[nl.ds(i * 2, 2), :], inner(x, i * 2, 0, 2, 3))
        return out

    np.testing.assert_array_equal(traced(outer)(ones(4, 3)), ones(4, 3))
    loads = of(Load)
    assert [[site.function for site in load.call_path] for load in loads] == [["outer", "load_tile"]] * 2
    assert [load.iterations[0][1] for load in loads] == [0, 1]


def test_arguments_may_be_torch_tensors_tuples_dicts_and_dataclasses():
    @dataclasses.dataclass
    class Weights:
        scale: Any
        name: str = "weights"

    def kernel(pair, named, weights, factor):
        out = nl.ndarray(pair[0].shape, dtype=pair[0].dtype, buffer=nl.shared_hbm)
        total = nl.load(pair[0]) + nl.load(pair[1]) + nl.load(named["x"])
        nl.store(out, total * nl.load(weights.scale) * float(factor))
        return out, {"same": pair[0]}

    a = torch.ones(2, 3)
    out, extra = traced(kernel)((a, a), {"x": torch.full((2, 3), 2.0)}, Weights(torch.full((2, 3), 3.0)), 2)
    assert torch.equal(out, torch.full((2, 3), 24.0))
    assert extra["same"] is a
    assert {"pair[0]", "pair[1]", "named['x']", "weights.scale", "out"} <= {t.name for t in last().tensors}


def test_a_tensor_that_is_an_argument_can_be_written_to():
    def fill(out, value=3.0):
        nl.store(out, nl.full(out.shape, value, dtype=nl.float32))

    for out in (np.zeros((4, 4), np.float32), torch.zeros(4, 4)):
        assert traced(fill)(out) is None
        assert (out == 3).all()


# --- what clients hear ---


def test_clients_get_loads_transfers_products_and_reductions():
    kernel = traced(modern.attention, Tracer(arithmetic=True, values=True))
    kernel(ones(64, 128), ones(64, 128), ones(128, 64))
    assert {type(record) for record in last().records} >= {Load, Store, Transfer, Dot, Reduce, Compute}
    dot = of(Dot)[0]
    assert (dot.left, dot.right, dot.result, dot.dtype) == ((128, 64), (64, 128), (128, 128), "fp32")
    moved = {(transfer.source, transfer.destination) for transfer in of(Transfer)}
    assert moved == {("SBUF", "PSUM"), ("PSUM", "SBUF")}
    assert of(Load)[0].values.shape == (1, 64, 128)
    assert {"exp", "fsub"} <= {record.name for record in of(Compute)}


class Heard(Watch):
    """Notes what it is told, one program at a time, as a sanitizer would."""

    NAME: ClassVar[str] = "heard"

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        if op_type not in (Load, Store):
            return OpCallbacks()
        return OpCallbacks(before_callback=lambda **told: self.told.append((op_type.__name__, told)))

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        return ForLoopCallbacks(
            lambda line, count: self.told.append(("loop", count)),
            lambda line, index: self.told.append(("iteration", index)),
            lambda line: self.told.append(("end", None)),
        )

    def finalize(self) -> list[Op]:
        return []


def test_a_client_of_one_program_at_a_time_hears_tensor_offsets_and_mask():
    heard = Heard()
    traced(classic.softmax, heard)(ones(130, 4))
    kinds = [kind for kind, _ in heard.told]
    assert kinds == ["loop", *["iteration", "Load", "Store"] * 2, "end"]
    kind, load = heard.told[5]
    assert (kind, load["tensor"].name) == ("Load", "x")
    assert load["offsets"][0, 0] == 128 * 4
    assert load["mask"].sum() == 2 * 4


def test_a_client_hears_of_an_access_before_it_is_found_to_be_outside():
    heard = Heard()
    with pytest.raises(IndexError):
        traced(double, heard)[2](ones(3, 4))
    kind, load = heard.told[-1]
    assert kind == "Load"
    assert load["offsets"].max() == 15


def test_the_profiler_counts_bytes_and_flops():
    profiler = Profiler(device="Trainium2")
    traced(modern.matmul_tiled, profiler)(ones(256, 128), ones(256, 512))
    (report,) = profiler.report().launches
    assert report.loaded == (256 * 128 + 256 * 512) * 4
    assert report.stored == 128 * 512 * 4
    assert sum(work.flops for work in report.work if work.unit == "dot") == 2 * 128 * 256 * 512
    assert report.roofline.device == "Trainium2"
    assert {loop.trips_total for loop in report.loops} == {1, 2}
    traced(modern.matmul_tiled, "profiler")(ones(128, 128), ones(128, 512))
    assert of(KernelProfile)[0].report.roofline.device == "Trainium2"


def test_a_profile_has_bytes_per_memory_engines_and_intensity():
    traced(modern.matmul_tiled)(ones(256, 128), ones(256, 512))
    (profile,) = of(NeuronProfile)
    moves = {(move.source, move.destination): move.bytes for move in profile.moves}
    loaded, stored = (256 * 128 + 256 * 512) * 4, 128 * 512 * 4
    assert moves == {("HBM", "SBUF"): loaded, ("SBUF", "HBM"): stored, ("PSUM", "SBUF"): stored}
    engines = {work.engine: work for work in profile.engines}
    assert (engines["tensor"].instructions, engines["dma"].instructions) == (2, 5)
    assert engines["tensor"].flops == profile.flops == 2 * 128 * 256 * 512
    assert max(work.occupancy for work in profile.engines) == 1.0
    assert profile.intensity == profile.flops / (loaded + stored)
    memories = {memory.memory: memory for memory in profile.memories}
    assert memories["PSUM"].peak == 512 * 4
    assert memories["SBUF"].peak <= memories["SBUF"].capacity == 192 * 1024


def test_instructions_say_which_engine_ran_them_and_when():
    traced(modern.matmul_basic)(ones(128, 64), ones(128, 512))
    found = of(Instruction)
    assert [(one.name, one.engine, one.number) for one in found] == [
        ("dma_copy", "dma", 1),
        ("dma_copy", "dma", 2),
        ("nc_matmul", "tensor", 3),
        ("tensor_copy", "vector", 4),
        ("dma_copy", "dma", 5),
    ]
    product = found[2]
    assert (product.reads, product.writes) == (("left", "right"), ("product",))
    events = {event.name: event for event in of(SbufEvent)}
    assert (events["product"].start, events["product"].end) == (3, 4)


def test_masked_off_elements_are_not_counted_as_moved():
    traced(classic.softmax)(ones(100, 8))
    (profile,) = of(NeuronProfile)
    assert {move.bytes for move in profile.moves} == {100 * 8 * 4}
    assert {memory.memory: memory.read for memory in profile.memories}["HBM"] == 100 * 8 * 4


def test_the_race_detector_finds_programs_that_write_one_element():
    def clash(out):
        nl.store(out[0:1, :], nl.full((1, 4), float(nl.program_id(0)), dtype=nl.float32))

    traced(clash, RaceDetector())[2](np.zeros((1, 4), np.float32))
    (issue,) = of(Issue)
    assert (issue.kind, issue.tensor) == ("race", "out")


# --- buffers ---


def test_sbuf_events_say_where_how_large_and_how_long():
    def kernel(x):
        first = nl.load(x)
        second = nl.exp(first)
        third = nl.exp(second)
        nl.store(x, third)

    traced(kernel)(ones(128, 16))
    events = {event.name: event for event in of(SbufEvent)}
    assert list(events) == ["first", "second", "third"]
    line = kernel.__code__.co_firstlineno
    assert [event.call_path[-1].line - line for event in events.values()] == [1, 2, 3]
    assert [(event.start, event.end) for event in events.values()] == [(1, 2), (2, 3), (3, 4)]
    assert {event.bytes_per_partition for event in events.values()} == {64}
    (profile,) = of(NeuronProfile)
    assert {m.memory: m.peak for m in profile.memories}["SBUF"] == 128, "no three are in use at once"


def test_buffers_that_are_not_in_use_at_once_may_be_more_than_the_memory():
    def kernel(x):
        for _ in nl.affine_range(10):
            tile = nl.zeros((128, 20 * 1024), dtype=nl.float32)
            nl.store(x, tile[:, 0:1])

    traced(kernel)(ones(128, 1))
    assert len(of(SbufEvent)) == 10


def test_events_of_alike_programs_are_one_record():
    traced(double)[4](ones(8, 4))
    events = of(SbufEvent)
    assert [event.programs.count for event in events] == [4] * len(events)


def test_a_summary_says_it_in_words():
    traced(modern.matmul_basic)(ones(128, 64), ones(128, 512))
    said = summary(last())
    assert "matmul_basic on trn2: 8,388,608 flops, 425,984 bytes to and from HBM, 19.7 flops per byte" in said
    assert "PSUM  2,048 of 16,384 bytes of each partition in use at most" in said
    assert "product" in said
    assert "####" in said


# --- files and the page ---


def test_a_launch_survives_a_file(tmp_path: Path):
    traced(classic.tensor_add)[2, 1](ones(200, 40), ones(200, 40))
    before = last()
    triton_viz.save(tmp_path / "nki.tvz")
    triton_viz.load(tmp_path / "nki.tvz")
    assert last().records == before.records
    assert last().tensors == before.tensors


def test_the_page_gets_payloads():
    traced(classic.tensor_add)[2, 1](ones(200, 40), ones(200, 40))
    payloads = get_visualization_data(last(), (1, 0, 0)).visualization_data
    accesses = [payload for payload in payloads if isinstance(payload, AccessPayload)]
    assert [payload.type for payload in accesses] == ["Load", "Load", "Store"]
    assert [payload.outside for payload in accesses] == [0, 0, 0]
    assert accesses[0].touched == 72 * 40
    traffic = {(row.type, row.tensor): row.bytes for row in analyze_records(last(), last().records)}
    assert traffic["Load", "a"] == 200 * 40 * 4


# --- errors ---


def test_an_error_names_kernel_program_and_line():
    def kernel(x):
        if nl.program_id(0) == 1:
            raise ValueError("no")

    with pytest.raises(
        KernelError, match=r"test_nki_trace.py:\d+: kernel kernel, program \(1, 0, 0\): ValueError: no"
    ):
        traced(kernel)[2](ones(1, 1))


def test_what_is_no_kernel_is_refused():
    with pytest.raises(UnsupportedError, match="3 is no NKI kernel"):
        traced(3)
    with pytest.raises(UnsupportedError, match="no backend is called 'cuda': there are 'triton', 'nki'"):
        triton_viz.trace(backend="cuda")
    with pytest.raises(UnsupportedError, match="kernel double: missing a required argument: 'x'"):
        traced(double)()
    with pytest.raises(UnsupportedError, match="sizes are integers"):
        traced(double)["a"](ones(2, 2))


def test_a_tile_cannot_be_returned():
    with pytest.raises(KernelError, match="which is in SBUF: store it in a tensor in HBM"):
        traced(lambda x: nl.load(x))(ones(2, 2))


def test_another_target_has_other_limits(monkeypatch: pytest.MonkeyPatch):
    def kernel(x):
        tile = nl.zeros((128, 50 * 1024), dtype=nl.float32)
        nl.store(x, tile[:, 0:1])
        assert nisa.get_nc_version() >= nisa.nc_version.gen3
        return nisa.get_nc_version().name

    with pytest.raises(KernelError, match="SBUF has 196,608"):
        traced(kernel)(ones(128, 1))
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert traced(kernel)(ones(128, 1)) == "gen4"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(UnsupportedError, match="'trn9', and triton_viz knows trn1"):
        traced(kernel)(ones(128, 1))


# --- the modules that stand in ---


def test_the_example_runs_and_its_broken_form_says_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["nki_rms_norm"])
    nki_rms_norm.main()
    assert "rms_norm on trn2:" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["nki_rms_norm", "--broken"])
    with pytest.raises(
        KernelError, match=r"rms_norm, program \(2, 0, 0\): x, a tensor of shape \(256, 512\)"
    ):
        nki_rms_norm.main()
