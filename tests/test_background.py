"""What computes in the background: one call after the other, each with what the one before it promised."""

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from gt.worker.background import Background, build, library_in
from gt.worker.compiled_code import Loan, Promise, Skipped

_Pointers = ctypes.POINTER(ctypes.c_void_p)
_Function = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    _Pointers,
    ctypes.c_size_t,
    _Pointers,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_void_p,
)

AOTI: Any = torch._C._aoti  # type: ignore[attr-defined]


class Code:
    """Stands for a compiled graph: it takes two tensors, and gives the second back."""

    taken, given = 2, 1
    Inputs, Outputs = ctypes.c_void_p * 2, ctypes.c_void_p * 1
    container = None
    set_threads = None
    lend = staticmethod(AOTI.unsafe_alloc_void_ptrs_from_tensors)
    take_back = staticmethod(AOTI.alloc_tensors_by_stealing_from_void_ptrs)

    def __init__(self, code: int = 0) -> None:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        self.share: Any = library.aoti_torch_new_tensor_handle
        delete: Any = library.aoti_torch_delete_tensor_object
        delete.argtypes = [ctypes.c_void_p]

        def compute(_: Any, inputs: Any, taken: int, outputs: Any, given: int, *rest: Any) -> int:
            delete(inputs[0])
            outputs[0] = inputs[1]
            return code

        self.compute = _Function(compute)


@pytest.fixture(scope="module")
def background(tmp_path_factory: pytest.TempPathFactory) -> Background:
    folder = tmp_path_factory.mktemp("background")
    build(folder, os.environ.get("CXX", "c++"))
    return Background(library_in(folder), threads=1)


def loan(code: Code, tensors: list[Any], before: Loan | None = None) -> Loan:
    return Loan(code, tensors, before)  # type: ignore[arg-type]


def test_each_call_gets_what_the_one_before_it_makes(background: Background):
    code, zero = Code(), torch.zeros(1)
    first = loan(code, [zero, torch.arange(3.0)])
    background.start(first)
    calls = [first]
    for _ in range(50):
        # A promise in either place; the one before may be done by now, or not.
        calls.append(loan(code, [Promise(0, None), Promise(0, None)], calls[-1]))
        background.start(calls[-1])
        (result,) = calls[-2].results(background.wait()[0])
        assert result.tolist() == [0, 1, 2]
    (result,) = calls[-1].results(background.wait()[0])
    assert result.tolist() == [0, 1, 2]


def test_what_follows_a_call_that_failed_is_not_begun(background: Background):
    good, bad = Code(), Code(code=3)
    tensor = torch.ones(2)
    first = loan(bad, [tensor, tensor])
    background.start(first)
    second = loan(good, [tensor, Promise(0, None)], first)
    background.start(second)
    with pytest.raises(RuntimeError, match="code 3"):
        first.results(background.wait()[0])
    with pytest.raises(Skipped):
        second.results(background.wait()[0])
    third = loan(good, [tensor, tensor])
    background.start(third)
    assert third.results(background.wait()[0])[0].tolist() == [1, 1]


def test_a_number_of_tensors_that_is_not_the_functions_is_refused():
    with pytest.raises(ValueError, match="3 tensors for a function of 2"):
        loan(Code(), [torch.zeros(1)] * 3)
