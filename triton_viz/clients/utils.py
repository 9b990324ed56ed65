"""Helpers that clients share: where in the user's kernel an op was called."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import triton

from triton_viz.core.data import Site

_OURS = str(Path(__file__).parents[1])
_TRITON = str(Path(triton.__file__).parent)
_MOST_KNOWN = 10_000

_site = functools.cache(Site)
_codes: dict[int, tuple[CodeType, bool]] = {}
"""For code by its id (its hash is that of all its constants): itself, so that it stays, and whether it is the
user's."""
_paths: dict[tuple[int, ...], tuple[tuple[Site, ...], list[CodeType]]] = {}
"""The call path for each way through the code, and that code: while it is kept, its ids are nobody else's."""


Instruction = tuple[int, ...]
"""One op in the source, also where a line has several: comparable with others of the same launch only."""


def kernel_call_path(kernel: Callable) -> tuple[Site, ...]:
    """The lines of source being executed, from the kernel's own down to the deepest user function."""
    return kernel_instruction(kernel)[0]


def kernel_instruction(kernel: Callable) -> tuple[tuple[Site, ...], Instruction]:
    """The call path, and which instruction of its last line."""
    file, name = kernel.__code__.co_filename, kernel.__name__
    frames: list[FrameType] = []
    key: list[int] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        known = _codes.get(id(code))
        if known is None:
            known = _learn(code)
        if known[1]:
            frames.append(frame)
            key += (id(code), frame.f_lasti)
        # The interpreter runs a rewritten copy of the kernel: same file, name and lines, other code object.
        if code.co_name == name and code.co_filename == file:
            break
        frame = frame.f_back
    where = tuple(key)
    known_path = _paths.get(where)
    if known_path is None:
        sites = [_site(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in frames]
        known_path = _paths[where] = tuple(reversed(sites)), [f.f_code for f in frames]
    return known_path[0], where


def _learn(code: CodeType) -> tuple[CodeType, bool]:
    if len(_codes) > _MOST_KNOWN:
        _codes.clear()
        _paths.clear()
    known = _codes[id(code)] = code, not code.co_filename.startswith((_OURS, _TRITON))
    return known
