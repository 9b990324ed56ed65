"""An entry of the catalogue: a small kernel, what it is launched with, and the bug that was planted in it."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

MARKER = "# BUG"
Program = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Bug:
    """The kind of a bug, its lines (which the source marks) and its programs."""

    kind: str
    tensor: str
    programs: tuple[Program, ...]
    """All that show it; of a race, all that take part."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A kernel with one bug, or a similar kernel without a bug."""

    name: str
    kernel: Any
    arguments: Callable[[], dict[str, Any]]
    """Fresh arguments; those that begin with an underscore only keep memory alive."""
    grid: tuple[int, ...]
    bug: Bug | None = None
    helper: Any = None
    """The function that the kernel calls and that the mark is in, if it is not in the kernel."""

    @property
    def lines(self) -> set[int]:
        """The marked lines, as numbers in the file."""
        text, first = inspect.getsourcelines((self.helper or self.kernel).fn)
        return {first + n for n, line in enumerate(text) if MARKER in line}


def first_axis(*numbers: int) -> tuple[Program, ...]:
    """Programs of a grid with one axis."""
    return tuple((n, 0, 0) for n in numbers)


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Those that are the kernel's."""
    return {name: value for name, value in arguments.items() if not name.startswith("_")}
