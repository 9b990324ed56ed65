"""The call path of the op that is being executed, found by walking the stack."""

import functools
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

from triton_viz.core import patch
from triton_viz.core.data import Site
from triton_viz.dsls import OPERATION_REGISTRY, find_dsl
from triton_viz.dsls.base import Here

_OURS = str(Path(__file__).parents[1])
_MOST_KNOWN = 10_000

_site = functools.cache(Site)
_codes: dict[int, tuple[CodeType, bool | None]] = {}
"""By the id of a code object (hashing it would hash all its constants): the object itself, which keeps it
alive, and whether it is the user's; None if it calls clients."""
_paths: dict[tuple[int, ...], tuple[tuple[Site, ...], "Columns", list[CodeType]]] = {}
"""The call path for each chain of calls, and the code of the calls, so that its ids are not reused."""


Instruction = tuple[int, ...]
"""Identifies one op in the source, also if its line has several. Valid within one launch only."""

Columns = tuple[tuple[int, int], ...]
"""For each line of a call path, the columns of the call. Lines and columns together identify one op."""


def here() -> Here:
    """The kernel, the programs and the iterations of the op that is being executed."""
    return find_dsl(patch.running_backend()).here()


def kernel_call_path(kernel: Callable) -> tuple[Site, ...]:
    """The lines of source being executed, from the kernel's line to the innermost user function's."""
    return kernel_instruction(kernel)[0]


def kernel_instruction(kernel: Callable) -> tuple[tuple[Site, ...], Instruction]:
    """The call path, and which instruction of its last line."""
    path, _, instruction = _find(kernel)
    return path, instruction


def kernel_columns(kernel: Callable) -> tuple[tuple[Site, ...], Columns]:
    """The call path, and the columns of the calls in it."""
    return _find(kernel)[:2]


def _find(kernel: Callable) -> tuple[tuple[Site, ...], Columns, Instruction]:
    """The call path of the op that is being executed, the columns of its calls, and its instruction."""
    file, name = kernel.__code__.co_filename, kernel.__name__
    frames: list[FrameType] = []
    key: list[int] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        known = _codes.get(id(code))
        if known is None:
            known = _classify(code)
        # The interpreter runs a rewritten copy of the kernel: same file, name and lines, other code object.
        is_kernel = code.co_name == name and code.co_filename == file
        if known[1] is None:  # the frames so far belong to a client, not to the kernel
            frames.clear()
            key.clear()
        if known[1] or (known[1] is None and is_kernel):  # a kernel may be in the file of its language
            frames.append(frame)
            key += (id(code), frame.f_lasti)
        if is_kernel:
            break
        frame = frame.f_back
    instruction = tuple(key)
    known_path = _paths.get(instruction)
    if known_path is None:
        frames.reverse()
        sites = tuple(_site(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in frames)
        known_path = _paths[instruction] = sites, tuple(map(_columns, frames)), [f.f_code for f in frames]
    return known_path[0], known_path[1], instruction


def _columns(frame: FrameType) -> tuple[int, int]:
    _, _, start, end = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    return start or 0, end or 0


def _classify(code: CodeType) -> tuple[CodeType, bool | None]:
    """Whether code is the user's (None if it calls clients), as an entry of `_codes`."""
    if len(_codes) > _MOST_KNOWN:
        _codes.clear()
        _paths.clear()
    file = code.co_filename
    folders = [folder for dsl in OPERATION_REGISTRY.loaded() for folder in dsl.folders]
    # With a separator: `triton_kernels` beside `triton` is the user's.
    inside = tuple(f"{folder}{os.sep}" for folder in (_OURS, *folders))
    users = None if _calls_clients(file) else not file.startswith(inside)
    known = _codes[id(code)] = code, users
    return known


def _calls_clients(file: str) -> bool:
    """Whether functions of a file call a client's callbacks, which may be in any file."""
    return file == patch.__file__ or any(file == dsl.loops_file for dsl in OPERATION_REGISTRY.loaded())
