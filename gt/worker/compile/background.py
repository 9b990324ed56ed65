"""Computes in the background, so that the program it works for can go on meanwhile.

Python runs one thread at a time, but what a compiler made is no Python: while it computes, the user's program
may issue the next step. A Python thread would have to be given the interpreter to begin, which takes as long
as many a computation; so the thread is one of `background.cpp`, which the compiler's helper compiles. The
next computation is given to it before the first has ended, and begins by itself.
"""

import ctypes
import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

from gt.worker.compile.compiled_code import Invocation

SOURCE = Path(__file__).with_suffix(".cpp")


def library_in(folder: Path) -> Path:
    """Where what `build` makes is."""
    return folder / f"background-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.so"


def build(folder: Path, compiler: str) -> None:
    """Compile the thread, unless that was done before."""
    path = library_in(folder)
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}.so")
        command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*command, str(SOURCE), "-o", str(unfinished)], check=True, timeout=60)
        unfinished.replace(path)


class Background:
    """Runs one computation after the other; two may be under way."""

    def __init__(self, library: Path, threads: int) -> None:
        self._library: Any = ctypes.CDLL(str(library))
        self._threads = threads
        """How many may help with a computation."""
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._library.gt_background_new.argtypes = [pointer, ctypes.c_int]
        self._library.gt_background_new.restype = pointer
        call = [pointer, pointer, pointer, size, pointer, size]
        self._library.gt_background_start.argtypes = [pointer, *call, pointer, pointer, size, pointer]
        self._library.gt_background_start.restype = None
        self._library.gt_background_wait.argtypes = [pointer, ctypes.POINTER(ctypes.c_double)]
        self._process = 0
        self._thread: int | None = None

    def start(self, invocation: Invocation) -> None:
        """Begin a computation, once the one before it has ended. The invocation must be kept until then."""
        if self._process != os.getpid():  # a forked child has no thread but its own
            self._process = os.getpid()
            self._thread = self._library.gt_background_new(invocation.code.set_threads, self._threads)
            if self._thread is None:
                raise OSError("there is no thread to be had")
        code, before = invocation.code, invocation.before
        self._library.gt_background_start(
            self._thread,
            code.compute,
            code.container,
            invocation.inputs,
            code.taken,
            invocation.outputs,
            code.given,
            code.share,
            invocation.pending,
            len(invocation.pending) // 2,
            None if before is None else before.outputs,
        )

    def wait(self) -> tuple[int, float]:
        """Wait for the end of the oldest computation: the code it returned, and how many seconds it took."""
        seconds = ctypes.c_double()
        code = self._library.gt_background_wait(self._thread, ctypes.byref(seconds))
        return code, seconds.value
