"""What kernels that hypothesis writes have in common: where a statement is, and how text becomes a kernel."""

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
    """Where a statement is."""

    depth: int
    """How deep others may be nested in it."""
    in_loop: bool


Statements = Callable[[Scope], st.SearchStrategy[list[str]]]
"""One statement as lines, which may hold others."""


@st.composite
def bodies(draw: st.DrawFn, scope: Scope, statements: Statements) -> list[str]:
    """Statements in a row."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statements(scope))
    return lines


def nested(
    scope: Scope, statements: Statements
) -> tuple[st.SearchStrategy[list[str]], st.SearchStrategy[list[str]]]:
    """What a branch in a scope holds, and what a loop does."""
    deeper = Scope(scope.depth - 1, scope.in_loop)
    return bodies(deeper, statements), bodies(deeper._replace(in_loop=True), statements)


def indented(lines: list[str]) -> list[str]:
    """The same, further to the right."""
    return ["    " + line for line in lines]


def module_of(path: Path) -> ModuleType:
    """A file as a module, which is not kept for others to import."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(text: str, folder: Path, name: str = "") -> ModuleType:
    """A text as a module that has a file, which is where Triton reads kernels."""
    path = folder / f"{name or f'kernel{next(_names)}'}.py"
    path.write_text(text)
    return module_of(path)
