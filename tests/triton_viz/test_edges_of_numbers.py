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


@triton.jit
def converts(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


@pytest.mark.parametrize("of", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        (torch.int16, -(2**15), 2**15 - 1),
        (torch.uint16, 0, 2**16 - 1),
        (torch.int32, -(2**31), 2**31 - 1),
        (torch.uint32, 0, 2**32 - 1),
        (torch.int64, -(2**63), 2**63 - 1),
        (torch.uint64, 0, 2**64 - 1),
        (torch.int8, 0, -1),  # the lower halves of 16 bits
        (torch.uint8, 0, -1 % 256),
    ],
)
def test_floats_that_are_too_large_for_an_integer_become_the_nearest_one(
    of: torch.dtype, dtype: torch.dtype, least: int, most: int
):
    inf, fits = math.inf, [0.0, -0.0, 1.75, 100.0, 2.5, 0.75]
    out = torch.zeros(8, dtype=dtype)
    triton_viz.trace(())(converts)[(1,)](torch.tensor([-inf, inf, *fits], dtype=of), out, BLOCK=8)
    assert out.tolist() == [least, most, 0, 0, 1, 100, 2, 0]
    negative = torch.tensor([-1.0, -100.5], dtype=of)
    triton_viz.trace(())(converts)[(1,)](negative, out, BLOCK=2)
    assert out.tolist()[:2] == ([-1, -100] if dtype.is_signed else [0, 0])


@pytest.mark.parametrize(
    ("of", "dtype", "expected"),
    [
        (torch.float32, torch.int32, 0),
        (torch.float32, torch.uint32, 0),
        (torch.float32, torch.int64, -(2**63)),
        (torch.float64, torch.int32, -(2**31)),
    ],
)
def test_a_nan_is_an_integer_as_in_ptx(of: torch.dtype, dtype: torch.dtype, expected: int):
    out = torch.zeros(2, dtype=dtype)
    triton_viz.trace(())(converts)[(1,)](torch.tensor([math.nan, 3.0], dtype=of), out, BLOCK=2)
    assert out.tolist() == [expected, 3]
