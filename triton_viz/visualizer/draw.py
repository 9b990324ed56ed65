"""Converts the records of one program to the payloads that the page draws."""

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from triton_viz.core.data import Access, Dot, Launch, Load, Op, Program, SbufEvent, Store
from triton_viz.core.records.chip import Instruction
from triton_viz.core.records.columns import AccessedElements, Numbers
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.core.trace import launches
from triton_viz.errors import UnsupportedError
from triton_viz.visualizer.dot_operands import Tiles, assigned_in, tiles_by_buffer
from triton_viz.visualizer.payloads import AccessPayload, DotPayload, OpPayload, SitePayload
from triton_viz.visualizer.raw_tensor_data import RawTensor, RawTensorsOf, uuid_of

_COMMON = {"programs", "call_path", "iterations", "elements", "values"}


ProgramOp = tuple[int, Op, int]
"""An op of one program: the number of the record, the record, and the program's lane."""


def collect_launch(launch: Launch | None = None, program: Program = (0, 0, 0)) -> list[ProgramOp]:
    """A program's ops in execution order, of the newest launch if none is given.

    The page shows exactly these ops. Left out are records that are not an `Op`, and instructions whose
    accesses and computations are recorded.
    """
    return _shown(_executed(newest_launch() if launch is None else launch, program))


def newest_launch() -> Launch:
    """The launch that is drawn if none is given; an UnsupportedError if there is none."""
    if not launches:
        raise UnsupportedError("no kernel was traced yet: there is no launch to draw")
    return launches[-1]


def _executed(launch: Launch, program: Program) -> list[ProgramOp]:
    return [
        (number, record, lane)
        for number, record in enumerate(launch.records)
        if isinstance(record, Op) and (lane := record.programs.lane(program)) is not None
    ]


def _shown(executed: list[ProgramOp]) -> list[ProgramOp]:
    return [
        entry
        for entry, after in itertools.zip_longest(executed, executed[1:])
        if not isinstance(entry[1], Instruction) or after is None or isinstance(after[1], Instruction)
    ]


def _engines(executed: list[ProgramOp], events: list[SbufEvent]) -> dict[int, dict[str, Any]]:
    """Fields with the instruction of each op, by the op's record number."""
    found: dict[int, dict[str, Any]] = {}
    current, assigned = None, assigned_in(events)
    for number, record, _ in executed:
        if isinstance(record, Instruction):
            current = {
                "instruction": record.name,
                "engine": record.engine,
                "time": record.number,
                "buffers_read": record.buffers_read,
                "buffers_written": (*record.buffers_written, *assigned.get(record.number, ())),
            }
        if current is not None:
            found[number] = current
    return found


def events_in(launch: Launch, program: Program) -> list[SbufEvent]:
    """A program's buffers on the chip, in the order of allocation."""
    return [
        record
        for record in launch.records
        if isinstance(record, SbufEvent) and record.programs.lane(program) is not None
    ]


class Paths:
    """A table of call paths, which most ops of a program share."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, op: Op) -> int:
        """The number of an op's call path."""
        return self._numbers.setdefault(op.call_path, len(self._numbers))

    def payload(self) -> list[list[SitePayload]]:
        """All call paths, by number."""
        return [
            [SitePayload(file=Path(s.file).name, line=s.line, function=s.function) for s in path]
            for path in self._numbers
        ]


class VisualizationData(NamedTuple):
    """The payload that the page draws for one program."""

    visualization_data: list[AccessPayload | DotPayload | OpPayload]
    """One payload per op."""
    raw_tensor_data: Mapping[str, RawTensor]
    """Elements, mask and values of the ops that touch tensors, by the uuid of their payload."""


def get_visualization_data(
    launch: Launch | None = None,
    program: Program = (0, 0, 0),
    first: int = 0,
    count: int | None = None,
    paths: Paths | None = None,
) -> VisualizationData:
    """The ops of one program, or `count` of them from `first` on; of the newest launch if none is given."""
    launch = newest_launch() if launch is None else launch
    paths = Paths() if paths is None else paths
    tensors = {tensor.name: tensor for tensor in launch.tensors}
    executed = _executed(launch, program)
    events = events_in(launch, program)
    ops, engines = _shown(executed), _engines(executed, events)
    last = len(ops) if count is None else min(len(ops), first + count)
    tiles = tiles_by_buffer(executed, events) if engines else {}
    payloads = [
        _payload(launch, ops, position, program, tensors, paths, tiles) for position in range(first, last)
    ]
    for payload, (number, _, _) in zip(payloads, ops[first:last], strict=True) if engines else ():
        payload.fields |= engines.get(number, {})
    accesses = [number for number, op, _ in ops[first:last] if isinstance(op, Access)]
    return VisualizationData(payloads, RawTensorsOf(launch, accesses, program))


def _payload(
    launch: Launch,
    ops: list[tuple[int, Op, int]],
    position: int,
    program: Program,
    tensors: dict[str, TensorInfo],
    paths: Paths,
    tiles: dict[int, Tiles],
) -> AccessPayload | DotPayload | OpPayload:
    number, op, lane = ops[position]
    common: dict[str, Any] = {
        "uuid": uuid_of(launch, number, program),
        "type": type(op).__name__,
        "line": op.call_path[0].line if op.call_path else 0,
        "path": paths.number(op),
        "iterations": list(op.iterations),
    }
    if isinstance(op, Dot):
        named = [
            "" if found is None else uuid_of(launch, found, program)
            for found in (tiles[number] if number in tiles else _tiles_of(op, ops, position))
        ]
        return DotPayload(
            **common,
            left=op.left,
            right=op.right,
            result=op.result,
            dtype=op.dtype,
            left_op=named[0],
            right_op=named[1],
            result_op=named[2],
        )
    if not isinstance(op, Access):
        return OpPayload(**common, fields=_fields(op, lane))
    tensor, touched, outside = _counts(op.elements, lane, tensors)
    size = math.prod(op.elements.shape)
    itemsize = tensors[tensor].itemsize if tensor in tensors else 0
    return AccessPayload(
        **common,
        tensor=tensor,
        block=op.elements.shape,
        touched=touched - outside,
        masked=size - touched,
        outside=outside,
        bytes=touched * itemsize,
        operation=getattr(op, "operation", ""),
    )


def _fields(op: Op, lane: int) -> dict[str, Any]:
    """The fields of a record besides the common ones, with this program's value of columns."""
    found = {}
    for name in op.__struct_fields__:
        if name not in _COMMON:
            value = getattr(op, name)
            found[name] = value.at(lane) if isinstance(value, Numbers) else msgspec.to_builtins(value)
    return found


def _counts(covered: AccessedElements, lane: int, tensors: dict[str, TensorInfo]) -> tuple[str, int, int]:
    """For one program's access: the names of the tensors, the accessed elements, and those out of bounds."""
    touched = covered.touched_by(lane)
    if not touched or not covered.tensors:
        return "", touched, 0
    if covered.which is not None and covered.which.ndim > 1:
        return ", ".join(covered.at(lane).tensors), touched, 0
    name = name_at(covered, lane)
    tensor = tensors.get(name)
    if tensor is None or _surely_inside(covered, lane, tensor):
        return name, touched, 0
    positions = tensor.elements(covered.elements(lane)[covered.mask(lane)])
    return name, touched, int((positions < 0).sum())


def name_at(covered: AccessedElements, lane: int) -> str:
    """The name of the tensor that one program accesses; of several tensors, the first."""
    if covered.which is None or not covered.tensors:
        return covered.tensors[0] if covered.tensors else ""
    which = covered.which[lane if len(covered.which) > 1 else 0]
    return covered.tensors[int(which) if which.ndim == 0 else max(0, int(which.max()))]


def _surely_inside(covered: AccessedElements, lane: int, tensor: TensorInfo) -> bool:
    """Whether a whole block is inside of a contiguous tensor, decided by the block's corners."""
    if covered.first is None or not tensor.is_contiguous:
        return False
    low = high = covered.first.at(lane)
    for size, step in zip(covered.shape, covered.steps, strict=True):
        low, high = low + min(0, (size - 1) * step), high + max(0, (size - 1) * step)
    return low >= 0 and high < math.prod(tensor.shape)


def _tiles_of(
    dot: Dot, ops: list[tuple[int, Op, int]], position: int
) -> tuple[int | None, int | None, int | None]:
    """The records that most likely are a dot's tiles: the nearest loads before it, the nearest store after.

    A trace does not track values, so the shapes (also transposed) decide.
    """
    found: list[int | None] = [None, None]
    for back in range(position - 1, max(-1, position - 200), -1):
        number, op, _ = ops[back]
        if not isinstance(op, Load):
            continue
        # The right tile is usually loaded last: of two loads with equal shapes, the nearer is the right tile.
        for side, shape in ((1, dot.right), (0, dot.left)):
            if found[side] is None and op.elements.shape in (shape, shape[::-1]):
                found[side] = number
                break
        if None not in found:
            break
    result = None
    for number, op, _ in ops[position + 1 : position + 2000]:
        if isinstance(op, Store) and op.elements.shape in (dot.result, dot.result[::-1]):
            result = number
            break
    return found[0], found[1], result


def positions_of(op: Access, lane: int, tensor: TensorInfo, masked: bool = False) -> np.ndarray:
    """The positions in a tensor that one program's access covers, or that its mask excludes (`masked`)."""
    covered = op.elements
    mask = covered.mask(lane)
    wanted = ~mask if masked else mask
    if covered.which is not None:
        which = covered.which[lane if len(covered.which) > 1 else 0]
        wanted = wanted & (np.asarray(which) == covered.tensors.index(tensor.name))
    positions = tensor.elements(covered.elements(lane)[wanted])
    return positions[positions >= 0]
