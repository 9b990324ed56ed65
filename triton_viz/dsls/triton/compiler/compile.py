"""Compile a launch for a GPU that need not be present, to inspect the result."""

import dataclasses
import functools
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import JITFunction

from triton_viz.dsls.triton import compat
from triton_viz.dsls.triton.compiler import process as compiler_process
from triton_viz.dsls.triton.wrappers import Call
from triton_viz.errors import KernelError, UnsupportedError

_TIMEOUT = 600
"""Seconds that the compiler may take for one kernel."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A compiled kernel, for the types, constants and alignments of one launch."""

    target: str
    """The target, such as cuda:90."""
    asm: Mapping[str, str]
    """The kernel in each of the compiler's languages: ttir, ttgir, llir, and ptx or amdgcn."""
    shared: int
    """Bytes of shared memory a program takes."""
    registers: int | None
    """Registers a thread takes; None where Triton's tools do not say."""
    spills: int | None
    """Bytes of memory a thread takes for spilled registers."""


def compile_launch(kernel: Any, call: Call, target: str) -> Compiled:
    """Compile a kernel for the arguments and options of a launch, as Triton would before running it.

    Raises a KernelError if the compiler refuses the kernel, and an UnsupportedError if the launch cannot be
    sent to it or the target is unknown.
    """
    name = call.fn.__name__
    goal = parse_target(target)
    jit = kernel if isinstance(kernel, JITFunction) else JITFunction(call.fn, **getattr(kernel, "kwargs", {}))
    options, signature, constexprs, attrs = compat.specialize(
        jit, make_backend(goal), call.arguments, call.options
    )
    job = {
        "kernel": kernel,
        "signature": signature,
        "constexprs": constexprs,
        "attrs": attrs,
        "options": options,
        "target": (goal.backend, goal.arch, goal.warp_size),
    }
    try:
        request = compiler_process.packed(job)
    except compiler_process.NotSendable as error:
        raise UnsupportedError(f"kernel {name} cannot be compiled here: {error}") from error
    answer = _compile_in_child(request)
    if "error" in answer:
        where = f"{inspect.getfile(call.fn)}:{call.fn.__code__.co_firstlineno}"
        raise KernelError(f"{where}: kernel {name} does not compile for {target}: {answer['error']}")
    return Compiled(target=target, **answer["compiled"])


def parse_target(text: str) -> GPUTarget:
    """A target from its name: a backend and an architecture, such as cuda:90 or hip:gfx942."""
    backend, _, arch = text.partition(":")
    number = int(arch) if arch.isdecimal() else arch
    # A wavefront of AMD's RDNA GPUs has 32 threads, one of its CDNA GPUs 64.
    warp = 64 if backend == "hip" and not arch.startswith(("gfx10", "gfx11", "gfx12")) else 32
    target = GPUTarget(backend, number, warp)
    fits = isinstance(number, int) if backend == "cuda" else arch.startswith("gfx")
    if not fits or not any(b.compiler.supports_target(target) for b in backends.values()):
        raise UnsupportedError(f"no target is called {text!r}: cuda:90 and hip:gfx942 are two")
    return target


@functools.lru_cache(maxsize=64)
def _compile_in_child(request: bytes) -> dict[str, Any]:
    """The answer of the compiler's process, cached by the request: by kernel, types and target."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    environment["TRITON_VIZ_ENABLED"] = "0"  # a module with traced kernels gives plain ones
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "request"), Path(folder, "answer")
        asked.write_bytes(request)
        # -P: the folder of the program is not where it imports from.
        program = [sys.executable, "-P", compiler_process.__file__, str(asked), str(answered)]
        try:
            done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            return {"error": f"the compiler did not finish in {_TIMEOUT} seconds"}
        if not answered.exists():
            last = "\n".join(done.stderr.strip().splitlines()[-5:])
            return {"error": f"the compiler ended with code {done.returncode}: {last}"}
        return pickle.loads(answered.read_bytes())
