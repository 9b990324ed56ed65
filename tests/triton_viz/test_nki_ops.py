"""Each op of nki.language and nki.isa agrees with NumPy for all shapes, dtypes and masks."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from tests.triton_viz.helpers.nki_calls import floats, kernel, small, tiles
from triton_viz.dsls.nki import classic_isa, isa, language
from triton_viz.dsls.nki.dtypes import cast, tfloat32
from triton_viz.dsls.nki.functions import FUNCTIONS

cnisa: Any = classic_isa
nisa: Any = isa
nl: Any = language


UNARY = {
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "square": np.square,
    "abs": np.abs,
    "negative": np.negative,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "relu": lambda x: np.maximum(x, 0),
}
WITH_TORCH = {
    "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_apprx_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "softplus": torch.nn.functional.softplus,
    "mish": torch.nn.functional.mish,
    "erf": torch.erf,
}
BINARY = {
    name: getattr(np, name)
    for name in (
        *("add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal"),
        *("less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor"),
    )
}


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=15)
@given(data=st.data())
def test_a_function_of_one_tile(name: str, data: st.DataObject):
    x = data.draw(tiles(data.draw(st.integers(1, 4))))
    np.testing.assert_allclose(kernel(getattr(nl, name))(x), UNARY[name](x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", WITH_TORCH)
@settings(max_examples=15)
@given(x=tiles())
def test_an_activation(name: str, x: np.ndarray):
    expected = WITH_TORCH[name](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(kernel(getattr(nl, name))(x), expected, rtol=2e-4, atol=1e-5)
    row = kernel(lambda tile: cnisa.activation(getattr(nl, name), tile))(x)
    np.testing.assert_allclose(row, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["silu", "gelu", "erf", "gelu_apprx_sigmoid"])
@settings(max_examples=10)
@given(x=tiles())
def test_a_derivative_is_one(name: str, x: np.ndarray):
    row, step = FUNCTIONS[name].compute, 1e-3
    slope = (row((x + step).astype(np.float64)) - row((x - step).astype(np.float64))) / (2 * step)
    np.testing.assert_allclose(kernel(getattr(nl, f"{name}_dx"))(x), slope, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=15)
@given(data=st.data())
def test_a_function_of_two_tiles_or_a_tile_and_a_number(name: str, data: st.DataObject):
    x = data.draw(tiles())
    y = data.draw(hnp.arrays(np.float32, x.shape, elements=floats))
    expected = BINARY[name](x, y)
    result = kernel(getattr(nl, name))(x, y)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    column = y[:, :1]
    np.testing.assert_array_equal(kernel(getattr(nl, name))(x, column), BINARY[name](x, column))
    np.testing.assert_array_equal(
        kernel(lambda t: getattr(nl, name)(t, 2.0))(x), BINARY[name](x, np.float32(2))
    )


@settings(max_examples=20)
@given(x=tiles(dtype=np.int32, elements=st.integers(-1000, 1000)), n=st.integers(1, 7))
def test_integers_stay_integers(x: np.ndarray, n: int):
    for ours, theirs in (
        (lambda t: t + n, x + n),
        (lambda t: t * n, x * n),
        (lambda t: n - t, n - x),
        (lambda t: t & n, x & n),
        (lambda t: t | n, x | n),
        (lambda t: t ^ n, x ^ n),
        (lambda t: t << n, x << n),
        (lambda t: t >> n, x >> n),
        (lambda t: ~t, ~x),
        (lambda t: t % n, x % n),
        (lambda t: -t, -x),
    ):
        result = kernel(ours)(x)
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, theirs)


@settings(max_examples=25)
@given(x=tiles(), number=floats)
@example(x=np.ones((1, 1), np.float32), number=1.401298464324817e-45)
def test_pythons_operators(x: np.ndarray, number: float):
    y = np.float32(number or 1)
    with np.errstate(over="ignore"):
        divided = x / y
    for ours, theirs in (
        (lambda t: t + y, x + y),
        (lambda t: y - t, y - x),
        (lambda t: t / float(y), divided),
        (lambda t: (t > y) * t, (x > y) * x),
        (lambda t: abs(-t), np.abs(x)),
    ):
        np.testing.assert_allclose(kernel(ours)(x), theirs, rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var"])
@settings(max_examples=15)
@given(data=st.data())
def test_a_reduction(name: str, data: st.DataObject):
    rank = data.draw(st.integers(2, 4))
    x = data.draw(tiles(rank, elements=st.floats(-1, 1, width=32)))
    axes = tuple(range(data.draw(st.integers(1, rank - 1)), rank))
    keepdims = data.draw(st.booleans())
    expected = getattr(np, name)(x, axis=axes, keepdims=keepdims)
    result = kernel(lambda t: getattr(nl, name)(t, axis=list(axes), keepdims=keepdims))(x)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=25)
@given(x=tiles(), columns=small, name=st.sampled_from(["sum", "max", "min"]))
def test_a_mask_leaves_elements_out_of_a_reduction(x: np.ndarray, columns: int, name: str):
    count = min(columns, x.shape[1])
    inside = np.arange(x.shape[1])[None, :] < count
    result = kernel(lambda t: getattr(nl, name)(t, axis=1, keepdims=True, mask=inside))(x)
    expected = getattr(np, name)(x[:, :count], axis=1, keepdims=True)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=20)
@given(data=st.data())
def test_products_of_tiles(data: st.DataObject):
    k, m, n = (data.draw(st.integers(1, 8)) for _ in range(3))
    a, b = (data.draw(hnp.arrays(np.float32, shape, elements=floats)) for shape in ((k, m), (k, n)))
    for ours in (
        lambda x, y: nl.matmul(x, y, transpose_x=True),
        lambda x, y: nl.matmul(nl.copy(nl.transpose(x)), y),
        cnisa.nc_matmul,
    ):
        np.testing.assert_allclose(kernel(ours)(a, b), a.T @ b, rtol=1e-4, atol=1e-4)


@settings(max_examples=20)
@given(x=tiles(3))
def test_transposes(x: np.ndarray):
    expected = x.reshape(len(x), -1).T
    np.testing.assert_array_equal(kernel(cnisa.nc_transpose)(x), expected)
    flat = x.reshape(len(x), -1)[:, :32]
    on_vector = kernel(lambda t: cnisa.nc_transpose(t, engine=nisa.engine.vector))
    np.testing.assert_array_equal(on_vector(flat), flat.T)
    np.testing.assert_array_equal(triton_viz.trace((), backend="nki")(_load_transposed)(flat), flat.T)


def _load_transposed(x: Any) -> Any:
    out = nl.ndarray(x.shape[::-1], dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load_transpose2d(x))
    return out


@settings(max_examples=20)
@given(x=tiles(), reverse=st.booleans())
def test_tensor_scalar_applies_two_functions(x: np.ndarray, reverse: bool):
    vector = x[:, :1] + 1
    result = kernel(
        lambda t, v: cnisa.tensor_scalar(t, np.subtract, v, reverse0=reverse, op1=np.multiply, operand1=3.0)
    )(x, vector)
    np.testing.assert_allclose(result, (vector - x if reverse else x - vector) * 3, rtol=1e-6)


@settings(max_examples=20)
@given(x=tiles())
def test_activation_scales_shifts_and_sums(x: np.ndarray):
    def body(tile: Any, bias: Any) -> Any:
        total = nl.ndarray((tile.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
        raised = cnisa.activation_reduce(
            nl.exp, tile, bias=bias, scale=0.5, reduce_op=np.add, reduce_res=total
        )
        return cnisa.tensor_tensor(raised, total.broadcast_to(raised.shape), np.divide)

    bias = x[:, :1]
    raised = np.exp(x * 0.5 + bias)
    np.testing.assert_allclose(kernel(body)(x, bias), raised / raised.sum(axis=1, keepdims=True), rtol=1e-4)


@settings(max_examples=20)
@given(data=st.data())
def test_statistics_of_parts_are_those_of_the_whole(data: st.DataObject):
    x = data.draw(hnp.arrays(np.float32, (3, data.draw(st.integers(1, 40))), elements=floats))
    cut = data.draw(st.integers(0, x.shape[1]))

    def body(tile: Any) -> Any:
        stats = nl.zeros((3, 12), dtype=nl.float32)
        nisa.bn_stats(stats[:, 0:6], tile[:, :cut])
        nisa.bn_stats(stats[:, 6:12], tile[:, cut:])
        return cnisa.bn_aggr(stats)

    moments = np.stack([x.mean(axis=1), x.var(axis=1)], axis=1)
    np.testing.assert_allclose(kernel(body)(x), moments, rtol=1e-4, atol=1e-4)


@settings(max_examples=20)
@given(x=tiles(), y=floats)
def test_selections(x: np.ndarray, y: float):
    places = np.arange(x.shape[1])[None, :] >= np.arange(x.shape[0])[:, None]
    expected = np.where(places, x, np.float32(y))
    np.testing.assert_array_equal(kernel(lambda t: cnisa.affine_select(places, t, y))(x), expected)

    def modern(tile: Any) -> Any:
        dst = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.affine_select(dst, [[1, tile.shape[1]]], -1, tile, y, cmp_op=nl.greater_equal)
        return dst

    np.testing.assert_array_equal(kernel(modern)(x), expected)
    np.testing.assert_array_equal(
        kernel(lambda t: nl.where(t > 0, t, y))(x), np.where(x > 0, x, np.float32(y))
    )

    def predicated(tile: Any) -> Any:
        largest = nl.ndarray((tile.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
        dst = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.select_reduce(
            dst, tile > 0, tile, y, reduce_res=largest, reduce_cmd=nisa.reduce_cmd.reset_reduce
        )
        return nl.subtract(dst, largest)

    chosen = np.where(x > 0, x, np.float32(y))
    np.testing.assert_array_equal(kernel(predicated)(x), chosen - chosen.max(axis=1, keepdims=True))


@settings(max_examples=20)
@given(data=st.data())
def test_a_scan(data: st.DataObject):
    x = data.draw(tiles())
    y = data.draw(hnp.arrays(np.float32, x.shape, elements=floats))
    result = kernel(lambda a, b: cnisa.tensor_tensor_scan(a, b, initial=0.0, op0=np.multiply, op1=np.add))(
        x, y
    )
    state = np.zeros(len(x), np.float32)
    for place in range(x.shape[1]):
        state = x[:, place] * state + y[:, place]
        np.testing.assert_allclose(result[:, place], state, rtol=1e-4, atol=1e-4)


@settings(max_examples=20)
@given(x=tiles())
def test_partitions_are_reduced_on_request(x: np.ndarray):
    result = kernel(lambda t: cnisa.tensor_partition_reduce(np.add, t))(x)
    np.testing.assert_allclose(result, x.sum(axis=0, keepdims=True), rtol=1e-4, atol=1e-4)


@settings(max_examples=20)
@given(
    rows=small, columns=small, offset=st.integers(-9, 9), step=st.integers(-3, 3), channel=st.integers(-3, 3)
)
def test_iota_counts(rows: int, columns: int, offset: int, step: int, channel: int):
    def body(tile: Any) -> Any:
        dst = nl.ndarray(tile.shape, dtype=nl.int32, buffer=nl.sbuf)
        nisa.iota(dst, [[step, columns]], offset, channel)
        return dst

    expected = offset + channel * np.arange(rows)[:, None] + step * np.arange(columns)
    np.testing.assert_array_equal(kernel(body)(np.zeros((rows, columns), np.float32)), expected)
    there = kernel(lambda _: cnisa.iota(expected, nl.int32))(np.zeros((1, 1), np.float32))
    np.testing.assert_array_equal(there, expected)


@settings(max_examples=10)
@given(x=hnp.arrays(np.float32, (4, 12), elements=floats, unique=True))
def test_the_eight_largest_and_where_they_are(x: np.ndarray):
    largest = -np.sort(-x, axis=1)[:, :8]
    np.testing.assert_array_equal(kernel(cnisa.max8)(x), largest)
    places = kernel(lambda t: cnisa.nc_find_index8(t, cnisa.max8(t)))(x)
    np.testing.assert_array_equal(np.take_along_axis(x, places.astype(np.int64), axis=1), largest)


def test_a_nan_of_any_bits_is_one_in_tfloat32():
    bits = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001], np.uint32)
    assert np.isnan(cast(bits.view(np.float32), tfloat32)).all()
    assert cast(np.array([np.inf, 1 + 2.0**-11], np.float32), tfloat32).tolist() == [np.inf, 1.0]
