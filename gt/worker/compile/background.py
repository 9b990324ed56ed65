"""Runs compiled calls in a native thread, so that the user's program can issue the next step meanwhile.

A Python thread would need the interpreter lock to start each call. A busy program releases the lock only
every 5 ms (`sys.getswitchinterval`), which is longer than most calls take. So the thread is written in C++
(`background.cpp`), which the compiler's helper process compiles. The next call is queued before the current
one has ended, and starts without Python.
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
    """The path of the library that `build` compiles."""
    return folder / f"background-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.so"


def build(folder: Path, compiler: str) -> None:
    """Compile the library, unless it exists."""
    path = library_in(folder)
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}.so")
        command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*command, str(SOURCE), "-o", str(unfinished)], check=True)
        unfinished.replace(path)


class Background:
    """A native thread that runs compiled calls in order. At most two may be queued."""

    def __init__(self, library: Path, threads: int) -> None:
        self._library: Any = ctypes.CDLL(str(library))
        self._threads = threads
        """The number of threads that a call may use."""
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
        """Queue a call. The invocation must be kept alive until `wait` has returned for it."""
        if self._process != os.getpid():  # a forked child does not have the thread
            self._process = os.getpid()
            self._thread = self._library.gt_background_new(invocation.code.set_threads, self._threads)
            if self._thread is None:
                raise OSError("a background thread could not be started")
        code, before = invocation.code, invocation.before
        self._library.gt_background_start(
            self._thread,
            code.compute,
            code.container,
            invocation.inputs,
            code.num_inputs,
            invocation.outputs,
            code.num_outputs,
            code.share,
            invocation.pending,
            len(invocation.pending) // 2,
            None if before is None else before.outputs,
        )

    def wait(self) -> tuple[int, float]:
        """Wait for the oldest call; returns its return code and its duration in seconds."""
        seconds = ctypes.c_double()
        code = self._library.gt_background_wait(self._thread, ctypes.byref(seconds))
        return code, seconds.value
