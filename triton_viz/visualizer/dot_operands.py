"""The operands of a product, on a chip whose instructions name their buffers.

The buffers of a program connect the load that filled a buffer with the product that reads it, and the
product, possibly through copies, with the store of its result. The operands are exact, not guessed.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from triton_viz.core.data import Dot, Load, Op, SbufEvent, Store, Transfer
from triton_viz.core.records.chip import Instruction

Tiles = tuple[int | None, int | None, int | None]
"""The record numbers of the load of the left tile, the load of the right tile, and the store of the
result."""


def tiles_by_buffer(executed: Sequence[tuple[int, Op, int]], events: Sequence[SbufEvent]) -> dict[int, Tiles]:
    """For each dot of a program, by its record number: the accesses of its tiles."""
    born: dict[int, list[int]] = defaultdict(list)
    for position, event in enumerate(events):
        born[event.start].append(position)
    assigned = assigned_in(events)
    filled: dict[int, set[int]] = defaultdict(set)
    """The loads whose elements are in each buffer."""
    from_dot: dict[int, set[int]] = defaultdict(set)
    """The dots whose results are in each buffer."""
    found: dict[int, list[int | None]] = {}
    for instruction, ops in _steps(executed):
        read = instruction.buffers_read
        # A result without a destination is the buffer whose lifetime begins with the instruction.
        written = {*instruction.buffers_written, *born[instruction.number]}
        written = {*written, *assigned.get(instruction.number, ())} - set(read)
        passed = set().union(*(from_dot[buffer] for buffer in read))
        for number, op in ops:
            if isinstance(op, Load | Transfer):
                size = math.prod(op.elements.shape if isinstance(op, Load) else op.shape)
                held = {number} if isinstance(op, Load) else set().union(*(filled[one] for one in read))
                for buffer in written:
                    # A value as large as the buffer replaces all of its contents.
                    whole = size == math.prod(events[buffer].shape)
                    filled[buffer] = held if whole else filled[buffer] | held
            elif isinstance(op, Dot):
                found[number] = [*(_only(filled[buffer]) for buffer in (*read, -1, -1)[:2]), None]
                passed.add(number)
            elif isinstance(op, Store):
                for dot in passed:
                    found[dot][2] = found[dot][2] if found[dot][2] is not None else number
        for buffer in written:
            from_dot[buffer] |= passed
    return {number: (tiles[0], tiles[1], tiles[2]) for number, tiles in found.items()}


def assigned_in(events: Sequence[SbufEvent]) -> dict[int, list[int]]:
    """For each instruction whose result was assigned to a buffer, by number, the indices of the buffers."""
    found: dict[int, list[int]] = defaultdict(list)
    for position, event in enumerate(events):
        for number in event.assigned:
            found[number].append(position)
    return dict(found)


def _only(numbers: set[int]) -> int | None:
    """The only access, or None: of several, it is not known which part of the buffer is read."""
    return next(iter(numbers)) if len(numbers) == 1 else None


def _steps(
    executed: Sequence[tuple[int, Op, int]],
) -> Iterator[tuple[Instruction, list[tuple[int, Op]]]]:
    """Each instruction with its ops."""
    current: Instruction | None = None
    ops: list[tuple[int, Op]] = []
    for number, op, _ in executed:
        if isinstance(op, Instruction):
            if current is not None:
                yield current, ops
            current, ops = op, []
        else:
            ops.append((number, op))
    if current is not None:
        yield current, ops
