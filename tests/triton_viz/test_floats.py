"""The narrow floats: every bit pattern, every rounding, every edge."""

import warnings
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from triton_viz.dsls.nki.dtypes import cast, tfloat32
from triton_viz.numerics import floats

TORCH = {
    "bf16": torch.bfloat16,
    "fp8e5": torch.float8_e5m2,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}
ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "fp8e5": ml_dtypes.float8_e5m2,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e4b8": ml_dtypes.float8_e4m3fnuz,
    "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
}
LARGEST = {"fp8e5": 57344.0, "fp8e4nv": 448.0, "fp8e4b8": 240.0, "fp8e5b16": 57344.0, "fp8e4b15": 1.75}
ALL = sorted(floats.STORAGE)
STANDARD = sorted(TORCH)
FP8 = sorted(LARGEST)


def every_pattern(name: str) -> np.ndarray:
    storage = floats.STORAGE[name]
    return np.arange(1 << (8 * storage.itemsize)).astype(storage)


def hard_to_round(name: str) -> np.ndarray:
    """Every value of the type and of bfloat16, the midpoints between them, their neighbours, and special
    values."""
    own = floats.decode(every_pattern(name), name)
    own = np.unique(own[np.isfinite(own)])
    halves = (own[1:].astype(np.float64) + own[:-1]) / 2
    coarse = floats.decode(every_pattern("bf16"), "bf16")
    exact = np.concatenate([own, halves.astype(np.float32), coarse[np.isfinite(coarse)]])
    near = np.concatenate([np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf))])
    near = np.clip(near, -np.finfo(np.float32).max, np.finfo(np.float32).max)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.4028235e38], np.float32)
    return np.concatenate([exact, near, special])


def converted_by_torch(values: np.ndarray, name: str) -> np.ndarray:
    """PyTorch's conversion of values that are clipped to an fp8 type's range beforehand."""
    if name in LARGEST:
        limit = LARGEST[name]
        bounded = np.clip(values, -limit, limit)
        keep = np.isinf(values) & (name in ("fp8e4b8", "fp8e5b16"))  # these alone have no saturated infinity
        values = np.where(keep, values, bounded)
    return torch.from_numpy(values).to(TORCH[name]).float().numpy()


def converted_by_fp8e4b15_instructions(values: np.ndarray) -> np.ndarray:
    """The steps of Triton's inline PTX for this type, for one half of a register."""
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    past = np.abs(half.astype(np.float64)) > np.abs(values.astype(np.float64))
    half = np.where(past & np.isfinite(values), np.nextafter(half, np.float16(0)), half)  # cvt.rz.f16.f32
    magnitude = np.fmin(np.abs(half), np.float16(1.75)).view(np.uint16)  # min.f16x2 ignores a NaN
    return ((half.view(np.uint16) & 0x8000 | (magnitude * 2 + 0x80) & 0x7FFF) >> 8).astype(np.uint8)


def assert_same(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal, the sign of zero included, and NaN where the other is."""
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours, theirs)
    number = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.signbit(ours[number]), np.signbit(theirs[number]))


# -- reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STANDARD)
def test_every_pattern_reads_as_pytorch_and_ml_dtypes_read_it(name: str) -> None:
    bits = every_pattern(name)
    values = floats.decode(bits, name)
    assert_same(values, torch.from_numpy(bits).view(TORCH[name]).float().numpy())
    assert_same(values, bits.view(ML_DTYPES[name]).astype(np.float32))


def test_fp8e4b15_reads_as_the_upper_bits_of_a_float16() -> None:
    bits = every_pattern("fp8e4b15").astype(np.uint16)
    half = ((bits & 0x80) << 8 | (bits & 0x7F) << 7).view(np.float16)
    assert_same(floats.decode(bits.astype(np.uint8), "fp8e4b15"), half.astype(np.float32))


@pytest.mark.parametrize("name", ALL)
def test_bits_survive_a_copy(name: str) -> None:
    bits = every_pattern(name)
    again = floats.pack(floats.decode(bits, name), name)
    assert again.dtype == floats.STORAGE[name]
    np.testing.assert_array_equal(again, bits)


def test_fp4_reads_two_of_a_byte_lower_bits_first() -> None:
    bits = np.arange(256, dtype=np.uint8)
    low, high = bits & 15, bits >> 4
    expected = np.stack([low, high], 1).reshape(-1).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert_same(floats.decode_e2m1(bits), expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_fp4_doubles_the_axis_it_is_packed_along(axis: int) -> None:
    bits = np.random.default_rng(0).integers(0, 256, (3, 4, 5)).astype(np.uint8)
    values = floats.decode_e2m1(bits, axis)
    assert values.shape[axis] == 2 * bits.shape[axis]
    lines = np.moveaxis(bits, axis, -1).reshape(-1, bits.shape[axis])
    for line, ours in zip(lines, np.moveaxis(values, axis, -1).reshape(len(lines), -1), strict=True):
        np.testing.assert_array_equal(ours, floats.decode_e2m1(line))


def test_scales_are_powers_of_two_and_255_is_nan() -> None:
    bits = np.arange(256, dtype=np.uint8)
    assert_same(floats.decode_e8m0(bits), bits.view(ml_dtypes.float8_e8m0fnu).astype(np.float32))
    assert_same(floats.decode_e8m0(bits)[:255], np.array([2.0 ** (b - 127) for b in range(255)], np.float32))


# -- converting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STANDARD)
def test_converts_to_nearest_even(name: str) -> None:
    values = hard_to_round(name)
    assert_same(floats.round_to(values, name), converted_by_torch(values, name))
    assert_same(floats.decode(floats.encode(values, name), name), converted_by_torch(values, name))


@pytest.mark.parametrize("name", STANDARD)
def test_converts_toward_zero(name: str) -> None:
    values = hard_to_round(name)
    values = values[np.isfinite(values)]
    nearest = floats.round_to(values, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ml_dtypes warns if the next value after 0 is subnormal
        narrow = nearest.astype(ML_DTYPES[name])
        below = np.nextafter(narrow, narrow.dtype.type(0)).astype(np.float32)
    expected = np.where(np.abs(nearest) > np.abs(values), below, nearest)
    ours = floats.round_to(values, name, toward_zero=True)
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(floats.decode(floats.encode(values, name, True), name), ours)


@pytest.mark.parametrize("toward_zero", [False, True])
def test_fp8e4b15_converts_as_its_instructions_do(toward_zero: bool) -> None:
    values = hard_to_round("fp8e4b15")
    expected = converted_by_fp8e4b15_instructions(values)
    np.testing.assert_array_equal(floats.encode(values, "fp8e4b15", toward_zero), expected)


@pytest.mark.parametrize("name", FP8)
def test_too_large_for_fp8_is_the_largest_finite_value(name: str) -> None:
    values = np.array([1e6, -1e6, 3e38], np.float32)
    limit = LARGEST[name]
    assert floats.round_to(values, name).tolist() == [limit, -limit, limit]
    assert floats.round_to(values, name, toward_zero=True).tolist() == [limit, -limit, limit]


def test_too_large_for_bf16_is_infinite_only_when_rounded_to_nearest() -> None:
    largest = np.array([np.finfo(np.float32).max], np.float32)
    assert floats.round_to(largest, "bf16").tolist() == [np.inf]
    assert floats.round_to(largest, "bf16", toward_zero=True)[0] == float(ml_dtypes.finfo("bfloat16").max)


@pytest.mark.parametrize(
    ("name", "nearest", "zero"),
    [
        ("bf16", np.inf, np.inf),
        ("fp8e5", 57344.0, np.inf),
        ("fp8e4nv", 448.0, 448.0),
        ("fp8e4b8", np.nan, np.nan),
        ("fp8e5b16", np.nan, np.nan),
        ("fp8e4b15", 1.75, 1.75),
    ],
)
def test_infinity_is_converted_as_in_compiled_kernels(name: str, nearest: float, zero: float) -> None:
    values = np.array([np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(floats.round_to(values, name), np.array([nearest, -nearest], np.float32))
    np.testing.assert_array_equal(floats.round_to(values, name, True), np.array([zero, -zero], np.float32))


@pytest.mark.parametrize("toward_zero", [False, True])
@pytest.mark.parametrize("name", STANDARD)
def test_nan_stays_nan_whatever_its_bits(name: str, toward_zero: bool) -> None:
    patterns = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF, 0x7F810000], np.uint32)
    values = patterns.view(np.float32)
    assert np.isnan(floats.round_to(values, name, toward_zero)).all()
    assert np.isnan(floats.decode(floats.encode(values, name, toward_zero), name)).all()


def test_an_infinity_of_fp8e5_is_stored_as_it_is_but_converted_to_the_largest() -> None:
    infinity = floats.decode(np.array([0x7C], np.uint8), "fp8e5")
    assert floats.pack(infinity, "fp8e5").tolist() == [0x7C]
    assert floats.encode(infinity, "fp8e5").tolist() == [0x7B]


@given(values=hnp.arrays(np.float32, hnp.array_shapes(max_dims=3), elements=st.floats(width=32)))
def test_any_float_converts_as_pytorch_says(values: np.ndarray) -> None:
    for name in STANDARD:
        expected = converted_by_torch(values, name)
        assert_same(floats.round_to(values, name), expected)
        assert_same(floats.decode(floats.encode(values, name), name), expected)
    expected = converted_by_fp8e4b15_instructions(values)
    np.testing.assert_array_equal(floats.encode(values, "fp8e4b15"), expected)


@given(values=hnp.arrays(np.float32, (7,), elements=st.floats(width=32)), toward_zero=st.booleans())
def test_converting_twice_changes_nothing_more(values: np.ndarray, toward_zero: bool) -> None:
    for name in ALL:
        once = floats.round_to(values, name, toward_zero)
        assert_same(floats.round_to(once, name, toward_zero), once)
        np.testing.assert_array_equal(floats.pack(once, name), floats.encode(values, name, toward_zero))


# -- shapes --------------------------------------------------------------------------------------------------

LAYOUTS = {
    "no axes": lambda a: a[0, 0],
    "empty": lambda a: a[:0],
    "transposed": lambda a: a.T,
    "stepped": lambda a: a[::2, 1::3],
    "backwards": lambda a: a[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1, :, None], (5, a.shape[1], 3)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ALL)
def test_works_on_any_layout_and_leaves_its_input_alone(name: str, layout: str) -> None:
    whole = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    whole[0, 0] = np.nan
    values = np.asarray(LAYOUTS[layout](whole))
    plain = np.ascontiguousarray(values).reshape(values.shape)
    before = values.copy()

    rounded, bits = floats.round_to(values, name), floats.encode(values, name)
    assert rounded.shape == bits.shape == values.shape
    assert isinstance(rounded, np.ndarray)
    assert isinstance(bits, np.ndarray)
    assert bits.dtype == floats.STORAGE[name]
    np.testing.assert_array_equal(rounded, floats.round_to(plain, name))
    np.testing.assert_array_equal(bits, floats.encode(plain, name))
    np.testing.assert_array_equal(values, before)
    assert rounded.flags.writeable

    strided = np.asarray(LAYOUTS[layout](floats.encode(whole, name)))
    again = floats.decode(strided, name)
    assert isinstance(again, np.ndarray)
    np.testing.assert_array_equal(again, rounded)
    assert again.flags.writeable
    np.testing.assert_array_equal(floats.pack(again, name), strided)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scales_and_fp4_work_on_any_layout(layout: str) -> None:
    whole = np.random.default_rng(0).integers(0, 256, (6, 8)).astype(np.uint8)
    bits = np.asarray(LAYOUTS[layout](whole))
    plain = np.ascontiguousarray(bits).reshape(bits.shape)
    scales = floats.decode_e8m0(bits)
    assert isinstance(scales, np.ndarray)
    np.testing.assert_array_equal(scales, floats.decode_e8m0(plain))
    if bits.ndim:
        np.testing.assert_array_equal(floats.decode_e2m1(bits), floats.decode_e2m1(plain))


ROUND_TO_TF32 = [floats.round_to_tf32, lambda values: cast(values, tfloat32)]
"""Triton's, for tensor descriptors, and NKI's."""


@pytest.mark.parametrize("round_to_tf32", ROUND_TO_TF32, ids=["triton", "nki"])
@given(x=hnp.arrays(np.float32, 16, elements=st.floats(-65000, 65000, width=32)))
def test_tf32_has_the_mantissa_of_float16(round_to_tf32: Callable[[np.ndarray], np.ndarray], x: np.ndarray):
    x = x[np.abs(x) >= 2.0**-14]  # smaller ones are subnormal in float16
    np.testing.assert_array_equal(round_to_tf32(x), x.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("round_to_tf32", ROUND_TO_TF32, ids=["triton", "nki"])
def test_nan_and_infinity_have_no_other_value_in_tf32(round_to_tf32: Callable[[np.ndarray], np.ndarray]):
    nans = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(round_to_tf32(nans)).all()
    infinities = np.array([np.inf, -np.inf], np.float32)
    assert round_to_tf32(infinities).tolist() == [np.inf, -np.inf]
    assert round_to_tf32(np.array(1 + 2.0**-12, np.float32)).shape == ()
