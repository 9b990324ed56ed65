"""Assignment in `neuronxcc.nki`: `tile[...] = nisa.op()` is one instruction, which writes the tile."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.nki_kernels import classic, modern
from triton_viz.core.data import Launch, SbufEvent, Transfer
from triton_viz.dsls.nki import Instruction, NeuronProfile, classic_isa, language
from triton_viz.visualizer.draw import get_visualization_data

pytestmark = pytest.mark.usefixtures("no_launches")

nl: Any = language
nisa: Any = classic_isa
X = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)


def run(kernel: Any, *arguments: np.ndarray) -> tuple[np.ndarray, Launch]:
    result = triton_viz.trace("tracer", backend="nki")(kernel)(*arguments)
    return result, triton_viz.launches[-1]


def instructions(launch: Launch) -> list[str]:
    return [record.name for record in launch.records if isinstance(record, Instruction)]


def buffers(launch: Launch) -> list[str]:
    return [record.name for record in launch.records if isinstance(record, SbufEvent)]


def profile(launch: Launch) -> NeuronProfile:
    (found,) = [record for record in launch.records if isinstance(record, NeuronProfile)]
    return found


def stored(tile: Any) -> Any:
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def assign_instructions(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    tile[...] = nl.load(x)
    tile[...] = nisa.activation(nl.exp, tile)
    tile[:, nl.ds(0, 16)] = nl.multiply(tile[:, nl.ds(0, 16)], 2.0)
    tile[...] = nisa.tensor_scalar(tile, op0=np.add, operand0=1.0)
    return stored(tile)


def test_a_result_that_is_assigned_is_written_where_it_goes():
    found, launch = run(assign_instructions, X)
    expected = np.exp(X)
    expected[:, :16] *= 2
    np.testing.assert_allclose(found, expected + 1, rtol=1e-6)
    assert instructions(launch) == ["dma_copy", "activation", "tensor_tensor", "tensor_scalar", "dma_copy"]
    assert buffers(launch) == ["tile"], "results have no buffer of their own"
    assert not any(isinstance(record, Transfer) for record in launch.records)
    assert {(m.source, m.destination) for m in profile(launch).moves} == {("HBM", "SBUF"), ("SBUF", "HBM")}
    assert profile(launch).memories[1].written == 3 * X.nbytes + X.nbytes // 2


def test_the_page_says_that_the_instruction_writes_the_tile():
    _, launch = run(assign_instructions, X)
    payloads = get_visualization_data(launch, (0, 0, 0)).visualization_data
    written = [op.fields["buffers_written"] for op in payloads]
    assert written == [(0,), (0,), (0,), (0,), ()]


def assign_a_variable(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    raised = nisa.activation(nl.exp, nl.load(x))
    tile[...] = raised
    tile[...] = nl.add(tile, raised)
    return stored(tile)


def assign_a_part(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    source = nl.load(x)
    tile[:, nl.ds(0, 16)] = source[:, nl.ds(16, 16)]
    tile[:, nl.ds(16, 16)] = source[:, nl.ds(0, 16)]
    return stored(tile)


def assign_what_is_repeated(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    tile[...] = nisa.tensor_reduce(np.max, nl.load(x), axis=(1,), keepdims=True)
    return stored(tile)


def assign_a_product(x):
    tile = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.sbuf)
    source = nl.load(x)
    tile[...] = nisa.nc_matmul(source, source)
    return stored(tile)


@pytest.mark.parametrize(
    ("kernel", "expected", "copies"),
    [
        (assign_a_variable, 2 * np.exp(X), 1),
        (assign_a_part, np.roll(X, 16, axis=1), 2),
        (assign_what_is_repeated, np.broadcast_to(X.max(axis=1, keepdims=True), X.shape), 1),
        (assign_a_product, X.T @ X, 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_values_are_copied_where_required(kernel: Any, expected: np.ndarray, copies: int):
    found, launch = run(kernel, X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert instructions(launch).count("tensor_copy") == copies


def masked_result(x):
    tile = nl.zeros(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    i = nl.arange(64)[:, None]
    j = nl.arange(32)[None, :]
    tile[i, j] = nisa.activation(nl.exp, nl.load(x), mask=j < 20)
    return stored(tile)


def test_a_mask_of_the_instruction_is_one_of_the_assignment():
    found, launch = run(masked_result, X)
    expected = np.zeros_like(X)
    expected[:, :20] = np.exp(X[:, :20])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert "tensor_copy" not in instructions(launch)


def accumulate(x):
    total = nl.zeros((32, 32), dtype=nl.float32, buffer=nl.psum)
    source = nl.load(x)
    for _ in nl.affine_range(3):
        total += nisa.nc_matmul(source, source)
    for _ in nl.affine_range(2):
        total[...] += nisa.nc_matmul(source, source)
    tile = nl.copy(total)
    tile += 1.0
    tile[...] *= 2.0
    return stored(tile)


def test_the_tensor_engine_accumulates_and_others_write_back():
    found, launch = run(accumulate, X)
    np.testing.assert_allclose(found, (5 * (X.T @ X) + 1) * 2, rtol=1e-4, atol=1e-4)
    assert Counter(instructions(launch)) == {
        "memset": 1,
        "dma_copy": 2,
        "nc_matmul": 5,
        "tensor_copy": 1,
        "tensor_tensor": 2,
    }


def bound_by_the_scalar_engine(x):
    tile = nl.load(x)
    part = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    for _ in nl.affine_range(20):
        part[...] = nisa.activation(nl.exp, tile)
    return stored(part)


def test_what_a_kernel_is_bound_by_is_what_it_computes_with():
    _, launch = run(bound_by_the_scalar_engine, X)
    found = profile(launch)
    assert found.bound == "scalar"
    assert {work.engine for work in found.engines} == {"scalar", "dma"}


@pytest.mark.parametrize("seq", [256, 512])
def test_attention_has_as_many_instructions_in_both_spellings(seq: int):
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, seq), (64, seq), (seq, 64)))
    counts = []
    for spelling in (classic, modern):
        _, launch = run(spelling.attention, q, k, v)
        counts.append(Counter(instructions(launch)))
    assert [sum(count.values()) for count in counts] == [sum(counts[0].values())] * 2
    for name in ("tensor_copy", "nc_matmul", "nc_transpose", "dma_copy"):
        assert counts[0][name] == counts[1][name]
