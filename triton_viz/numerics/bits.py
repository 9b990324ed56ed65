"""Integer functions of the device libraries that NumPy lacks."""

from collections.abc import Callable

import numpy as np


def as_type(function: Callable[..., np.ndarray], dtype: type[np.generic]) -> Callable[..., np.ndarray]:
    """The function with its result's bits taken for another type of the same width."""
    return lambda *arrays: np.asarray(function(*arrays)).view(dtype)


def leading_zeros(a: np.ndarray) -> np.ndarray:
    """How many zero bits an unsigned number starts with."""
    width = 8 * a.dtype.itemsize
    for shift in (1, 2, 4, 8, 16, 32)[: width.bit_length() - 1]:
        a = a | a >> a.dtype.type(shift)
    return width - np.bitwise_count(a).astype(np.int32)


def first_set(a: np.ndarray) -> np.ndarray:
    """The position of the lowest bit set, counted from 1; 0 if there is none."""
    below = (a & -a) - a.dtype.type(1)
    return np.where(a == 0, 0, np.bitwise_count(below).astype(np.int32) + 1)


def reverse(a: np.ndarray) -> np.ndarray:
    """The bits of an unsigned number in the opposite order."""
    kind = a.dtype.type
    full = (1 << 8 * a.dtype.itemsize) - 1
    for shift in (1, 2, 4):
        mask = kind(full // ((1 << 2 * shift) - 1) * ((1 << shift) - 1))  # 0x55..., 0x33..., 0x0f...
        a = (a >> kind(shift) & mask) | (a & mask) << kind(shift)
    return a.byteswap()


def permute_bytes(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Four bytes picked out of the eight of b and a: each digit of the selector says which."""
    both = b.astype(np.uint64) << np.uint64(32) | a
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, selector.shape), np.uint32)
    for position in range(4):
        digit = (selector >> np.uint32(4 * position) & np.uint32(7)).astype(np.uint64)
        byte = (both >> digit * np.uint64(8) & np.uint64(0xFF)).astype(np.uint32)
        result |= byte << np.uint32(8 * position)
    return result


def multiply_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the product of two 32-bit numbers."""
    wide = np.int64 if a.dtype == np.int32 else np.uint64
    return (a.astype(wide) * b.astype(wide) >> wide(32)).astype(a.dtype)


def multiply_high_64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the product of two 64-bit numbers, from four products of halves."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    x1, x0, y1, y0 = x >> half, x & low, y >> half, y & low
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype == np.int64:  # a negative number was taken for one that is 2**64 larger
        high = high - np.where(a < 0, y, 0).astype(np.uint64) - np.where(b < 0, x, 0).astype(np.uint64)
    return high.astype(a.dtype)


def multiply_24(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The lower half of the product of the lower 24 bits."""
    shift = a.dtype.type(8)
    return (a << shift >> shift) * (b << shift >> shift)


def add_distance(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """|a - b| + c, modulo 2**32."""
    distance = np.abs(a.astype(np.int64) - b.astype(np.int64))
    return (distance + c.astype(np.int64)).astype(a.dtype)


def average_down(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(a + b) / 2 rounded down, without overflow."""
    return (a & b) + ((a ^ b) >> a.dtype.type(1))


def average_up(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(a + b) / 2 rounded up, without overflow."""
    return (a | b) - ((a ^ b) >> a.dtype.type(1))


def join_halves(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The float64 whose bits these two are."""
    return np.asarray(high.astype(np.uint64) << np.uint64(32) | low).view(np.float64)


def halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upper and the lower 32 bits of a float64, signed."""
    whole = a.view(np.uint64)
    upper, lower = whole >> np.uint64(32), whole & np.uint64(0xFFFFFFFF)
    return upper.astype(np.uint32).view(np.int32), lower.astype(np.uint32).view(np.int32)
