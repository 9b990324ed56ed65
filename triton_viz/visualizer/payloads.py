"""The payloads that the server sends to the page.

`python -m tools.page_types` generates frontend/src/payloads/ from these structs, and a test compares both.
frontend/GLOSSARY.md describes the fields.
"""

from typing import Any

import msgspec

from triton_viz.clients.profiler.kernel_profile import KernelReport
from triton_viz.core.records.chip import EngineWork, MemoryUse, Move
from triton_viz.core.records.columns import Program


class LaunchSummary(msgspec.Struct, kw_only=True):
    """A launch, for the list of launches."""

    id: int
    kernel: str
    grid: Program
    records: int
    issues: int
    profiled: bool
    values: bool


class LaunchList(msgspec.Struct, kw_only=True):
    """Every launch, oldest first."""

    launches: list[LaunchSummary]
    tape: bool


class SourcePayload(msgspec.Struct, kw_only=True):
    """The kernel's source; `first_line` is the number of `lines[0]` in its file."""

    file: str
    first_line: int
    lines: list[str]


class TensorPayload(msgspec.Struct, kw_only=True):
    """A tensor argument of the launch."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    address: int
    itemsize: int


class SitePayload(msgspec.Struct, kw_only=True):
    """A line of source, by its file's name without the folder."""

    file: str
    line: int
    function: str


class OpPayload(msgspec.Struct, kw_only=True):
    """The fields of every op. `fields` has those of its type, for the type's renderer."""

    uuid: str
    type: str
    line: int
    path: int
    iterations: list[tuple[int, int]]
    fields: dict[str, Any] = {}


class AccessPayload(OpPayload, kw_only=True):
    """A load, a store or an atomic. The tiles of its tensor show the accessed elements."""

    tensor: str
    block: tuple[int, ...]
    touched: int
    masked: int
    outside: int
    bytes: int
    operation: str = ""


class DotPayload(OpPayload, kw_only=True):
    """A product of two tiles, and the most likely accesses of these tiles; empty if there are none."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    result: tuple[int, ...]
    dtype: str
    left_op: str
    right_op: str
    result_op: str


class ProgramData(msgspec.Struct, kw_only=True):
    """One program of one launch: the first request of the page."""

    launch: LaunchSummary
    program: Program
    source: SourcePayload
    tensors: list[TensorPayload]
    paths: list[list[SitePayload]]
    visualization_data: list[AccessPayload | DotPayload | OpPayload]
    first: int
    total: int
    sbuf: int


class SbufBuffer(msgspec.Struct, kw_only=True):
    """A buffer on the chip, from the first instruction of its program that uses it to the last."""

    memory: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    partitions: int
    bytes_per_partition: int
    start: int
    end: int
    path: list[SitePayload]
    iterations: list[tuple[int, int]]


class SbufMemory(msgspec.Struct, kw_only=True):
    """A memory on the chip, in bytes of each partition."""

    memory: str
    capacity: int
    peak: int
    peak_at: int


class SbufTimeline(msgspec.Struct, kw_only=True):
    """How one program used the memories on the chip."""

    memories: list[SbufMemory]
    events: list[SbufBuffer]
    total: int
    instructions: int


class Traffic(msgspec.Struct, kw_only=True):
    """Bytes that all programs moved between one tensor and the kernel."""

    type: str
    tensor: str
    ops: int
    elements: int
    masked: int
    bytes: int


class TrafficTable(msgspec.Struct, kw_only=True):
    """The traffic of each tensor, separately for loads, stores and atomics, in order of first use."""

    analysis: list[Traffic]


class LineHeat(msgspec.Struct, kw_only=True):
    """Totals of all programs at one line of the kernel."""

    line: int
    ops: int
    bytes: int
    elements: int
    masked: int
    issues: int


class LineTable(msgspec.Struct, kw_only=True):
    """Each line that has ops or issues."""

    lines: list[LineHeat]


class CodeFrame(msgspec.Struct, kw_only=True):
    """One step of a call path, with the source around it."""

    file: str
    line: int
    function: str
    first_line: int
    lines: list[str]


class OpCode(msgspec.Struct, kw_only=True):
    """The source lines of an op, the kernel's line first."""

    uuid: str
    frames: list[CodeFrame]


class Histogram(msgspec.Struct, kw_only=True):
    """The distribution of values."""

    name: str
    counts: list[int]
    edges: list[float]
    elements: int
    nan: int
    infinite: int
    lowest: float | str | None
    highest: float | str | None
    mean: float | None


class BinaryLayer(msgspec.Struct, kw_only=True):
    """One array of a binary answer: a number for each cell, row by row."""

    name: str
    dtype: str
    low: float | None
    high: float | None


class BinaryHeader(msgspec.Struct, kw_only=True):
    """The header of a binary answer, before its arrays."""

    across: int
    down: int
    layers: list[BinaryLayer]


class Toucher(msgspec.Struct, kw_only=True):
    """An op of the program that has an element in its block."""

    uuid: str
    type: str
    line: int
    masked: bool


class ElementTip(msgspec.Struct, kw_only=True):
    """One element: its index, address, value, and the ops that have it in their blocks."""

    tensor: str
    index: list[int]
    element: int
    address: str
    value: float | int | bool | str | None
    touched_by: list[Toucher]


class IssuePayload(msgspec.Struct, kw_only=True):
    """A violation, with one program that shows it."""

    kind: str
    verdict: str
    message: str
    suggestion: str
    expression: str
    tensor: str
    index: list[int] | None
    element: int | None
    program: Program
    others: list[Program]
    line: int
    other_line: int
    op: str


class VerdictPayload(msgspec.Struct, kw_only=True):
    """The sanitizer's verdict for one access."""

    line: int
    access: str
    tensor: str
    verdict: str
    proof: str


class IssueList(msgspec.Struct, kw_only=True):
    """All issues of a launch, and the verdicts of accesses without one."""

    issues: list[IssuePayload]
    verdicts: list[VerdictPayload]
    checked: bool


class DeviceRoof(msgspec.Struct, kw_only=True):
    """The peak rates of the roofline's device."""

    name: str
    flops: float
    bandwidth: float


class ChipReport(msgspec.Struct, kw_only=True):
    """The work of each engine and memory of the chip, over all programs."""

    target: str
    engines: tuple[EngineWork, ...]
    moves: tuple[Move, ...]
    memories: tuple[MemoryUse, ...]
    flops: int
    hbm_bytes: int
    intensity: float
    bound: str
    seconds: float


class Profile(msgspec.Struct, kw_only=True):
    """The profiler's report; None if the launch was not profiled. `chip` is there if the backend counts."""

    report: KernelReport | None
    device: DeviceRoof | None
    chip: ChipReport | None


class TapeSlice(msgspec.Struct, kw_only=True):
    """A piece of GT's instruction log, whole lines only."""

    name: str
    text: str
    start: int
    end: int
    size: int
    live: bool = False


class ApiProblem(msgspec.Struct, kw_only=True):
    """The answer to a request that failed."""

    error: str


PAYLOADS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "server_payloads": (LaunchList, TapeSlice, ApiProblem),
    "program_payloads": (ProgramData, LineTable, OpCode),
    "memory_payloads": (SbufTimeline, TrafficTable, Histogram, BinaryHeader, ElementTip),
    "report_payloads": (IssueList, Profile),
}
"""The answers of endpoints, from which all other structs are found, by the file of their types: one for each
part of the page."""
