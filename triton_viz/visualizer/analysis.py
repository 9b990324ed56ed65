"""Tables of a launch: traffic by tensor, totals by line, issues, and the profile."""

from collections.abc import Iterable

import numpy as np

from triton_viz.clients.profiler.devices import find_device
from triton_viz.clients.profiler.kernel_profile import KernelProfile
from triton_viz.clients.sanitizer.verdict import Verdict
from triton_viz.core.data import Access, Issue, Launch, Op, Record
from triton_viz.core.records.chip import ChipProfile
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.errors import UnsupportedError
from triton_viz.visualizer.draw import newest_launch
from triton_viz.visualizer.payloads import (
    ChipReport,
    DeviceRoof,
    IssueList,
    IssuePayload,
    LineHeat,
    Profile,
    Traffic,
    VerdictPayload,
)
from triton_viz.visualizer.raw_tensor_data import uuid_of


def analyze_records(launch: Launch | None = None) -> list[Traffic]:
    """The traffic of each tensor of a launch, by default the newest, in order of first use.

    Loads, stores and atomics are counted separately.
    """
    launch = newest_launch() if launch is None else launch
    itemsize = {tensor.name: tensor.itemsize for tensor in launch.tensors}
    table: dict[tuple[str, str], Traffic] = {}
    for record in launch.records:
        if not isinstance(record, Access):
            continue
        kind = type(record).__name__
        for tensor, ops, elements, masked in _by_tensor(record):
            new = Traffic(type=kind, tensor=tensor, ops=0, elements=0, masked=0, bytes=0)
            row = table.setdefault((kind, tensor), new)
            row.ops += ops
            row.elements += elements
            row.masked += masked
            row.bytes += elements * itemsize.get(tensor, 0)
    return list(table.values())


def _by_tensor(record: Access) -> Iterable[tuple[str, int, int, int]]:
    """For each tensor of a record: the programs that accessed it, and the elements accessed and masked
    off."""
    positions = record.elements
    lanes = record.programs.lanes
    ran = np.ones(lanes, bool) if record.programs.active is None else record.programs.active
    size = int(np.prod(positions.shape, dtype=np.int64))
    touched = positions.touched(lanes)
    idle = ran & (touched == 0)
    if idle.any():
        yield "", int(idle.sum()), 0, int(idle.sum()) * size
    busy = ran & (touched > 0)
    if positions.which is None or positions.which.ndim > 1:
        if busy.any() and positions.tensors:
            if positions.which is None:
                count = int(touched[busy].sum())
                yield positions.tensors[0], int(busy.sum()), count, int(busy.sum()) * size - count
            else:
                which = np.broadcast_to(positions.which, (lanes, *positions.shape))[busy]
                for number, name in enumerate(positions.tensors):
                    if count := int((which == number).sum()):
                        yield name, int(busy.sum()), count, 0
        return
    which = np.broadcast_to(positions.which, (lanes,))
    for number, name in enumerate(positions.tensors):
        mine = busy & (which == number)
        if mine.any():
            count = int(touched[mine].sum())
            yield name, int(mine.sum()), count, int(mine.sum()) * size - count


def line_heat(launch: Launch) -> list[LineHeat]:
    """Totals of all programs for each line of the kernel, by line."""
    itemsize = {tensor.name: tensor.itemsize for tensor in launch.tensors}
    table: dict[int, LineHeat] = {}
    for record in launch.records:
        line = record.call_path[0].line if record.call_path else 0
        if not line or not isinstance(record, Op | Issue):
            continue
        row = table.setdefault(line, LineHeat(line=line, ops=0, bytes=0, elements=0, masked=0, issues=0))
        if isinstance(record, Issue):
            row.issues += 1
            continue
        row.ops += record.programs.count
        for tensor, _, elements, masked in _by_tensor(record) if isinstance(record, Access) else ():
            row.elements += elements
            row.masked += masked
            row.bytes += elements * itemsize.get(tensor, 0)
    return sorted(table.values(), key=lambda row: row.line)


def list_issues(launch: Launch) -> IssueList:
    """All issues of a launch, violations first, and the sanitizer's verdicts."""
    tensors = {tensor.name: tensor for tensor in launch.tensors}
    issues = [_issue(launch, record, tensors) for record in launch.records if isinstance(record, Issue)]
    issues.sort(key=lambda issue: issue.verdict != "violation")
    verdicts = [
        VerdictPayload(
            line=_line(record),
            access=record.access,
            tensor=record.tensor,
            verdict=record.verdict,
            proof=record.proof,
        )
        for record in launch.records
        if isinstance(record, Verdict)
    ]
    return IssueList(issues=issues, verdicts=verdicts, checked=bool(issues or verdicts or launch.checked_by))


def _issue(launch: Launch, issue: Issue, tensors: dict[str, TensorInfo]) -> IssuePayload:
    tensor, element = tensors.get(issue.tensor), None
    if tensor is not None and issue.offset is not None:
        position = int(tensor.elements(np.array([issue.offset]))[0])
        element = position if position >= 0 else None
    program = issue.programs.program(0)
    return IssuePayload(
        kind=issue.kind,
        verdict=issue.verdict,
        message=issue.message,
        suggestion=issue.suggestion,
        expression=issue.expression,
        tensor=issue.tensor,
        index=None if issue.index is None else list(issue.index),
        element=element,
        program=program,
        others=list(issue.others),
        line=_line(issue),
        other_line=issue.other_path[0].line if issue.other_path else 0,
        op=_op_of(launch, issue),
    )


def _line(record: Record) -> int:
    return record.call_path[0].line if record.call_path else 0


def _op_of(launch: Launch, issue: Issue) -> str:
    """The traced op of an issue: at the same line, and preferably of the same tensor."""
    program, best = issue.programs.program(0), ""
    for number, record in enumerate(launch.records):
        if not isinstance(record, Access) or record.call_path != issue.call_path:
            continue
        if record.programs.lane(program) is None:
            continue
        if issue.iterations and record.iterations != issue.iterations:
            continue
        if issue.tensor in record.elements.tensors or not record.elements.tensors:
            return uuid_of(launch, number, program)
        best = best or uuid_of(launch, number, program)
    return best


def profile_of(launch: Launch) -> Profile:
    """The profiler's report on a launch, the peak rates of its device, and the totals of its chip."""
    chip = next((_chip(record) for record in launch.records if isinstance(record, ChipProfile)), None)
    for record in launch.records:
        if isinstance(record, KernelProfile):
            roof = record.report.roofline
            try:
                bandwidth = find_device(roof.device).bandwidth
            except UnsupportedError:  # a `Device` of the user's
                bandwidth = roof.memory_bytes / roof.seconds if roof.seconds else 0.0
            device = DeviceRoof(name=roof.device, flops=roof.ridge * bandwidth, bandwidth=bandwidth)
            return Profile(report=record.report, device=device, chip=chip)
    return Profile(report=None, device=None, chip=chip)


def _chip(record: ChipProfile) -> ChipReport:
    return ChipReport(**{name: getattr(record, name) for name in ChipReport.__struct_fields__})
