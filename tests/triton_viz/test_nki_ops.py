"""Each op of nki.language and nki.isa computes what NumPy does, whatever shape, type and mask it is given."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tests.triton_viz.nki_kernels  # noqa: F401 - makes nki importable
import triton_viz
from triton_viz.dsls.nki import classic_isa, isa, language
from triton_viz.dsls.nki.functions import FUNCTIONS
from triton_viz.errors import KernelError

cnisa: Any = classic_isa
nisa: Any = isa
nl: Any = language


def kernel(body: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a function of tiles on arrays: loads each, and stores what it returns."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        def program(*tensors: Any) -> Any:
            result = body(*(nl.load(tensor) for tensor in tensors))
            out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.copy(result) if result.memory == "PSUM" else result)
            return out

        return triton_viz.trace((), backend="nki")(program)(*arrays)

    return run


small = st.integers(1, 6)
floats = st.floats(-4, 4, width=32)


def tiles(rank: int = 2, dtype: Any = np.float32, elements: Any = floats) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(dtype, st.tuples(*[small] * rank), elements=elements)


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
def test_whole_numbers_stay_whole(x: np.ndarray, n: int):
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
def test_masked_loads_and_stores_touch_what_is_inside(data: st.DataObject):
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
        (lambda x, y: x & 1, "bitwise_and works on integers"),
        (lambda x, y: nl.load(3), "nl.load takes a tensor, not int"),
        (lambda x, y: nl.exp(1.0), "exp takes tiles; compute with plain numbers in Python"),
        (lambda x, y: nl.ndarray((2, 2), dtype="nonsense"), "'nonsense' is no type of elements"),
        (lambda x, y: nl.add(x, 1, mask=np.ones((7, 7), bool)), "a mask of shape (7, 7) does not fit"),
        (lambda x, y: nl.program_id(2), "program_id(2): the grid () has no axis 2"),
    ],
)
def test_a_mistake_is_explained_at_its_line(body: Callable[..., Any], said: str):
    with pytest.raises((KernelError, TypeError)) as caught:
        kernel(body)(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32))
    assert said in str(caught.value).replace("tile ", "")
    assert f"{__file__}:" in str(caught.value)


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


def test_a_masked_result_leaves_what_it_is_assigned_to_as_it_is():
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
    """State in columns, instructions on parts of them: as flash attention keeps it."""

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
    """Indices of grids of any rank make tiles of the axes that they run along, and so do their masks."""

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
