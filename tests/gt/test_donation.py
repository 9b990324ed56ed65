"""Results may be computed in the memory of inputs that are freed directly afterwards: no value changes."""

from collections.abc import Iterator, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gt.stream.instructions import GetData, LocalInstruction, Op, Upload
from gt.worker import Worker
from gt.worker import worker as worker_module
from gt.worker.compile import eager_repeat
from gt.worker.engine.torch import donation
from tests.gt.helpers.eager_repeats import RESULTS, Line, repeat_of

START = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.fixture(autouse=True, scope="module")
def any_memory_is_donated() -> Iterator[None]:
    """Workers donate memory of any size, from their second batch on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GT_AUTO_COMPILE", "0")
        patch.setattr(worker_module, "DONATION_SECONDS", -1.0)
        patch.setattr(donation, "MIN_DONATED_BYTES", 0)
        patch.setattr(eager_repeat, "MIN_DONATED_BYTES", 0)
        yield


def _op(result: int, op: str, *inputs: int, **attrs: Any) -> Op:
    return Op(result, op, inputs, attrs or None, -1)


def _run(worker: Worker, *batch: LocalInstruction | int) -> list[np.ndarray | None]:
    """What is read in a batch. The arrays are still views of the worker's memory."""
    outcome = worker.execute("c1", list(batch))
    assert not outcome.failed
    return [one.array for one in outcome.data]


def _memory(worker: Worker, tensor: int) -> int:
    return worker.clients["c1"].values[tensor].data_ptr()


@pytest.fixture
def made() -> Worker:
    """A worker with tensors 0 and 1, in memory that PyTorch has allocated."""
    worker, start = Worker(), START
    _run(
        worker, Upload(10, start.copy()), Upload(11, start + 1), _op(0, "neg", 10), _op(1, "neg", 11), 10, 11
    )
    return worker


FORMS = {
    **{op: {} for op in donation.IN_PLACE},
    "aten::add.Tensor": {"alpha": 0.3},
    "aten::sub.Tensor": {"alpha": -1.7},
    "aten::addcdiv": {"value": 0.1},
    "aten::addcmul": {"value": 1 / 3},
    "aten::lerp.Scalar": {"weight": 0.7},
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("op", FORMS)
def test_an_in_place_form_has_the_bits_of_the_op(op: str, dtype: str):
    engine = Worker().engine
    attrs = FORMS[op] or None
    torch.manual_seed(0)
    binary = op in ("add", "sub", "mul", "truediv") or op.startswith("aten::")
    count = 3 if "addc" in op else 2 if binary else 1
    inputs = [torch.randn(33, 65).to(getattr(torch, dtype)) for _ in range(count)]
    expected = engine.run(op, inputs, attrs)
    in_place = engine.in_place(op, attrs)
    assert in_place is not None
    found = in_place(inputs, 0)
    assert found is inputs[0]
    assert found.dtype == expected.dtype
    assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


def test_an_input_that_is_freed_directly_afterwards_gives_its_memory_to_the_result(made: Worker):
    before = _memory(made, 0)
    (array,) = _run(made, _op(2, "add", 0, 1), 0, GetData(0, 2))
    assert _memory(made, 2) == before
    assert array is not None
    np.testing.assert_array_equal(array, -START * 2 - 1)


def test_so_it_does_in_a_repeat(made: Worker):
    before = _memory(made, 0)
    sequence = [Line("mul", (0,), {"scalar": -1.0, "reflected": False}), Line("abs", (RESULTS,))]
    repeat = repeat_of(sequence, kept=[1], freed=[0])
    made.execute_each(made.clients["c1"], [repeat], [], [])  # type: ignore[list-item]
    assert _memory(made, RESULTS + 1) == before
    np.testing.assert_array_equal(_run(made, GetData(0, RESULTS + 1))[0], START)


def test_memory_of_a_view_is_not_donated(made: Worker):
    _run(made, _op(5, "transpose", 0, dim0=0, dim1=1))
    result, view = _run(made, _op(2, "add", 0, 1), 0, GetData(0, 2), GetData(1, 5))
    np.testing.assert_array_equal(result, -START * 2 - 1)
    np.testing.assert_array_equal(view, -START.T)


def test_an_array_that_has_been_read_and_is_not_sent_yet_keeps_its_values(made: Worker):
    before, after = _run(made, GetData(0, 0), _op(2, "add", 0, 1), 0, GetData(1, 2))
    np.testing.assert_array_equal(before, -START)
    np.testing.assert_array_equal(after, -START * 2 - 1)


def test_arrays_of_the_program_are_never_written_to(made: Worker):
    own = START.copy()
    (array,) = _run(made, Upload(5, own), _op(6, "neg", 5), 5, GetData(0, 6))
    np.testing.assert_array_equal(own, START)
    np.testing.assert_array_equal(array, -START)


def test_a_result_of_another_shape_or_dtype_has_memory_of_its_own(made: Worker):
    half = _op(5, "cast", 0, dtype="float16")
    _run(made, half, _op(6, "sum", 1, dim=0, keepdim=False))
    wide, sums = _run(made, _op(7, "mul", 5, 0), 5, GetData(0, 7), _op(8, "add", 6, 0), 6, GetData(1, 8))
    assert wide is not None
    assert wide.dtype == np.float32
    assert sums is not None
    assert sums.shape == (4, 4)


# --- any program ---

OPS = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "neg": 1,
    "abs": 1,
    "tanh": 1,
    "transpose": 1,
    "cast": 1,  # to the same dtype: the same tensor
    "aten::addcmul": 3,
    "aten::lerp.Scalar": 2,
}
ATTRS: dict[str, dict[str, Any]] = {
    "transpose": {"dim0": 0, "dim1": 1},
    "cast": {"dtype": "float32"},
    "aten::addcmul": {"value": 0.5},
    "aten::lerp.Scalar": {"weight": 0.25},
}


@st.composite
def programs(draw: st.DrawFn) -> list[LocalInstruction | int]:
    """Ops on 3 x 3 tensors and views of them, with reads anywhere. Some are freed after their last use."""
    live = [0, 1]
    program: list[LocalInstruction | int] = []
    for result in range(2, draw(st.integers(4, 24))):
        op = draw(st.sampled_from([*OPS]))
        inputs = [draw(st.sampled_from(live)) for _ in range(OPS[op])]
        program.append(Op(result, op, tuple(inputs), ATTRS.get(op), -1))
        for one in dict.fromkeys(inputs):
            if len(live) > 1 and draw(st.booleans()):
                program.append(one)
                live.remove(one)
        live.append(result)
        if draw(st.integers(0, 3)) == 0:
            program.append(GetData(len(program), draw(st.sampled_from(live))))
    return [*program, *(GetData(1000 + one, one) for one in live)]


def _outcomes(batches: Sequence[list[Any]], donates: bool) -> list[np.ndarray]:
    worker = Worker()
    start = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
    arrays = []
    for batch in ([Upload(0, start.copy()), Upload(1, start * 2)], *batches):
        worker._donates = donates
        arrays += [one.array for one in worker.execute("c1", batch).data]  # kept, as until they are sent
    return arrays


@settings(max_examples=300)
@given(programs(), st.integers(1, 8))
def test_no_program_sees_that_memory_is_donated(program: list[Any], size: int):
    batches = [program[n : n + size] for n in range(0, len(program), size)]
    found, expected = _outcomes(batches, True), _outcomes(batches, False)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
