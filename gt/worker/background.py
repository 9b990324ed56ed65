"""Computes in the background, so that the program it works for can go on meanwhile.

Python runs one thread at a time, but what a compiler made is no Python: while it computes, the user's program
may issue the next step. A Python thread would have to be given the interpreter to begin, which takes as long
as many a computation; so the thread is one of `background.cpp`, which the compiler's helper compiles.
"""

import ctypes
import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

from gt.worker.compiled_code import Loan

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
    """Runs one computation at a time."""

    def __init__(self, library: Path) -> None:
        self._library: Any = ctypes.CDLL(str(library))
        self._library.gt_background_new.restype = ctypes.c_void_p
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._library.gt_background_start.argtypes = [pointer, pointer, pointer, pointer, size, pointer, size]
        self._library.gt_background_start.restype = None
        self._library.gt_background_wait.argtypes = [pointer, ctypes.POINTER(ctypes.c_double)]
        self._process = 0
        self._thread: int | None = None
        self._loan: Loan | None = None

    def start(self, loan: Loan) -> None:
        """Begin a computation."""
        if self._process != os.getpid():  # a forked child has no thread but its own
            self._process = os.getpid()
            self._thread = self._library.gt_background_new()
            if self._thread is None:
                raise OSError("there is no thread to be had")
        self._loan = loan  # what it computes with must stay
        code = loan.code
        self._library.gt_background_start(
            self._thread, code.compute, code.container, loan.inputs, code.taken, loan.outputs, code.given
        )

    def wait(self) -> tuple[int, float]:
        """Wait for the end of the computation: the code it returned, and how many seconds it took."""
        seconds = ctypes.c_double()
        code = self._library.gt_background_wait(self._thread, ctypes.byref(seconds))
        self._loan = None
        return code, seconds.value
