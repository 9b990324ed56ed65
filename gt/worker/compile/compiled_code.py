"""Calling what the compiler made: a shared library with the C interface that AOTInductor gives it.

PyTorch's own way to call it takes less time, and holds Python's interpreter lock while it computes: that is
for what is over soon, in a worker with a process to itself. A call through ctypes lets the lock go, so that
the user's program goes on while an embedded worker computes; and it can be left to another thread.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

SKIPPED = -1
"""Instead of its code, if a computation was not begun: the one before it has failed."""

_Pointer, _Size = ctypes.c_void_p, ctypes.c_size_t


class Skipped(RuntimeError):
    """A computation that was not begun."""


class CompiledCode:
    """A compiled graph. It must have been made by this release of PyTorch, for this kind of machine."""

    def __init__(self, path: Path) -> None:
        import torch

        self._path = path
        self._library = ctypes.CDLL(str(path))
        library: Any = self._library
        self.container, count = _Pointer(), _Size()
        create = library.AOTInductorModelContainerCreateWithDevice
        _check(create(ctypes.byref(self.container), _Size(1), b"cpu", None))
        _check(library.AOTInductorModelContainerGetNumInputs(self.container, ctypes.byref(count)))
        self.taken = count.value
        _check(library.AOTInductorModelContainerGetNumOutputs(self.container, ctypes.byref(count)))
        self.given = count.value
        self.Inputs, self.Outputs = _Pointer * self.taken, _Pointer * self.given
        self.compute: Any = library.AOTInductorModelContainerRun
        self.compute.argtypes = [_Pointer, _Pointer, _Size, _Pointer, _Size, _Pointer, _Pointer]
        self.share: Any = library.aoti_torch_new_tensor_handle
        self.set_threads: Any = getattr(library, "omp_set_num_threads", None)
        """Of the library that divides work among threads, if there is one."""
        aoti: Any = torch._C._aoti  # type: ignore[attr-defined]
        self.lend = aoti.unsafe_alloc_void_ptrs_from_tensors
        self.take_back = aoti.alloc_tensors_by_stealing_from_void_ptrs
        self._runner: Any = None
        self._make_runner = aoti.AOTIModelContainerRunnerCpu

    def run(self, tensors: list[Any]) -> Sequence[Any]:
        """Compute with tensors, the last of which holds its numbers. Holds the interpreter."""
        if self._runner is None:
            self._runner = self._make_runner(str(self._path), 1)
        return self._runner.run(tensors)


class PendingResult(NamedTuple):
    """A result of a computation that has not ended."""

    place: int
    """Which of its results."""
    kind: Any
    """What an engine calls the kind of it."""


class Invocation:
    """Tensors that a compiled graph computes with, the last of which holds its numbers.

    In place of a tensor there may be a pending result of the invocation `before`.
    """

    __slots__ = ("before", "code", "inputs", "outputs", "pending")

    def __init__(self, code: CompiledCode, tensors: list[Any], before: "Invocation | None" = None) -> None:
        if len(tensors) != code.taken:
            raise ValueError(f"{len(tensors)} tensors for a function of {code.taken}")
        self.code = code
        self.before = before
        pending: list[int] = []
        if before is not None:
            for n, one in enumerate(tensors):
                if type(one) is PendingResult:
                    pending += (n, one.place)
            tensors = [one for one in tensors if type(one) is not PendingResult]
        self.pending = (_Size * len(pending))(*pending)
        """Pairs: an input, and the result that it will be."""
        # The call takes these over.
        addresses = [_address(capsule, None) for capsule in code.lend(tensors)]
        for n in pending[::2]:
            addresses.insert(n, None)
        self.inputs = code.Inputs(*addresses)
        self.outputs = code.Outputs()

    def run(self) -> int:
        """Compute; the result is a code, 0 if all went well."""
        code = self.code
        return code.compute(code.container, self.inputs, code.taken, self.outputs, code.given, None, None)

    def results(self, ended: int) -> Sequence[Any]:
        """What was computed, if it ended well."""
        self.before = None
        if ended == SKIPPED:
            self.code.take_back([_capsule(address, None, None) for address in self.inputs if address])
        _check(ended)
        return self.code.take_back([_capsule(address, None, None) for address in self.outputs])


def _check(code: int) -> None:
    if code == SKIPPED:
        raise Skipped
    if code:
        raise RuntimeError(f"a compiled function failed with code {code}")


_address: Any = ctypes.pythonapi.PyCapsule_GetPointer
_address.restype, _address.argtypes = _Pointer, [ctypes.py_object, ctypes.c_char_p]
_capsule: Any = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [_Pointer, ctypes.c_char_p, _Pointer]
