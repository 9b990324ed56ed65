"""The result of `DSL.analyze`: for each access of a kernel, whether it stays inside its tensor."""

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Literal

from triton_viz.core.call_path import Columns
from triton_viz.core.data import Program, Site

NEVER = "it never happens"
"""The reason for the verdict "ok" of an access that no program executes."""
FLAGS = ("outside_view", "overflow", "misaligned")
"""Further violations that a verdict may have, each with a witness."""
Decision = Literal["ok", "violation", "concrete", "undecided"]


@dataclasses.dataclass(frozen=True)
class Witness:
    """An element of one program's access that shows a violation."""

    program: Program
    iterations: tuple[tuple[int, int], ...]
    """For each loop around it, outermost first: the loop's line and the iteration."""
    index: tuple[int, ...]
    """The index of the element in the block."""
    address: int
    """The address of the first accessed byte."""
    tensor: str = ""
    """The name of the tensor that the pointer was derived from."""


@dataclasses.dataclass(frozen=True)
class AccessVerdict:
    """The verdict on an access at one line of source, for all programs and iterations that execute it."""

    call_path: tuple[Site, ...]
    """The kernel's own line first, then the functions it called; empty for a descriptor made on the host."""
    kind: str
    """load, store, atomic, or descriptor (all elements that a descriptor describes)."""
    loops: tuple[tuple[int, int | None], ...]
    """For each loop around it: the line, and the iteration (None for all iterations)."""
    verdict: Decision
    """ok: proved. violation: see `witness`. concrete: depends on data. undecided: not decided."""
    reason: str = ""
    """The reason for "concrete" or "undecided"."""
    tensor: str = ""
    """The names of the tensors that the pointer may be derived from; empty if unknown."""
    witness: Witness | None = None
    """An element outside of the storage that the tensor is a view of."""
    outside_view: Witness | None = None
    """An element inside of that storage, at an address that is not of the tensor's elements."""
    overflow: Witness | None = None
    """An element whose address was computed with a signed integer that wrapped around."""
    misaligned: Witness | None = None
    """An element whose distance from the tensor's first is not a multiple of the element size."""
    may_wrap: bool = False
    """Whether the address depends on a signed integer that may wrap around, depending on data."""
    width: int = 1
    """The element size in bytes."""
    shape: tuple[int, ...] = ()
    """The shape of the block."""
    masked: bool = False
    """Whether it has a mask."""
    through_descriptor: bool = False
    """Whether its pointers come from a tensor descriptor or a block pointer."""
    columns: Columns = ()
    """Identifies the access among those of its line."""
    describe: Callable[[], str] | None = dataclasses.field(default=None, repr=False, compare=False)
    """Computes `expression` on first use."""

    @cached_property
    def expression(self) -> str:
        """The address in the names of the source: a line for the expression, and a line for each variable."""
        return "" if self.describe is None else self.describe()


@dataclasses.dataclass(frozen=True)
class Analysis:
    """The verdicts on all accesses that the analysis found, in program order."""

    accesses: tuple[AccessVerdict, ...]
    complete: bool
    """Whether these are all accesses of the kernel: False if the analysis stopped early."""
    reason: str = ""
    """Why it stopped early."""

    @property
    def proved(self) -> bool:
        """Whether every access of every program is proved to be in bounds."""
        return self.complete and all(access.verdict == "ok" for access in self.accesses)

    @property
    def violations(self) -> tuple[AccessVerdict, ...]:
        """The accesses with a violation."""
        return tuple(access for access in self.accesses if access.verdict == "violation")

    @property
    def open(self) -> tuple[AccessVerdict, ...]:
        """The accesses that have to be checked while the kernel runs."""
        return tuple(access for access in self.accesses if access.verdict in ("concrete", "undecided"))
