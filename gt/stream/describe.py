"""Instructions as text, for the tape and the debug output."""

from collections.abc import Mapping, Sequence
from typing import Any

from gt import logs
from gt.stream.instruction_table import INSTRUCTION_TABLE, WITH_DATA, EntryText
from gt.stream.instructions import LocalInstruction, Op
from gt.stream.repeats import COMPOUND, flat
from gt.stream.tape_entries import Injected, LayoutEvent, RepeatedLayoutEvents, UploadEntry

MAX_INJECTED = 10_000
"""The largest number of injected instructions of a chunk that are logged; of more, only the number is."""

MAX_TEXT = 1000
"""The largest number of characters in each field of an injected instruction's description."""

COMPOUND.add(RepeatedLayoutEvents)

Shown = LocalInstruction | UploadEntry | LayoutEvent | Injected
"""An entry of the tape."""


def without_data(instructions: Sequence[LocalInstruction]) -> "Sequence[LocalInstruction | UploadEntry]":
    """The instructions, with entries that hold no data in place of uploads."""
    if WITH_DATA.isdisjoint(map(type, instructions)):
        return instructions
    return [_without_data(instruction) for instruction in instructions]


def _without_data(instruction: LocalInstruction) -> Any:
    replace = INSTRUCTION_TABLE[type(instruction)].without_data
    return instruction if replace is None else replace(instruction)


def injected(
    received: Sequence[LocalInstruction], passed_on: Sequence[LocalInstruction], prefix: str
) -> list[Injected]:
    """Descriptions of the instructions that modifiers added: issued, but not received."""
    known = {id(one) for one in received}
    freed = {one for one in received if type(one) is int}
    new = [one for one in passed_on if (one not in freed if type(one) is int else id(one) not in known)]
    found = [Injected(*map(_short, describe(_without_data(one), prefix))) for one in new[:MAX_INJECTED]]
    if len(new) > MAX_INJECTED:
        found.append(Injected("Injected", "", f"and {len(new) - MAX_INJECTED} more"))
    return found


def _short(text: str) -> str:
    return text[:MAX_TEXT].encode(errors="replace").decode()


def tensor_of(instruction: Shown) -> int:
    """The tensor that an entry is about: the first one it makes, or else reads; -1 if there is none."""
    row = INSTRUCTION_TABLE[type(instruction)]
    return next(iter(row.makes(instruction) or row.reads(instruction)), -1)


def describe(instruction: Shown, prefix: str) -> EntryText:
    """The name of an entry on the tape, the tensor it is about, and its other details."""
    return INSTRUCTION_TABLE[type(instruction)].describe(instruction, prefix)


def size_of(instruction: Shown) -> int:
    """The size of an entry in bytes: of its data if it has some, else of its encoding; 0 if it is not
    sent."""
    return INSTRUCTION_TABLE[type(instruction)].size(instruction)


def as_text(instruction: LocalInstruction, sites: Mapping[int, str] = {}) -> str:
    """One instruction as a line: `BinaryOp result=2 op=add left=0 right=1 at=train.py:12`."""
    words = (*describe(_without_data(instruction), ""), site_of(instruction, sites))
    return " ".join(part for part in words if part)


def site_of(instruction: Shown, sites: Mapping[int, str]) -> str:
    """The text of an op's site: its module and line; empty for other entries, or if the site is unknown."""
    return sites.get(instruction.site, "") if type(instruction) is Op else ""


def debug(
    layer: str,
    instructions: Sequence[LocalInstruction],
    prefix: str = "",
    sites: Mapping[int, str] = {},
) -> None:
    """Log a layer's instructions, if GT_DEBUG_<LAYER> is set.

    Called once a batch: looking up an environment variable costs more than executing a small op.
    """
    if logs.wants(layer):  # expanding repeats takes time
        logs.debug_all(layer, (prefix + as_text(instruction, sites) for instruction in flat(instructions)))
