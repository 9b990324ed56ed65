"""Integers of kernels wrap around like NumPy's, also in affine form."""

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

import triton_viz
from triton_viz.dsls.triton.ops.lane_builder import LaneBuilder
from triton_viz.dsls.triton.ops.types import COMPUTE_DTYPES
from triton_viz.executor.memory import Memory
from triton_viz.executor.value import Value

TYPES = [tl.int8, tl.uint8, tl.int16, tl.uint16, tl.int32, tl.uint32, tl.int64, tl.uint64]
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "shl": np.left_shift}
COMPARED = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
COMPARED |= {"EQ": np.equal, "NE": np.not_equal}


def near_ends(dtype: Any) -> list[int]:
    """Numbers near the ends of a type's range, near zero, and near the ends of narrower types' ranges."""
    info = np.iinfo(COMPUTE_DTYPES[dtype])
    ends = [info.min, info.max, 0, *(sign * 2**bits for bits in (31, 32, 62) for sign in (1, -1))]
    near = [end + distance for end in ends for distance in range(-3, 4)]
    return [number for number in near if info.min <= number <= info.max]


def numbers(dtype: Any) -> st.SearchStrategy[int]:
    info = np.iinfo(COMPUTE_DTYPES[dtype])
    return st.sampled_from(near_ends(dtype)) | st.integers(max(info.min, -9), min(info.max, 9))


@st.composite
def programs(draw: Any) -> tuple[Any, ...]:
    """A block's shape, and ops on it: casts, and arithmetic with a number for each lane, or for all."""
    shape = draw(st.sampled_from([(1,), (4,), (16,), (1, 4), (4, 2)]))
    dtype = draw(st.sampled_from([*TYPES, tl.int64, tl.int64, tl.uint64]))
    steps: list[Any] = [("cast", dtype)]
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["cast", "splat", "rsub", "double", *BINARY]))
        if kind == "cast":
            dtype = draw(st.sampled_from(TYPES))
            steps.append((kind, dtype))
        elif kind == "double":
            steps.append((kind,))
        else:
            numerous = st.integers(0, 7) if kind == "shl" else numbers(dtype)
            constants = draw(st.lists(numerous, min_size=1, max_size=2))
            steps.append((kind, np.array(constants, COMPUTE_DTYPES[dtype])))
    return shape, steps


def start(builder: LaneBuilder, shape: tuple[int, ...]) -> tuple[Value, np.ndarray]:
    """0, 1, 2, ... along the last axis, and ten times that along the first of two."""
    block = builder.create_make_range(None, 0, shape[-1])
    data = np.arange(shape[-1], dtype=np.int32)
    if len(shape) == 2:
        rows = builder.create_expand_dims(builder.create_make_range(None, 0, shape[0]), 1)
        ten = splat(builder, np.array([10], np.int32), tl.int32, (shape[0], 1))
        rows = builder.create_broadcast(builder.create_mul(rows, ten), shape)
        block = builder.create_add(
            rows, builder.create_broadcast(builder.create_expand_dims(block, 0), shape)
        )
        data = np.arange(shape[0], dtype=np.int32)[:, None] * 10 + data
    return block, data[None]


def splat(builder: LaneBuilder, constants: np.ndarray, dtype: Any, shape: tuple[int, ...]) -> Value:
    return builder.create_splat(tl.block_type(dtype, list(shape)), Value(constants, dtype))


def same(found: np.ndarray, expected: np.ndarray, message: str = "") -> None:
    """Whether two values are equal in all lanes; the lane axis may have length one."""
    shape = np.broadcast_shapes(found.shape, expected.shape)
    found, expected = (np.broadcast_to(array, shape) for array in (found, expected))
    np.testing.assert_array_equal(found, expected, message)


@given(programs())
def test_formulas_wrap_around_like_arrays(program: tuple[Any, ...]):
    shape, steps = program
    builder = LaneBuilder(Memory([]))
    dtype: Any = tl.int32
    with np.errstate(all="ignore"):
        value, data = start(builder, shape)
        for kind, *rest in steps:
            if kind == "cast":
                (dtype,) = rest
                value = builder.create_int_cast(value, dtype, dtype.is_int_signed())
                data = data.astype(COMPUTE_DTYPES[dtype])
            elif kind == "double":
                value, data = builder.create_add(value, value), data + data
            else:
                other = splat(builder, rest[0], dtype, shape)
                wide = rest[0].reshape(-1, *(1,) * len(shape))
                if kind == "splat":
                    value, data = other, np.broadcast_to(wide, (len(wide), *shape))
                elif kind == "rsub":
                    value, data = builder.create_sub(other, value), wide - data
                else:
                    value = getattr(builder, f"create_{kind}")(value, other)
                    data = BINARY[kind](data, wide)
            assert data.dtype == COMPUTE_DTYPES[dtype]
            same(value.data, data)
        sign = "S" if dtype.is_int_signed() else "U"
        for limit in near_ends(dtype):
            other = splat(builder, np.array([limit], COMPUTE_DTYPES[dtype]), dtype, shape)
            for name, compare in COMPARED.items():
                op = f"create_icmp{'' if name in ('EQ', 'NE') else sign}{name}"
                found, expected = getattr(builder, op)(value, other).data, compare(data, other.data)
                same(found, expected, f"{op} {limit}")


@triton.jit
def compares(out, limit, N: tl.constexpr):
    at = tl.arange(0, N)
    low = at.to(tl.int64) - 8
    tl.store(out + at, (low > limit).to(tl.int32))
    tl.store(out + N + at, (low < -limit - 1).to(tl.int32))
    tl.store(out + 2 * N + at, (limit - low > 0).to(tl.int32))
    tl.store(out + 3 * N + at, (-limit - 1 - low <= 0).to(tl.int32))


def test_comparisons_with_the_largest_number():
    out, limit, n = torch.full((64,), -1, dtype=torch.int32), 2**63 - 1, 16
    triton_viz.trace()(compares)[(1,)](out, limit, N=n)
    low = np.arange(n, dtype=np.int64) - 8
    most = np.int64(limit)
    with np.errstate(over="ignore"):
        expected = [low > most, low < -most - 1, most - low > 0, -most - 1 - low <= 0]
    assert out.tolist() == np.concatenate(expected).astype(int).tolist()


@triton.jit
def wraps_to_itself(x, out, far, N: tl.constexpr):
    """4 * far is 2**64: on a GPU, as here, all elements are the first."""
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at.to(tl.int64) * far))


def test_addresses_wrap_around():
    x, out = torch.arange(1.0, 5.0), torch.zeros(4)
    triton_viz.trace()(wraps_to_itself)[(1,)](x, out, 2**62, N=4)
    assert out.tolist() == [1.0] * 4


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_range_of_one_is_the_same_number_when_it_is_broadcast(dtype: str):
    builder = LaneBuilder(Memory([]))
    one = builder.create_int_cast(builder.create_make_range(None, 3, 4), getattr(tl, dtype), True)
    assert builder.create_broadcast(one, (4,)).data.tolist() == [[3] * 4]
