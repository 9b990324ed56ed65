"""Helpers that clients share: where in the user's kernel an op was called."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import triton

from triton_viz.core.data import Site

_OURS = str(Path(__file__).parents[1])
_TRITON = str(Path(triton.__file__).parent)


_site = functools.cache(Site)


def kernel_call_path(kernel: Callable) -> tuple[Site, ...]:
    """The lines of source being executed, from the kernel's own down to the deepest user function."""
    path = []
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_OURS, _TRITON)):
            path.append(_site(file, frame.f_lineno, frame.f_code.co_name))
        # The interpreter runs a rewritten copy of the kernel: same file, name and lines, other code object.
        if (file, frame.f_code.co_name) == (kernel.__code__.co_filename, kernel.__name__):
            break
        frame = frame.f_back
    return tuple(reversed(path))
