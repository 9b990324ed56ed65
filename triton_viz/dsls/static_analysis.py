"""The result of `DSL.analyze`: for each access of a kernel, whether it stays inside its tensor."""

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Literal

from triton_viz.core.call_path import Columns
from triton_viz.core.data import Program, Site

NEVER = "it never happens"
"""The reason of the verdict ok for an access that no program executes."""
FLAGS = ("outside_view", "overflow", "misaligned")
"""Further violations that a verdict may have, each with a witness."""
Decision = Literal["ok", "violation", "concrete", "undecided"]


@dataclasses.dataclass(frozen=True)
class Witness:
    """An element of one program's access that shows a violation."""

    program: Program
    iterations: tuple[tuple[int, int], ...]
    """For each loop around it, outermost first: the loop's line, and which iteration."""
    index: tuple[int, ...]
    """Which element of the block."""
    address: int
    """The first byte that is touched."""
    tensor: str = ""
    """The name of the tensor that the pointer was derived from."""


@dataclasses.dataclass(frozen=True)
class AccessVerdict:
    """An access at one line of source, of all programs and all iterations that execute it."""

    call_path: tuple[Site, ...]
    """The kernel's own line first, then the functions it called; empty for a descriptor made on the host."""
    kind: str
    """load, store, atomic; or descriptor: all that one describes."""
    loops: tuple[tuple[int, int | None], ...]
    """For each loop around it: the line, and the iteration; None if this stands for all of them."""
    verdict: Decision
    """ok: proved. violation: `witness` shows it. concrete: it depends on data. undecided: unknown."""
    reason: str = ""
    """Why it is concrete or undecided."""
    tensor: str = ""
    """The name of the tensor whose pointer it is, or of each that it may be; empty if that is not clear."""
    witness: Witness | None = None
    """Of a violation: an element outside of the memory that the tensor is a view of."""
    outside_view: Witness | None = None
    """An element that is inside of that memory, but none of the tensor's own elements."""
    overflow: Witness | None = None
    """An element whose address was computed with a signed number that wrapped around."""
    misaligned: Witness | None = None
    """An element whose address is no multiple of its size from the tensor's first."""
    may_wrap: bool = False
    """Whether its address is computed with a signed number that may wrap around, depending on data."""
    width: int = 1
    """Bytes of one element."""
    shape: tuple[int, ...] = ()
    """The block's."""
    masked: bool = False
    """Whether it has a mask."""
    through_descriptor: bool = False
    """Whether its pointers come from a tensor descriptor or a block pointer."""
    columns: Columns = ()
    """Which of the accesses of a line."""
    describe: Callable[[], str] | None = dataclasses.field(default=None, repr=False, compare=False)
    """Gives `expression`, which is computed on first use."""

    @cached_property
    def expression(self) -> str:
        """The address in the user's names: a line for the expression, and one for each variable in it."""
        return "" if self.describe is None else self.describe()


@dataclasses.dataclass(frozen=True)
class Analysis:
    """All accesses that were found, in program order."""

    accesses: tuple[AccessVerdict, ...]
    complete: bool
    """Whether these are all that the kernel has: False if the analysis had to stop early."""
    reason: str = ""
    """Why it had to stop."""

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
        """Those that have to be checked on real data."""
        return tuple(access for access in self.accesses if access.verdict in ("concrete", "undecided"))
