"""Calling what the compiler made: a shared library, through the C interface that AOTInductor gives it.

PyTorch's own loader holds Python's interpreter lock while a compiled function computes. A call through ctypes
lets it go, so that an embedded worker computes while the user's program goes on.
"""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Runner = Callable[[list[Any]], Sequence[Any]]
"""From tensors, the last of which holds the numbers, to results."""

_Pointer, _Size = ctypes.c_void_p, ctypes.c_size_t


def load(path: Path) -> Runner:
    """A compiled graph. It must have been made by this release of PyTorch, for this kind of machine."""
    import torch

    library = ctypes.CDLL(str(path))
    container, count = _Pointer(), _Size()
    _check(library.AOTInductorModelContainerCreateWithDevice(ctypes.byref(container), _Size(1), b"cpu", None))
    _check(library.AOTInductorModelContainerGetNumInputs(container, ctypes.byref(count)))
    taken = count.value
    _check(library.AOTInductorModelContainerGetNumOutputs(container, ctypes.byref(count)))
    given = count.value
    Inputs, Outputs = _Pointer * taken, _Pointer * given
    compute: Any = library.AOTInductorModelContainerRun
    compute.argtypes = [_Pointer, _Pointer, _Size, _Pointer, _Size, _Pointer, _Pointer]
    aoti: Any = torch._C._aoti  # type: ignore[attr-defined]
    lend, take_back = aoti.unsafe_alloc_void_ptrs_from_tensors, aoti.alloc_tensors_by_stealing_from_void_ptrs

    def run(tensors: list[Any]) -> Sequence[Any]:
        if len(tensors) != taken:
            raise ValueError(f"{len(tensors)} tensors for a function of {taken}")
        inputs = Inputs(*[_address(capsule, None) for capsule in lend(tensors)])  # the call takes them over
        outputs = Outputs()
        _check(compute(container, inputs, taken, outputs, given, None, None))
        return take_back([_capsule(address, None, None) for address in outputs])

    return run


def _check(code: int) -> None:
    if code:
        raise RuntimeError(f"a compiled function failed with code {code}")


_address: Any = ctypes.pythonapi.PyCapsule_GetPointer
_address.restype, _address.argtypes = _Pointer, [ctypes.py_object, ctypes.c_char_p]
_capsule: Any = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [_Pointer, ctypes.c_char_p, _Pointer]
