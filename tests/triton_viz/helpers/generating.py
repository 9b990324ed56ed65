"""Helpers for generated kernels: the scope of a statement, and the conversion of text to a kernel."""

import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from hypothesis import strategies as st

PICK = """
@triton.jit
def pick(x, y):
    if x > y:
        return x - y
    for i in range(y & 3):
        x += i
        if x > 7:
            return x
    return x + y
"""
"""A function of two numbers for kernels to call, with returns in a branch and in a loop."""

_names = itertools.count()


class Scope(NamedTuple):
    """The scope of a generated statement."""

    depth: int
    """How many levels of statements may be nested in it."""
    in_loop: bool


Statements = Callable[[Scope], st.SearchStrategy[list[str]]]
"""One statement as lines, with nested statements."""


@st.composite
def bodies(draw: st.DrawFn, scope: Scope, statements: Statements) -> list[str]:
    """A block of statements."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statements(scope))
    return lines


def nested(
    scope: Scope, statements: Statements
) -> tuple[st.SearchStrategy[list[str]], st.SearchStrategy[list[str]]]:
    """The scopes inside of a branch and inside of a loop."""
    deeper = Scope(scope.depth - 1, scope.in_loop)
    return bodies(deeper, statements), bodies(deeper._replace(in_loop=True), statements)


def indented(lines: list[str]) -> list[str]:
    """The lines, indented."""
    return ["    " + line for line in lines]


def module_of(path: Path) -> ModuleType:
    """Load a file as a module that is not in sys.modules."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(text: str, folder: Path, name: str = "") -> ModuleType:
    """Load a text as a module with a file, from which Triton reads kernels."""
    path = folder / f"{name or f'kernel{next(_names)}'}.py"
    path.write_text(text)
    return module_of(path)
