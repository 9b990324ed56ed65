"""Calls compiled graphs: shared libraries with the C interface of AOTInductor.

PyTorch's own call takes less time, but holds the interpreter lock meanwhile: it is used for short calls in a
worker that has a process of its own. A call through ctypes releases the lock, so that the user's program runs
on while an embedded worker computes; it can also be made by another thread.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

SKIPPED = -1
"""The return code of a call that was not started, because the call before it failed."""

_Pointer, _Size = ctypes.c_void_p, ctypes.c_size_t


class Skipped(RuntimeError):
    """A call was not started, because the call before it failed."""


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
        self.num_inputs = count.value
        _check(library.AOTInductorModelContainerGetNumOutputs(self.container, ctypes.byref(count)))
        self.num_outputs = count.value
        self.Inputs, self.Outputs = _Pointer * self.num_inputs, _Pointer * self.num_outputs
        self.compute: Any = library.AOTInductorModelContainerRun
        self.compute.argtypes = [_Pointer, _Pointer, _Size, _Pointer, _Size, _Pointer, _Pointer]
        self.share: Any = library.aoti_torch_new_tensor_handle
        self.set_threads: Any = getattr(library, "omp_set_num_threads", None)
        """The function that sets the number of OpenMP threads; None if the library does not use OpenMP."""
        aoti: Any = torch._C._aoti  # type: ignore[attr-defined]
        self.to_handles = aoti.unsafe_alloc_void_ptrs_from_tensors
        self.from_handles = aoti.alloc_tensors_by_stealing_from_void_ptrs
        self._runner: Any = None
        self._make_runner = aoti.AOTIModelContainerRunnerCpu

    def run(self, tensors: list[Any]) -> Sequence[Any]:
        """Call the graph, holding the interpreter lock. The last tensor has the run-time numbers."""
        if self._runner is None:
            self._runner = self._make_runner(str(self._path), 1)
        return self._runner.run(tensors)


class PendingResult(NamedTuple):
    """A result of a call that has not ended."""

    number: int
    """Its index among the results of the call."""
    kind: Any
    """Its `Engine.kind`: a key for its shape and dtype."""


class Invocation:
    """The inputs of one call of a compiled graph. The last tensor has the run-time numbers.

    In place of a tensor there may be a pending result of the invocation `before`.
    """

    __slots__ = ("before", "code", "ended", "inputs", "outputs", "pending")

    def __init__(self, code: CompiledCode, tensors: list[Any], before: "Invocation | None" = None) -> None:
        if len(tensors) != code.num_inputs:
            raise ValueError(f"compiled code takes {code.num_inputs} tensors, but got {len(tensors)}")
        self.code = code
        self.ended = 0
        """The return code, once it has run; if it is not 0 before, it does not run."""
        self.pending: list[tuple[int, int]] = []
        """Pairs of indices: an input, and the result of the call before that it stands for."""
        if before is not None:
            self.pending = [(n, one.number) for n, one in enumerate(tensors) if type(one) is PendingResult]
            tensors = [one for one in tensors if type(one) is not PendingResult]
        self.before = before if self.pending else None
        # The call frees these handles.
        addresses = [_address(capsule, None) for capsule in code.to_handles(tensors)]
        for n, _ in self.pending:
            addresses.insert(n, None)
        self.inputs = code.Inputs(*addresses)
        self.outputs = code.Outputs()

    def insert_pending(self) -> None:
        """Insert the results of the call before, which has ended; if it failed, this one must not run."""
        assert self.before is not None
        self.ended = SKIPPED if self.before.ended else 0
        handle = _Pointer()
        for n, place in self.pending:
            if not self.ended:  # another handle of the same tensor
                self.ended = self.code.share(_Pointer(self.before.outputs[place]), ctypes.byref(handle))
                self.inputs[n] = handle.value

    def run(self) -> int:
        """Call the graph; returns 0 if it succeeded."""
        code = self.code
        if not self.ended:
            self.ended = code.compute(
                code.container, self.inputs, code.num_inputs, self.outputs, code.num_outputs, None, None
            )
        return self.ended

    def results(self, ended: int) -> Sequence[Any]:
        """The results, given the return code of the call. Raises if it is not 0."""
        self.before = None
        if ended == SKIPPED:
            self.code.from_handles([_capsule(address, None, None) for address in self.inputs if address])
        _check(ended)
        return self.code.from_handles([_capsule(address, None, None) for address in self.outputs])


def _check(code: int) -> None:
    if code == SKIPPED:
        raise Skipped
    if code:
        raise RuntimeError(f"a compiled function failed with code {code}")


_address: Any = ctypes.pythonapi.PyCapsule_GetPointer
_address.restype, _address.argtypes = _Pointer, [ctypes.py_object, ctypes.c_char_p]
_capsule: Any = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [_Pointer, ctypes.c_char_p, _Pointer]
