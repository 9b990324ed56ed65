"""From records to what the page draws of one program."""

import itertools
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from triton_viz.clients.profiler.data import Advice, KernelProfile, SiteProfile
from triton_viz.clients.sanitizer.data import Verdict
from triton_viz.core.chip import ChipProfile, Instruction
from triton_viz.core.columns import Numbers, Places
from triton_viz.core.data import Access, Dot, Issue, Launch, Load, Op, Program, SbufEvent, Store, TensorInfo
from triton_viz.visualizer.flow import Tiles, tiles_by_buffer
from triton_viz.visualizer.payloads import AccessPayload, DotPayload, OpPayload, SitePayload

ABOUT_THE_LAUNCH = (Issue, Verdict, SiteProfile, KernelProfile, Advice, SbufEvent, ChipProfile)
"""Records that say something of a launch, and are no op that a program executed."""

_COMMON = {"programs", "call_path", "iterations", "places", "values"}


def is_op(record: Op) -> bool:
    """Whether a record is something that programs did."""
    return not isinstance(record, ABOUT_THE_LAUNCH)


def uuid_of(launch: Launch, number: int, program: Program) -> str:
    """The name of one program's part of a record. It stays the same while the launch is in memory."""
    return f"{launch.id}-{number}-{'.'.join(str(index) for index in program)}"


Place = tuple[int, Op, int]
"""An op of one program: the number of the record, the record, and the program's lane."""


def places_in(launch: Launch, program: Program) -> list[Place]:
    """A program's ops in the order they happened.

    An instruction whose doing is recorded too is told with what it did, and is no op of its own.
    """
    return _told(_executed(launch, program))


def _executed(launch: Launch, program: Program) -> list[Place]:
    return [
        (number, record, lane)
        for number, record in enumerate(launch.records)
        if is_op(record) and (lane := record.programs.lane(program)) is not None
    ]


def _told(executed: list[Place]) -> list[Place]:
    return [
        place
        for place, after in itertools.zip_longest(executed, executed[1:])
        if not isinstance(place[1], Instruction) or after is None or isinstance(after[1], Instruction)
    ]


def _engines(executed: list[Place]) -> dict[int, dict[str, Any]]:
    """The instruction that each op is part of, as fields for the page, by the number of its record."""
    found: dict[int, dict[str, Any]] = {}
    current = None
    for number, record, _ in executed:
        if isinstance(record, Instruction):
            current = {
                "instruction": record.name,
                "engine": record.engine,
                "time": record.number,
                "buffers_read": record.buffers_read,
                "buffers_written": record.buffers_written,
            }
        if current is not None:
            found[number] = current
    return found


def events_in(launch: Launch, program: Program) -> list[SbufEvent]:
    """A program's buffers on the chip, in the order they were allocated."""
    return [
        record
        for record in launch.records
        if isinstance(record, SbufEvent) and record.programs.lane(program) is not None
    ]


def collect_launch(launch: Launch, program: Program) -> list[tuple[str, Op]]:
    """One program's ops in the order they happened, each with an id that stays the same."""
    return [
        (uuid_of(launch, number, program), record.of_lane(lane))
        for number, record, lane in places_in(launch, program)
    ]


class Paths:
    """Call paths, each kept once: most ops of a program are on a handful of lines."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, op: Op) -> int:
        """Which path an op is on."""
        return self._numbers.setdefault(op.call_path, len(self._numbers))

    def payload(self) -> list[list[SitePayload]]:
        """All paths, by number."""
        return [
            [SitePayload(file=Path(s.file).name, line=s.line, function=s.function) for s in path]
            for path in self._numbers
        ]


def get_visualization_data(
    launch: Launch,
    program: Program,
    first: int = 0,
    count: int | None = None,
    paths: Paths | None = None,
) -> list[AccessPayload | DotPayload | OpPayload]:
    """One payload per op of one program, or of `count` of its ops from `first` on."""
    paths = Paths() if paths is None else paths
    tensors = {tensor.name: tensor for tensor in launch.tensors}
    executed = _executed(launch, program)
    ops, engines = _told(executed), _engines(executed)
    last = len(ops) if count is None else min(len(ops), first + count)
    tiles = tiles_by_buffer(executed, events_in(launch, program)) if engines else {}
    payloads = [
        _payload(launch, ops, position, program, tensors, paths, tiles) for position in range(first, last)
    ]
    for payload, (number, _, _) in zip(payloads, ops[first:last], strict=True) if engines else ():
        payload.fields |= engines.get(number, {})
    return payloads


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
    tensor, touched, outside = _counts(op.places, lane, tensors)
    size = math.prod(op.places.shape)
    itemsize = tensors[tensor].itemsize if tensor in tensors else 0
    return AccessPayload(
        **common,
        tensor=tensor,
        block=op.places.shape,
        touched=touched - outside,
        masked=size - touched,
        outside=outside,
        bytes=touched * itemsize,
        operation=getattr(op, "operation", ""),
    )


def _fields(op: Op, lane: int) -> dict[str, Any]:
    """What a type has beyond what all have; of columns, this program's number."""
    found = {}
    for name in op.__struct_fields__:
        if name not in _COMMON:
            value = getattr(op, name)
            found[name] = value.at(lane) if isinstance(value, Numbers) else msgspec.to_builtins(value)
    return found


def _counts(places: Places, lane: int, tensors: dict[str, TensorInfo]) -> tuple[str, int, int]:
    """Of one program's access: the tensors' names, the elements touched, and those beside the tensor."""
    touched = touched_by(places, lane)
    if not touched or not places.tensors:
        return "", touched, 0
    if places.which is not None and places.which.ndim > 1:
        return ", ".join(places.at(lane).tensors), touched, 0
    name = name_at(places, lane)
    tensor = tensors.get(name)
    if tensor is None or _surely_inside(places, lane, tensor):
        return name, touched, 0
    positions = tensor.elements(places.elements(lane)[places.mask(lane)])
    return name, touched, int((positions < 0).sum())


def name_at(places: Places, lane: int) -> str:
    """The tensor that one program's block is in; the first, if its elements are in several."""
    if places.which is None or not places.tensors:
        return places.tensors[0] if places.tensors else ""
    which = places.which[lane if len(places.which) > 1 else 0]
    return places.tensors[int(which) if which.ndim == 0 else max(0, int(which.max()))]


def touched_by(places: Places, lane: int) -> int:
    """How many elements one program touched, without listing them where the mask is a box."""
    if places.bits is not None:
        return int(places.mask(lane).sum())
    count = math.prod(places.shape)
    for axis, bounds in enumerate(places.box.bounds if places.box is not None else ()):
        if bounds is not None:
            size = places.shape[axis]
            inside = min(bounds[1].at(lane), size) - max(bounds[0].at(lane), 0)
            count = count // size * max(inside, 0) if size else 0
    return count


def _surely_inside(places: Places, lane: int, tensor: TensorInfo) -> bool:
    """Whether a whole block lies in a tensor without gaps, by its corners alone."""
    if places.first is None or not is_packed(tensor):
        return False
    low = high = places.first.at(lane)
    for size, step in zip(places.shape, places.steps, strict=True):
        low, high = low + min(0, (size - 1) * step), high + max(0, (size - 1) * step)
    return low >= 0 and high < math.prod(tensor.shape)


def is_packed(tensor: TensorInfo) -> bool:
    """Whether an element's distance from the first is its position: row-major, without gaps."""
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _tiles_of(
    dot: Dot, ops: list[tuple[int, Op, int]], position: int
) -> tuple[int | None, int | None, int | None]:
    """The records that most likely are a dot's tiles: the nearest loads before it, the nearest store after.

    A trace does not follow values, so this goes by shapes, also transposed ones.
    """
    found: list[int | None] = [None, None]
    for back in range(position - 1, max(-1, position - 200), -1):
        number, op, _ = ops[back]
        if not isinstance(op, Load):
            continue
        # The right tile is usually loaded last, so of two equal shapes the nearest is the right one.
        for side, shape in ((1, dot.right), (0, dot.left)):
            if found[side] is None and op.places.shape in (shape, shape[::-1]):
                found[side] = number
                break
        if None not in found:
            break
    result = None
    for number, op, _ in ops[position + 1 : position + 2000]:
        if isinstance(op, Store) and op.places.shape in (dot.result, dot.result[::-1]):
            result = number
            break
    return found[0], found[1], result


def positions_of(op: Access, lane: int, tensor: TensorInfo, masked: bool = False) -> np.ndarray:
    """The positions in a tensor of what one program's access touched, or of what its mask switched off."""
    places = op.places
    mask = places.mask(lane)
    wanted = ~mask if masked else mask
    if places.which is not None:
        which = places.which[lane if len(places.which) > 1 else 0]
        wanted = wanted & (np.asarray(which) == places.tensors.index(tensor.name))
    positions = tensor.elements(places.elements(lane)[wanted])
    return positions[positions >= 0]
