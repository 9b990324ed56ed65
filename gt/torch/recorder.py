"""Records the instructions that a graph of aten ops issues, without issuing them.

The graph runs once, on tensors of the device whose values belong to a `Recorder` instead of a client. So
views, in-place ops, casts and random ops become the same instructions as in eager mode.
"""

import itertools
import math
import re
from typing import Any

import torch

from gt.stream.instructions import Op
from gt.torch.buffers import Handle
from gt.torch.scopes import is_user_file


class NotRecordable(Exception):
    """A graph needs data while it is recorded, such as a number that it reads from a tensor."""


class Recorder:
    """Replaces the client while a graph is recorded."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.where: list[str] = []
        """For each op, the line of the user's code that issued it; empty if it is not known."""
        self.inputs: list[int] = []
        """The ids of the values from outside."""
        self.line = ""
        """The line of the user's code of the current node."""
        self.sites = _AnySite()
        self.next_id = itertools.count(1 << 61).__next__  # ids that no client has
        self.next_flush = math.inf
        self._known: set[int] = set()

    def input(self) -> Handle:
        """Add a value from outside."""
        number = self.next_id()
        self.inputs.append(number)
        self._known.add(number)
        return Handle(self, number)  # type: ignore[arg-type] - it has the attributes that a Handle uses

    def emit(self, instruction: Any) -> None:
        """Record an instruction. Values that are no longer referred to need not be freed."""
        if type(instruction) is not Op:
            return
        if not self._known.issuperset(instruction.inputs):
            raise NotRecordable("a tensor that is no input of the graph")
        self._known.add(instruction.result)
        self.ops.append(instruction)
        self.where.append(self.line)

    def create(self, *_: Any) -> int:
        """Refuse an upload: its data would be the same in all calls."""
        raise NotRecordable("data that is uploaded in the middle of the graph")

    def fetch(self, tensor: int) -> Any:
        """Refuse a read: a recording has no data."""
        raise NotRecordable("data that is read in the middle of the graph")


class _AnySite(dict[Any, int]):
    """The sites that kernels look up; a recording takes lines from the graph's nodes instead."""

    def get(self, key: Any, default: Any = None) -> int:
        """Site 0 for any frame."""
        return 0


_FRAME = re.compile(r'File "(.+?)", line (\d+)')


def line_of(node: torch.fx.Node) -> str:
    """The line of the user's code that a node comes from, as `file:line`; empty if it is not known."""
    for file, line in reversed(_FRAME.findall(node.stack_trace or "")):
        if is_user_file(file):
            return f"{file}:{line}"
    return ""
