"""Helpers that clients share: a record of the op that runs, and a place to keep records."""

import functools
import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import triton

from triton_viz.core import patch
from triton_viz.core.columns import Programs
from triton_viz.core.data import Op, Site
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.base import Here

R = TypeVar("R", bound=Op)

_OURS = str(Path(__file__).parents[1])
_TRITON = str(Path(triton.__file__).parent)
_CALL_CLIENTS = {patch.__file__, *(dsl.loops_file for dsl in OPERATION_REGISTRY.values())}
"""What calls a client's callbacks, which may be in any file."""
_MOST_KNOWN = 10_000

_site = functools.cache(Site)
_codes: dict[int, tuple[CodeType, bool | None]] = {}
"""For code by its id (its hash is that of all its constants): itself, so that it stays, and whether it is the
user's; None if it is what calls a client."""
_paths: dict[tuple[int, ...], tuple[tuple[Site, ...], "Columns", list[CodeType]]] = {}
"""The call path for each way through the code, and that code: while it is kept, its ids are nobody else's."""


Instruction = tuple[int, ...]
"""One op in the source, also where a line has several: comparable with others of the same launch only."""

Columns = tuple[tuple[int, int], ...]
"""For each line of a call path the columns of the call: with them, it is one op wherever it is executed."""


def here(backend: str | None = None) -> Here:
    """Where the op is that is being executed: of which kernel, by which programs, in which iterations."""
    return OPERATION_REGISTRY[backend or patch.running_backend()].here()


def record(kind: type[R], backend: str | None = None, **fields: Any) -> R:
    """A record of the op that is being executed, for a callback to make: who runs it, and where."""
    now = here(backend)
    path = kernel_call_path(now.kernel)
    return kind(programs=now.programs, call_path=path, iterations=now.iterations, **fields)


def kernel_call_path(kernel: Callable) -> tuple[Site, ...]:
    """The lines of source being executed, from the kernel's own down to the deepest user function."""
    return kernel_instruction(kernel)[0]


def kernel_instruction(kernel: Callable) -> tuple[tuple[Site, ...], Instruction]:
    """The call path, and which instruction of its last line."""
    path, _, instruction = _way(kernel)
    return path, instruction


def kernel_columns(kernel: Callable) -> tuple[tuple[Site, ...], Columns]:
    """The call path, and the columns of the calls in it."""
    return _way(kernel)[:2]


def _way(kernel: Callable) -> tuple[tuple[Site, ...], Columns, Instruction]:
    """The way through the user's code to the op that is being executed."""
    file, name = kernel.__code__.co_filename, kernel.__name__
    frames: list[FrameType] = []
    key: list[int] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        known = _codes.get(id(code))
        if known is None:
            known = _learn(code)
        if known[1] is None:  # so far these were lines of a client, not of the kernel
            frames.clear()
            key.clear()
        elif known[1]:
            frames.append(frame)
            key += (id(code), frame.f_lasti)
        # The interpreter runs a rewritten copy of the kernel: same file, name and lines, other code object.
        if code.co_name == name and code.co_filename == file:
            break
        frame = frame.f_back
    where = tuple(key)
    known_path = _paths.get(where)
    if known_path is None:
        frames.reverse()
        sites = tuple(_site(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in frames)
        known_path = _paths[where] = sites, tuple(map(_columns, frames)), [f.f_code for f in frames]
    return known_path[0], known_path[1], where


def _columns(frame: FrameType) -> tuple[int, int]:
    _, _, start, end = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    return start or 0, end or 0


def _learn(code: CodeType) -> tuple[CodeType, bool | None]:
    if len(_codes) > _MOST_KNOWN:
        _codes.clear()
        _paths.clear()
    file = code.co_filename
    users = None if file in _CALL_CLIENTS else not file.startswith((_OURS, _TRITON))
    known = _codes[id(code)] = code, users
    return known


class ChunkRecords:
    """Keeps the records of a launch by chunk, for a vectorized client: its callbacks come from any thread."""

    def __init__(self) -> None:
        self._chunks: list[tuple[int, list[Op]]] = []
        self._mine = threading.local()

    def begin(self, programs: Programs) -> None:
        """These programs run next on this thread."""
        self._mine.records = []
        self._chunks.append((programs.order.at(0), self._mine.records))

    def add(self, record: Op) -> None:
        """One more record of those programs."""
        self._mine.records.append(record)

    def discard(self) -> None:
        """Forget the records of those programs: they run again."""
        self._mine.records.clear()

    def chunks(self) -> list[list[Op]]:
        """The records of each chunk that has any, in the order of programs."""
        ordered = sorted(self._chunks, key=lambda chunk: chunk[0])
        return [records for _, records in ordered if records]
