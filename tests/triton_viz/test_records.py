"""Records and ops: every op is a record, but what was found out about a launch is no op."""

from typing import Any

import numpy as np
import pytest
import torch

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.helpers import kernels
from tests.triton_viz.nki_kernels import modern
from triton_viz.clients import Tracer
from triton_viz.clients.profiler.kernel_profile import Advice, KernelProfile, SiteProfile
from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.core.data import OPS, RECORDS, Issue, Launch, Load, Op, Record, SbufEvent
from triton_viz.core.records.chip import ChipProfile, Instruction
from triton_viz.dsls.nki import NeuronProfile
from triton_viz.visualizer.draw import collect_launch

pytestmark = pytest.mark.usefixtures("no_launches")


class Note(Record, frozen=True, tag=True, kw_only=True):
    """A finding of a user's client."""

    text: str


class Probe(Op, frozen=True, tag=True, kw_only=True):
    """An op of a user's client."""

    text: str


class Noting(Tracer):
    """A tracer that adds a finding and an op of its own to what it recorded."""

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
