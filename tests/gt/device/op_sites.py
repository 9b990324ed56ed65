"""The module and the line of each op on the tape."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import gt
import gt.torch
from gt.inspect.tape import Tape, read_tape

DEVICE = "tapestry"


class OpSite(NamedTuple):
    """An op, and the module, phase and line that issued it."""

    op: str
    module: str
    phase: str
    line: int


def op_sites(tape: Tape) -> list[OpSite]:
    """The ops of a tape with their sites, in the order that they were sent to workers."""
    return [
        OpSite(span.label, span.module, span.phase, int(span.line.rpartition(":")[2] or 0))
        for span in tape.spans
        if span.is_op
    ]


def sites_of(run: Callable[[], Any]) -> list[OpSite]:
    """The ops that a function issues, with their sites."""
    before = len(op_sites(read_tape(gt.debug.get_instruction_tape())))
    kept = run()  # not freed before the tape is read
    found = op_sites(read_tape(gt.debug.get_instruction_tape()))[before:]
    del kept
    return found


def line(mark: str, text: str) -> int:
    """The number of the line of a text that ends with `mark`."""
    lines = text.splitlines()
    (found,) = [number for number, one in enumerate(lines, 1) if one.endswith(mark)]
    return found


def modules(found: list[OpSite]) -> set[tuple[str, str]]:
    """The modules, each with the phase."""
    return {(one.module, one.phase) for one in found}


def x(*size: int) -> torch.Tensor:
    """A tensor of the device, which is on the tape once it is read."""
    made = torch.ones(*size).to(DEVICE)
    made.cpu()
    return made
