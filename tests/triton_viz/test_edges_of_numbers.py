"""Infinities, signed zeros, NaNs and ties give the same results as on a GPU."""

import math

import pytest
import torch
import triton
import triton.language as tl

import triton_viz

pytestmark = pytest.mark.usefixtures("no_launches")


@triton.jit
def swaps(x, expected, new, out):
    at = tl.program_id(0)
    tl.store(out + at, tl.atomic_cas(x + at, tl.load(expected + at), tl.load(new + at)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_compare_and_swap_compares_bits(dtype: torch.dtype):
    nan = math.nan
    x = torch.tensor([-0.0, 0.0, nan, 1.0, 1.0, nan], dtype=dtype)
    expected = torch.tensor([0.0, 0.0, nan, 1.0, 2.0, 1.0], dtype=dtype)
    before, out = x.clone(), torch.zeros_like(x)
    triton_viz.trace()(swaps)[(6,)](x, expected, torch.full_like(x, 5.0), out)
    swapped = torch.tensor([False, True, True, True, False, False])
    torch.testing.assert_close(x, torch.where(swapped, 5.0, before), equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(out, before, equal_nan=True, rtol=0, atol=0)


@triton.jit
def extremes(x, values, places, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    block = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    most, at_most = tl.max(block, axis=0, return_indices=True)
    least, at_least = tl.min(block, axis=0, return_indices=True)
    tl.store(values + 2 * row, most)
    tl.store(values + 2 * row + 1, least)
    tl.store(places + 2 * row, at_most)
    tl.store(places + 2 * row + 1, at_least)


def test_an_infinity_is_found_among_nans():
    nan, inf = math.nan, math.inf
    x = torch.tensor(
        [
            [nan, -inf, nan, -inf],
            [nan, inf, inf, nan],
            [nan, -inf, inf, nan],
            [nan, 2, -inf, 2],
            [1, nan, 3, 3],
        ]
    )
    values, places = torch.zeros(5, 2), torch.zeros(5, 2, dtype=torch.int32)
    triton_viz.trace()(extremes)[(5,)](x, values, places, BLOCK=4)
    assert places.tolist() == [[1, 1], [1, 1], [2, 1], [1, 2], [2, 0]]
    assert values.tolist() == [[-inf, -inf], [inf, inf], [inf, -inf], [2, -inf], [3, 1]]


@triton.jit
def fuses(x, y, z, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.fma(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


def test_a_fused_product_of_bfloat16_is_rounded_once():
    """1.5 * 1.0234375 is in the middle between two values, so the addend decides, however small it is."""
    x, y = (torch.full((4,), value, dtype=torch.bfloat16) for value in (1.5, 1.0234375))
    z = torch.tensor([0.0, 2.0**-40, -(2.0**-40), math.inf], dtype=torch.bfloat16)
    out = torch.zeros_like(x)
    triton_viz.trace()(fuses)[(1,)](x, y, z, out, BLOCK=4)
    assert out.tolist() == [1.53125, 1.5390625, 1.53125, math.inf]


@triton.jit
def keeps(value, half: tl.float16, byte: tl.int8, out):  # pyright: ignore[reportInvalidTypeForm]
    tl.store(out, value)
    tl.store(out + 1, half)
    tl.store(out + 2, byte)


@pytest.mark.filterwarnings("error")
def test_an_argument_that_is_too_large_for_its_type_is_no_warning():
    out = torch.zeros(3, dtype=torch.float64)
    triton_viz.trace()(keeps)[(1,)](1e300, 1e6, 300, out)
    assert out.tolist() == [math.inf, math.inf, 44]
    triton_viz.trace()(keeps)[(1,)](-1e300, -70_000, math.nan, out)
    assert out.tolist()[:2] == [-math.inf, -math.inf]
