"""The narrow floats that NumPy lacks: bfloat16, the fp8 types, and the types of scaled dot products.

A block of one of these types is a float32 array whose elements the narrow type can represent. Arithmetic is
done in float32, and `round_to` rounds the result to the narrow type. Memory holds bits: `decode` reads them,
`pack` writes them. Types have Triton's names, the keys of `STORAGE`.

ml_dtypes defines the values of each type, and converts bfloat16. 8-bit floats are looked up in tables made
from it, which is several times as fast, and because its conversions do not saturate.

Conversions of extreme values give the results of Triton's compiled kernels, not those of `Tensor.to`:

- Too large for fp8 is the largest finite value, an infinity too (`cvt.rn.satfinite` on NVIDIA; Triton sets
  FP16_OVFL on AMD). PyTorch agrees for fp8e4nv, has infinity for fp8e5, and NaN for the two AMD types.
- The AMD types keep infinity apart from overflow: the mode above leaves a true infinity alone, and the code
  that stands for it there is NaN's.
- fp8e5 toward zero keeps infinity: it is the upper byte of a float16 that was itself rounded toward zero.
- fp8e4b15 has neither infinity nor NaN, ends at 1.75 though its last code is 1.875, and rounds ties away from
  zero with every rounding mode, as does Triton's only instruction sequence for this conversion.
"""

import functools
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

STORAGE: dict[str, np.dtype] = {
    "bf16": np.dtype(np.uint16),
    "fp8e5": np.dtype(np.uint8),
    "fp8e4nv": np.dtype(np.uint8),
    "fp8e4b8": np.dtype(np.uint8),
    "fp8e5b16": np.dtype(np.uint8),
    "fp8e4b15": np.dtype(np.uint8),
}
"""The unsigned integers that hold a type's bits in memory."""

_QUIET_NAN = 0x7FC00000


class _Format(NamedTuple):
    """An fp8 type. Codes are given without their sign bit."""

    type: Any
    """ml_dtypes' type of the same numbers, or of these times a power of two."""
    limit: int
    """The code of the largest number that a conversion gives."""
    infinity: int | None = None
    exponent: int = 0
    """The power of two by which `type` has larger numbers."""


_FORMATS = {
    "fp8e5": _Format(ml_dtypes.float8_e5m2, limit=0x7B, infinity=0x7C),
    "fp8e4nv": _Format(ml_dtypes.float8_e4m3fn, limit=0x7E),
    "fp8e4b8": _Format(ml_dtypes.float8_e4m3fnuz, limit=0x7F),
    "fp8e5b16": _Format(ml_dtypes.float8_e5m2fnuz, limit=0x7F),
    # No other library has it: a bias of 15 where fp8e4b8 has 8, and a -0.
    "fp8e4b15": _Format(ml_dtypes.float8_e4m3fnuz, limit=0x7E, exponent=7),
}


def decode(bits: np.ndarray, name: str) -> np.ndarray:
    """The values of these bits, as float32; exact, and every NaN keeps its code."""
    bits = np.asarray(bits)
    if name != "bf16":
        return _look_up(_values(name), bits.view(np.uint8))
    return np.asarray(bits.view(ml_dtypes.bfloat16).astype(np.float32))


def encode(values: np.ndarray, name: str, toward_zero: bool = False) -> np.ndarray:
    """The bits of float32 values converted to the type, rounded to nearest even or toward zero."""
    values = np.asarray(values, np.float32)
    if name == "bf16":
        return pack(round_to(values, name, toward_zero), name)
    return _look_up(_conversions(name, toward_zero), _upper_half(values))


def pack(values: np.ndarray, name: str) -> np.ndarray:
    """The bits that a store writes for values that the type can represent: the inverse of `decode`.

    Unlike `encode` this converts nothing: an infinity in fp8e5 stays one, as when a kernel only copies it.
    """
    values = np.asarray(values, np.float32)
    if name != "bf16":
        return _look_up(_codes(name), _upper_half(values))
    out = np.empty(values.shape, np.uint16)
    return np.right_shift(values.view(np.uint32), 16, out=out, casting="unsafe")


def round_to(values: np.ndarray, name: str, toward_zero: bool = False) -> np.ndarray:
    """These float32 values as the type holds them, again as float32 (a new array)."""
    values = np.asarray(values, np.float32)
    if name != "bf16":
        return decode(encode(values, name, toward_zero), name)
    if not toward_zero:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(values.astype(ml_dtypes.bfloat16).astype(np.float32))
    out = np.bitwise_and(values.view(np.uint32), 0xFFFF0000)
    nan = np.isnan(values)
    if nan.any():  # the bits that distinguish a NaN from infinity may be cut off
        out = np.where(nan, out | _QUIET_NAN, out)
    return out.view(np.float32)


def decode_e2m1(bits: np.ndarray, axis: int = -1) -> np.ndarray:
    """The fp4 values of these bytes, two of each along `axis`, the lower four bits first."""
    codes = np.asarray(bits).view(np.uint8)
    axis = axis % codes.ndim
    pairs = _E2M1_PAIRS.take(codes, axis=0)  # (..., 2)
    pairs = np.moveaxis(pairs, -1, axis + 1)
    shape = (*codes.shape[:axis], 2 * codes.shape[axis], *codes.shape[axis + 1 :])
    return pairs.reshape(shape)


def decode_e8m0(bits: np.ndarray) -> np.ndarray:
    """The scales of these bytes: powers of two from 2**-127, and NaN for 255."""
    return _look_up(_E8M0, np.asarray(bits).view(np.uint8))


def _look_up(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(table.take(index))  # an array, also where the index has no axes


@functools.cache
def _values(name: str) -> np.ndarray:
    """The float32 value of each of the 256 codes."""
    kind = _FORMATS[name]
    code = np.arange(256, dtype=np.uint8)
    values = np.ldexp(code.view(kind.type).astype(np.float32), -kind.exponent)
    if kind.exponent:
        values[0x80] = -0.0
    # NaNs differ where the upper half of a float32 shows it, so that a copy gives back the same bits. All are
    # quiet: a signalling one would make NumPy warn of the first sum.
    wide = code.astype(np.uint32)
    nans = _QUIET_NAN | ((wide & 0x3F) << 16) | ((wide & 0x80) << 24)
    return np.where(np.isnan(values), nans, values.view(np.uint32)).astype(np.uint32).view(np.float32)


def _upper_half(values: np.ndarray) -> np.ndarray:
    """The upper 16 bits of float32 values, the last of them set when anything was cut off (rounded to odd).

    That is enough for a conversion to fp8: at most four significant bits, and the side of a tie.
    """
    bits = values.view(np.uint32)
    out = np.empty(values.shape, np.uint32)
    np.bitwise_and(bits, 0xFFFF, out=out)
    out += 0xFFFF  # carries into bit 16 unless the lower half is zero
    out |= bits
    out >>= 16
    return out


@functools.cache
def _conversions(name: str, toward_zero: bool) -> np.ndarray:
    """The code for each upper half of a float32."""
    kind = _FORMATS[name]
    half = np.arange(1 << 16, dtype=np.uint32)
    value = (half << 16).view(np.float32)
    nan = np.isnan(value)
    size = np.where(nan, 0, np.abs(value)).astype(np.float64)
    values = _values(name)
    grid = values[: kind.limit + 1].astype(np.float64)
    code = np.searchsorted(grid, size, side="right") - 1  # toward zero, and no further than the limit
    above = np.minimum(code + 1, kind.limit)
    to_lower, to_upper = size - grid[code], grid[above] - size
    if name == "fp8e4b15":
        code = np.where(to_upper <= to_lower, above, code)
    elif not toward_zero:
        code = np.where((to_upper < to_lower) | ((to_upper == to_lower) & (code % 2 == 1)), above, code)
    code |= (half >> 8).astype(np.int64) & 0x80
    if np.isnan(values[0x80]):  # there is no -0: its code is the only NaN
        code[code == 0x80] = 0
        code[nan | np.isinf(value)] = 0x80
    elif name == "fp8e4b15":
        code[nan] |= kind.limit
    else:
        code[nan] |= 0x7F
    if toward_zero and kind.infinity is not None:
        code[value == np.inf], code[value == -np.inf] = kind.infinity, kind.infinity | 0x80
    return code.astype(np.uint8)


@functools.cache
def _codes(name: str) -> np.ndarray:
    """Like `_conversions`, but a value of the type, whichever, is given its own code."""
    codes = _conversions(name, False).copy()
    codes[_values(name).view(np.uint32) >> 16] = np.arange(256)
    return codes


_E2M1 = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
_E2M1_PAIRS = np.stack([_E2M1[np.arange(256) & 15], _E2M1[np.arange(256) >> 4]], axis=1)
_E8M0 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)


def round_to_tf32(values: np.ndarray) -> np.ndarray:
    """float32 numbers rounded to the ten bits of mantissa that matrix units take, to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)
