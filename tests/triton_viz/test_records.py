"""Records and ops: every op is a record, but a finding about a launch is not an op."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.helpers import kernels
from tests.triton_viz.helpers.generating import imported
from tests.triton_viz.nki_kernels import modern
from triton_viz.clients import Tracer
from triton_viz.clients.profiler.kernel_profile import Advice, KernelProfile, SiteProfile
from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.core.data import OPS, RECORDS, Atomic, Issue, Launch, Load, Op, Record, SbufEvent
from triton_viz.core.records.chip import ChipProfile, Instruction
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.nki import NeuronProfile
from triton_viz.executor import executor
from triton_viz.visualizer.draw import collect_launch

pytestmark = pytest.mark.usefixtures("no_launches")


class Note(Record, frozen=True, tag=True, kw_only=True):
    """A finding of a user's client."""

    text: str


class Probe(Op, frozen=True, tag=True, kw_only=True):
    """An op of a user's client."""

    text: str


class Noting(Tracer):
    """A tracer that adds a finding and an op to its records."""

    def finalize(self) -> list[Any]:
        records: list[Any] = super().finalize()
        first = records[0]
        own = {"programs": first.programs, "call_path": first.call_path}
        return [*records, Note(text="a finding", **own), Probe(text="an op", **own)]


def launch_add(*clients: Any) -> Launch:
    x, out = torch.ones(10), torch.zeros(10)
    triton_viz.trace(clients)(kernels.add)[(3,)](x, x.clone(), out, 10, BLOCK=4)
    return triton_viz.launches[-1]


def test_findings_are_records_and_no_ops():
    findings = {
        Issue,
        Verdict,
        KernelProfile,
        SiteProfile,
        Advice,
        SbufEvent,
        ChipProfile,
        NeuronProfile,
        Note,
    }
    assert findings <= set(RECORDS.values())
    assert not findings & set(OPS.values())
    assert not any(issubclass(kind, Op) for kind in findings)
    assert {Load, Instruction, Probe} <= set(OPS.values()) <= set(RECORDS.values())


def test_clients_that_find_something_out_do_not_change_how_many_ops_there_are():
    alone = launch_add("tracer").ops
    assert alone == 9, "two loads and a store in each of three programs"
    together = launch_add("tracer", "sanitizer", "profiler", "race_detector")
    assert {Verdict, KernelProfile} <= {type(record) for record in together.records}
    assert together.ops == alone
    assert launch_add("sanitizer").ops == launch_add("profiler").ops == 0


def test_issues_are_not_counted_as_ops():
    x = torch.zeros(10)
    triton_viz.trace(["tracer", "sanitizer"])(kernels.add)[(4,)](x, torch.zeros(5), x.clone(), 10, BLOCK=4)
    launch = triton_viz.launches[-1]
    assert any(isinstance(record, Issue) for record in launch.records)
    assert launch.ops == 12


def test_buffers_and_totals_of_a_chip_are_not_counted_as_ops():
    triton_viz.trace("tracer", backend="nki")(modern.softmax)(np.ones((4, 4), np.float32))
    launch = triton_viz.launches[-1]
    ops = [record for record in launch.records if not isinstance(record, SbufEvent | ChipProfile)]
    assert {SbufEvent, NeuronProfile} <= {type(record) for record in launch.records}
    assert launch.ops == len(ops)


def test_a_users_record_is_kept_and_saved_and_only_an_op_is_counted_and_drawn(tmp_path: Any):
    launch_add(Noting())
    triton_viz.save(tmp_path / "notes.tvz")
    triton_viz.load(tmp_path / "notes.tvz")
    (launch,) = triton_viz.launches
    assert [type(record).__name__ for record in launch.records][-2:] == ["Note", "Probe"]
    assert launch.ops == 12
    assert launch.records[-2].at((1, 0, 0)).text == "a finding"  # type: ignore[union-attr]
    drawn = [type(op).__name__ for _, op, _ in collect_launch(launch, (1, 0, 0))]
    assert drawn == ["Load", "Load", "Store", "Probe"]


@triton.jit
def two_operations_on_a_line(x, out):
    pid = tl.program_id(0)
    tl.store(out + pid, tl.atomic_add(x, 1) if pid < 4 else tl.atomic_max(x, 9))


@pytest.mark.parametrize("lanes", [4, 16])
def test_two_operations_on_one_line_are_two_records(lanes: int, monkeypatch: pytest.MonkeyPatch):
    """Also if each chunk of programs executed only one of them."""
    monkeypatch.setattr(executor, "FIRST_LANES", lanes)
    monkeypatch.setattr(executor, "MOST_LANES", lanes)
    x, out = torch.zeros(1, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    triton_viz.trace("tracer")(two_operations_on_a_line)[(8,)](x, out)
    assert out.tolist() == [0, 1, 2, 3, 4, 9, 9, 9]
    launch = triton_viz.launches[-1]
    for program in launch.programs():
        atomic = launch.at(program)[0]
        assert isinstance(atomic, Atomic)
        assert atomic.operation == ("add" if program[0] < 4 else "max")


def test_a_kernel_in_a_folder_whose_name_begins_like_the_languages_has_its_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """As `triton_kernels`, which is installed beside `triton`."""
    folder = tmp_path / "ours_and_more"
    folder.mkdir()
    dsl = OPERATION_REGISTRY["triton"]
    own = dataclasses.replace(dsl, folders=(*dsl.folders, str(tmp_path / "ours")))
    monkeypatch.setitem(OPERATION_REGISTRY, "triton", own)
    theirs = imported(Path(kernels.__file__).read_text(), folder, "their_kernels")
    triton_viz.trace("tracer")(theirs.row_norm)[(1,)](torch.ones(1, 4), torch.zeros(1), 4, BLOCK=4)
    paths = [[site.function for site in record.call_path] for record in triton_viz.launches[-1].records]
    assert paths[0] == ["row_norm", "load_row"]
    assert all(path[0] == "row_norm" for path in paths)
