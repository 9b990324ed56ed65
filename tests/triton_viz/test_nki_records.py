"""NKI kernels and clients: callbacks, records, totals, buffers, trace files and the page."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.helpers.nki_launches import double, last, of, ones, traced
from tests.triton_viz.helpers.watching import Watch
from tests.triton_viz.nki_kernels import classic, modern
from triton_viz.clients import Profiler, RaceDetector, Tracer
from triton_viz.clients.profiler.kernel_profile import KernelProfile
from triton_viz.core.client import ForLoopCallbacks, OpCallbacks
from triton_viz.core.data import (
    Compute,
    Dot,
    Issue,
    Load,
    Op,
    Reduce,
    SbufEvent,
    Store,
    Transfer,
)
from triton_viz.dsls.nki import Instruction, NeuronProfile, isa, language, summary
from triton_viz.visualizer.analysis import analyze_records
from triton_viz.visualizer.draw import get_visualization_data
from triton_viz.visualizer.payloads import AccessPayload

pytestmark = pytest.mark.usefixtures("no_launches")
nl: Any = language
nisa: Any = isa


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
    """Records its callbacks, one program at a time, like a sanitizer."""

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


def test_a_client_of_one_program_at_a_time_receives_tensor_offsets_and_mask():
    heard = Heard()
    traced(classic.softmax, heard)(ones(130, 4))
    kinds = [kind for kind, _ in heard.told]
    assert kinds == ["loop", *["iteration", "Load", "Store"] * 2, "end"]
    kind, load = heard.told[5]
    assert (kind, load["tensor"].name) == ("Load", "x")
    assert load["offsets"][0, 0] == 128 * 4
    assert load["mask"].sum() == 2 * 4


def test_callbacks_before_an_access_are_called_before_its_check():
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
    traffic = {(row.type, row.tensor): row.bytes for row in analyze_records(last())}
    assert traffic["Load", "a"] == 200 * 40 * 4
