"""Views and indirect accesses of the `nki` package, registers, and loops with registers as bounds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from triton_viz.core.data import Load, Store
from triton_viz.dsls.nki import isa, language
from triton_viz.errors import AccessError, KernelError, UnsupportedError

pytestmark = pytest.mark.usefixtures("no_launches")

nl: Any = language
nisa: Any = isa


def traced(kernel: Any) -> Any:
    return triton_viz.trace("tracer", backend="nki")(kernel)


def rows_by_index(data, indices):
    count, width = indices.shape[0], data.shape[1]
    out = nl.ndarray((count, width), dtype=data.dtype, buffer=nl.shared_hbm)
    index = nl.load(indices)
    tile = nl.ndarray((count, width), dtype=data.dtype, buffer=nl.sbuf)
    rows = data.ap(pattern=[[width, count], [1, width]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=tile, src=rows)
    nisa.dma_copy(dst=out, src=tile)
    return out


def put_by_index(data, indices, out):
    count, width = data.shape
    tile, index = nl.load(data), nl.load(indices)
    rows = out.ap(pattern=[[width, count], [1, width]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=rows, src=tile)


def test_rows_are_gathered_and_scattered_by_index():
    data = np.arange(50, dtype=np.float32).reshape(10, 5)
    index = np.array([[7], [0], [7], [3]], np.uint32)
    np.testing.assert_array_equal(traced(rows_by_index)(data, index), data[index[:, 0]])
    load = next(r for r in triton_viz.launches[-1].records if type(r) is Load and r.tensor == "data")
    np.testing.assert_array_equal(load.offsets, index * 5 + np.arange(5))
    out = np.zeros((10, 5), np.float32)
    traced(put_by_index)(data[:4], index[[0, 1, 3, 3]] + np.arange(4, dtype=np.uint32)[:, None] // 3, out)
    np.testing.assert_array_equal(out[[7, 0, 3, 4]], data[:4])
    assert [r.tensor for r in triton_viz.launches[-1].records if type(r) is Store] == ["out"]


def test_an_index_outside_is_reported_with_its_element():
    with pytest.raises(
        AccessError, match=r"out, a tensor of shape \(3, 2\) in HBM, is accessed at index \(9, 0\)"
    ):
        traced(put_by_index)(
            np.ones((1, 2), np.float32), np.array([[9]], np.uint32), np.zeros((3, 2), np.float32)
        )


def test_indices_outside_are_skipped_on_request():
    def kernel(data, indices, out):
        tile = nl.load(data)
        rows = out.ap(pattern=[[2, 3], [1, 2]], vector_offset=nl.load(indices), indirect_dim=0)
        nisa.dma_copy(dst=rows, src=tile, oob_mode=nisa.oob_mode.skip)

    out = np.zeros((4, 2), np.float32)
    traced(kernel)(np.ones((3, 2), np.float32), np.array([[3], [99], [0]], np.uint32), out)
    np.testing.assert_array_equal(out[:, 0], [1, 0, 0, 1])


@settings(max_examples=40)
@given(data=st.data())
def test_an_access_pattern_is_as_strided(data: st.DataObject):
    x = np.arange(48, dtype=np.float32).reshape(4, 12)
    counts = [data.draw(st.integers(1, 4)) for _ in range(2)]
    steps = [data.draw(st.integers(0, 3)) for _ in range(2)]
    offset = data.draw(st.integers(0, 3))
    reach = offset + sum(s * (n - 1) for s, n in zip(steps, counts, strict=True))

    def kernel(tensor):
        tile = nl.load(tensor)
        part = tile.ap([[12, 4], *([s, n] for s, n in zip(steps, counts, strict=True))], offset=offset)
        out = nl.ndarray(part.shape, dtype=tensor.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(part))
        return out

    if 36 + reach >= 48:
        with pytest.raises(AccessError):
            traced(kernel)(x)
        return
    strides = tuple(4 * s for s in (12, *steps))
    expected = np.lib.stride_tricks.as_strided(x.reshape(-1)[offset:], (4, *counts), strides)
    np.testing.assert_array_equal(traced(kernel)(x), expected)


def test_views_rearrange_without_moving():
    def kernel(x):
        tile = nl.load(x)
        assert tile.reshape((2, 3, 4)).permute((0, 2, 1)).shape == (2, 4, 3)
        assert tile.reshape_dim(1, (3, -1)).flatten_dims(1, 2).shape == (2, 12)
        assert tile.expand_dim(1).squeeze_dim(1).shape == (2, 12)
        assert tile.slice(1, 2, 8, 2).shape == (2, 3)
        assert tile.select(1, 3).shape == (2, 1)
        assert tile.view(nl.int32).dtype == np.int32
        assert tile.view(nl.bfloat16).shape == (2, 24)
        assert tile.get_pattern() == [[12, 2], [1, 12]]
        turned = tile.rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 3})
        out = nl.ndarray((2, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.sum(turned, axis=2))
        return out

    x = np.arange(24, dtype=np.float32).reshape(2, 12)
    np.testing.assert_array_equal(traced(kernel)(x), x.reshape(2, 3, 4).sum(axis=1))


def test_a_view_that_would_have_to_move_elements_says_so():
    def kernel(x):
        nl.load(x).permute((1, 0)).reshape((6,))

    with pytest.raises(UnsupportedError, match="would have to move elements: copy it first"):
        traced(kernel)(np.ones((2, 3), np.float32))


def test_writing_to_a_view_writes_to_the_tile():
    def kernel(out):
        tile = nl.ndarray((2, 6), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(tile.reshape((2, 2, 3))[:, 0, :], 1.0)
        nisa.memset(tile.ap([[6, 2], [1, 3]], offset=3), 2.0)
        nl.store(out, tile)

    out = np.zeros((2, 6), np.float32)
    traced(kernel)(out)
    np.testing.assert_array_equal(out, [[1, 1, 1, 2, 2, 2]] * 2)


def test_the_first_product_is_put_and_others_are_added_unless_told():
    def kernel(x, out):
        tile = nl.load(x)
        total = nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(total, tile, tile)
        nisa.nc_matmul(total, tile, tile)
        nl.store(out[0:2], nl.copy(total))
        nisa.nc_matmul(total, tile, tile, accumulate=False)
        nl.store(out[2:4], nl.copy(total))

    out = np.zeros((4, 2), np.float32)
    traced(kernel)(np.eye(2, dtype=np.float32), out)
    np.testing.assert_array_equal(out, np.concatenate([2 * np.eye(2), np.eye(2)]))


def test_registers_hold_bounds_of_loops():
    def kernel(x, count):
        tile, steps = nl.load(x), nisa.register_alloc()
        nisa.register_load(steps, nl.load(count))
        for _ in nl.dynamic_range(steps):
            nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        left, number = nisa.register_alloc(3), nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        while left:
            nisa.register_store(number, left)
            nisa.tensor_scalar(number, number, nl.add, -1)
            nisa.register_load(left, number)
            nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    result = traced(kernel)(np.ones((2, 2), np.float32), np.array([[4]], np.int32))
    np.testing.assert_array_equal(result, np.full((2, 2), 40))
    with pytest.raises(KernelError, match="a register is read before it was loaded"):
        traced(lambda: [*nl.dynamic_range(nisa.register_alloc())])()


def test_gathers_and_shuffles_on_the_chip():
    def kernel(x, index):
        tile = nl.load(x)
        picked = nl.ndarray(index.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_n_gather(picked, tile, nl.load(index))
        turned = nl.ndarray(index.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_stream_shuffle(turned, picked, [31 - i for i in range(32)])
        out = nl.ndarray(index.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, turned)
        return out

    x = np.arange(32 * 4, dtype=np.float32).reshape(32, 4)
    index = np.random.default_rng(0).integers(0, 4, (32, 3)).astype(np.uint32)
    expected = np.take_along_axis(x, index.astype(np.int64), axis=1)[::-1]
    np.testing.assert_array_equal(traced(kernel)(x, index), expected)


def test_random_numbers_follow_their_seed():
    def kernel(x):
        out = nl.ndarray((2, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        for row in range(2):
            nl.random_seed(3)
            nl.store(out[row : row + 1, :], nl.rand((1, 64)))
        dropped = nl.dropout(nl.load(x), 0.5)
        nl.store(x, dropped)
        return out

    x = np.ones((8, 64), np.float32)
    out = traced(kernel)(x)
    np.testing.assert_array_equal(out[0], out[1])
    assert 0.3 < x.mean() < 0.7


def test_empty_tensors_are_accepted():
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x) + 1.0)
        return out

    assert traced(kernel)(np.ones((4, 0), np.float32)).shape == (4, 0)
    assert traced(kernel)[0](np.ones((4, 2), np.float32)) is None
