"""Indices, masks, dtypes and errors of NKI kernels: results are NumPy's, and errors have a line."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.helpers.nki_calls import kernel, tiles
from triton_viz.dsls.nki import classic_isa, language
from triton_viz.errors import KernelError

cnisa: Any = classic_isa
nl: Any = language


@settings(max_examples=60)
@given(data=st.data())
def test_indexing_is_numpys(data: st.DataObject):
    rank = data.draw(st.integers(1, 3))
    x = data.draw(tiles(rank))
    key: list[Any] = []
    for size in x.shape:
        kind = data.draw(st.sampled_from(["slice", "place", "all", "array"]))
        if kind == "place":
            key.append(data.draw(st.integers(0, size - 1)))
        elif kind == "array":
            key.append(np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2))))
        elif kind == "slice":
            start = data.draw(st.integers(0, size - 1))
            key.append(slice(start, data.draw(st.integers(start + 1, size)), data.draw(st.integers(1, 2))))
        else:
            key.append(slice(None))
    expected = x[tuple(key)]

    def program(tensor: Any) -> Any:
        tile = nl.load(tensor)
        part = tile[tuple(key)]
        # A tile always has a free axis.
        assert part.shape in (expected.shape, (*expected.shape, 1))
        out = nl.ndarray(expected.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, part)
        return out

    np.testing.assert_array_equal(triton_viz.trace((), backend="nki")(program)(x), expected)


@settings(max_examples=40)
@given(data=st.data())
def test_masked_loads_and_stores_access_elements_inside(data: st.DataObject):
    rows, columns = (data.draw(st.integers(1, 20)) for _ in range(2))
    height, width = (data.draw(st.integers(1, 8)) for _ in range(2))
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)

    def program(tensor: Any) -> Any:
        out = nl.zeros(tensor.shape, dtype=tensor.dtype, buffer=nl.shared_hbm)
        p, f = nl.mgrid[0:height, 0:width]
        for i in nl.affine_range(math.ceil(rows / height)):
            for j in nl.affine_range(math.ceil(columns / width)):
                at = (i * height + p, j * width + f)
                inside = (at[0] < rows) & (at[1] < columns)
                nl.store(out[at], nl.load(tensor[at], mask=inside) + 1.0, mask=inside)
        return out

    np.testing.assert_array_equal(triton_viz.trace((), backend="nki")(program)(x), x + 1)


@settings(max_examples=30)
@given(x=hnp.arrays(np.float32, (2, 8), elements=st.floats(-1e5, 1e5, width=32)))
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e5m2", "int8", "int32", "uint16"])
def test_types_are_converted_by_rounding(dtype: str, x: np.ndarray):
    kind = getattr(nl, dtype)
    result = kernel(lambda t: nl.copy(t, dtype=kind))(x)
    assert result.dtype == kind
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        np.testing.assert_array_equal(result, np.clip(np.rint(x), limits.min, limits.max).astype(kind))
    else:
        with np.errstate(over="ignore"):
            expected = x.astype(kind).astype(np.float32)
        np.testing.assert_array_equal(result.astype(np.float32), expected)


def test_narrow_floats_are_computed_in_float32():
    x = np.full((1, 4), 1.0, ml_dtypes.bfloat16)
    # 1/256 is lost if each sum is rounded to bfloat16.
    result = kernel(lambda t: nl.sum(nl.add(t, 1 / 256, dtype=nl.float32), axis=1, keepdims=True))(x)
    assert result[0, 0] == 4 + 4 / 256


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (lambda x, y: x + y, "add: tiles of shapes (2, 3) and (4, 5) do not fit each other"),
        (lambda x, y: cnisa.nc_matmul(x, y), "have 2 and 4 partitions: they are summed over"),
        (lambda x, y: cnisa.activation(nl.add, x), "takes a function of one operand, not add"),
        (lambda x, y: cnisa.activation("nonsense", x), "nisa.activation has no op 'nonsense'"),
        (lambda x, y: cnisa.tensor_tensor(x, y, np.add), "have to have the same number of partitions"),
        (lambda x, y: nl.load(x), " is in SBUF, not in HBM"),
        (lambda x, y: x & 1, "bitwise_and takes integers"),
        (lambda x, y: nl.load(3), "nl.load takes a tensor, not int"),
        (lambda x, y: nl.exp(1.0), "exp takes tiles; compute with plain numbers in Python"),
        (lambda x, y: nl.ndarray((2, 2), dtype="nonsense"), "'nonsense' is not a dtype of elements"),
        (lambda x, y: nl.add(x, 1, mask=np.ones((7, 7), bool)), "a mask of shape (7, 7) does not fit"),
        (lambda x, y: x[:, 0:-1], "a slice that ends at -1 is empty: indices do not count from the end"),
        (lambda x, y: nl.program_id(2), "program_id(2): the grid () has no axis 2"),
    ],
)
def test_a_mistake_is_explained_at_its_line(body: Callable[..., Any], said: str):
    with pytest.raises((KernelError, TypeError)) as caught:
        kernel(body)(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32))
    assert said in str(caught.value).replace("tile ", "")
    assert f"{kernel.__code__.co_filename}:" in str(caught.value)


def test_functions_of_the_language_need_a_kernel():
    with pytest.raises(TypeError, match="work inside a kernel only"):
        nl.zeros((2, 2), dtype=nl.float32)


def test_a_part_of_a_tile_may_reach_outside_where_the_mask_is_false():
    def program(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        p, f = nl.mgrid[0:4, 0:8]
        inside = (p < 3) & (f < 5)
        row = nl.load(x[0:1, :])
        total = nl.add(tile[p, f], row[nl.arange(1)[:, None], f], mask=inside)
        nl.store(out[p, f], nl.multiply(total[p, f], tile[p, f], mask=inside), mask=inside)
        return out

    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(triton_viz.trace((), backend="nki")(program)(x), (x + x[:1]) * x)


def test_one_element_of_each_partition_is_spread_over_the_free_axes():
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_array_equal(
        kernel(lambda t: t - nl.max(t, axis=1))(x), x - x.max(axis=1, keepdims=True)
    )
    np.testing.assert_array_equal(kernel(lambda t: t * t[:, 1])(x), x * x[:, 1:2])
    np.testing.assert_array_equal(
        kernel(lambda t: nl.where(t > t[:, 0], t, t[:, 2]))(x), np.where(x > x[:, :1], x, x[:, 2:])
    )


def test_a_masked_result_keeps_masked_off_elements():
    def body(tile: Any) -> Any:
        _, f = nl.mgrid[0:2, 0:4]
        result = nl.copy(tile)
        result[...] = nl.add(tile, 10.0, mask=f < 2)
        result[...] = nl.add(tile, 20.0, mask=False)
        return result

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(kernel(body)(x), np.where(np.arange(4) < 2, x + 10, x))


def test_one_element_of_each_partition_goes_into_every_column():
    def body(tile: Any) -> Any:
        result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
        p, f = nl.mgrid[0:3, 0:3]
        result[p, f] = cnisa.tensor_reduce(np.max, tile, axis=(1,))
        return result + (1.0 / nl.max(tile, axis=1)).broadcast_to((3, 3))

    x = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    largest = x.max(axis=1, keepdims=True)
    np.testing.assert_allclose(kernel(body)(x), np.broadcast_to(largest + 1 / largest, (3, 3)))


def test_a_running_softmax_in_the_classic_style():
    """State in columns, and instructions on parts of them, as in flash attention."""

    def body(tile: Any) -> Any:
        state = nl.full((4, 2), -1e30, dtype=nl.float32)
        state[:, 1] = 0.0
        for part in nl.sequential_range(3):
            columns = tile[:, nl.ds(part * 5, 5)]
            before = nl.copy(state[:, 0])
            state[:, 0] = nl.maximum(before, cnisa.tensor_reduce(np.max, columns, axis=(1,)))
            total = nl.ndarray((4, 3), dtype=nl.float32)
            cnisa.activation_reduce(
                np.exp, columns, bias=-1 * state[:, 0], reduce_op=np.add, reduce_res=total[:, part]
            )
            scale = cnisa.activation(np.exp, state[:, 0], bias=before, scale=-1.0)
            state[:, 1] = nl.add(nl.multiply(state[:, 1], scale), total[:, part])
        return nl.add(state[:, 0], nl.log(state[:, 1])).reshape((4, 1))

    x = np.random.default_rng(1).standard_normal((4, 15)).astype(np.float32)
    expected = torch.logsumexp(torch.from_numpy(x), dim=1, keepdim=True).numpy()
    np.testing.assert_allclose(kernel(body)(x), expected, rtol=1e-5)


def test_an_index_of_a_grid_stands_for_its_own_axis_only():
    """Indices of grids of any rank select tiles with the axes of the indices, and so do their masks."""

    def program(x: Any, weight: Any) -> Any:
        rows, columns = x.shape
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        p, f, one = nl.mgrid[0:4, 0:columns, 0:1]
        scale = nl.load(weight.reshape((1, columns))[one, f])
        assert scale.shape == (1, columns)
        for i in nl.affine_range(2):
            inside = i * 4 + p < rows
            tile = nl.load(x[i * 4 + p, f], mask=inside)
            assert tile.shape == (4, columns)
            part, six = nl.mgrid[0:8, 0:6]
            stats = nl.ndarray((4, 6), dtype=nl.float32)
            stats[p, six] = cnisa.bn_stats(tile[p, part], mask=part < columns)
            moments = cnisa.bn_aggr(stats[p, nl.arange(6)[None, :]])
            mean = moments[p, 0]
            assert mean.shape == (4, 1)
            result = (tile - mean) * scale.broadcast_to((4, columns))
            nl.store(out[i * 4 + p, f], value=result, mask=inside)
        return out

    x = np.random.default_rng(2).standard_normal((6, 5)).astype(np.float32)
    weight = np.arange(5, dtype=np.float32)
    result = triton_viz.trace((), backend="nki")(program)(x, weight)
    np.testing.assert_allclose(result, (x - x.mean(axis=1, keepdims=True)) * weight, rtol=1e-5, atol=1e-6)


def test_a_column_of_a_tile_is_a_tile():
    def body(tile: Any) -> Any:
        column = tile[:, 1]
        assert column.shape == (3, 1)
        column[:, 0] = 7.0
        return tile

    x = np.zeros((3, 3), np.float32)
    np.testing.assert_array_equal(kernel(body)(x), np.array([[0, 7, 0]] * 3, np.float32))
