"""Process memory as NumPy arrays. Nothing is checked here: every address was checked by `memory.py`.

An array begins at the lowest address that an access touches, so any address of a process can be reached: user
memory reaches up to 2**47 on most x86-64, up to 2**48 or 2**52 on aarch64, and up to 2**56 with five-level
page tables.
"""

import ctypes
import sys
from typing import Any

import numpy as np

from triton_viz.executor.affine import Affine, spread

_BYTES: Any = ctypes.c_char * sys.maxsize
"""As long as a buffer can be. Only its beginning is ever used."""


def array_at(address: int, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...]) -> np.ndarray:
    """The memory whose first element is at an address, as an array. Strides are in bytes, of any sign."""
    below, _ = spread(strides, shape)
    buffer = _BYTES.from_address((address + below) % 2**64)
    return np.ndarray(shape, dtype, buffer=buffer, offset=-below, strides=strides)


def window(form: Affine, lanes: int, step: int, dtype: np.dtype) -> np.ndarray:
    """The memory of blocks whose lanes are evenly apart, as one array."""
    return array_at(int(form.base[0]), (lanes, *form.shape), dtype, (step, *form.steps))


def windows(form: Affine, dtype: np.dtype) -> tuple[np.ndarray | None, np.ndarray]:
    """All blocks that start between the first and the last one's start, and which of these are the lanes'.

    None in place of the blocks if the distance between two starts is not a multiple of the element size.
    """
    first = int(form.base.min())
    index, rest = np.divmod(form.base - first, dtype.itemsize)
    if rest.any():
        return None, index
    return array_at(first, (int(index.max()) + 1, *form.shape), dtype, (dtype.itemsize, *form.steps)), index


def take(addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values at each address."""
    flat, index = _flat(addresses, dtype)
    if flat is not None:
        return flat[index]
    flat, index = _flat(addresses[..., None] + np.arange(dtype.itemsize), np.dtype(np.uint8))
    return flat[index].view(dtype)[..., 0]  # type: ignore[index] - bytes always fit


def put(addresses: np.ndarray, values: np.ndarray) -> None:
    """Write to each address, in order."""
    flat, index = _flat(addresses, values.dtype)
    if flat is None:
        parts = np.arange(values.dtype.itemsize)
        flat, index = _flat(addresses[..., None] + parts, np.dtype(np.uint8))
        values = np.ascontiguousarray(values)[..., None].view(np.uint8)
    flat[index] = values  # type: ignore[index] - bytes always fit


def _flat(addresses: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray | None, np.ndarray]:
    """The memory that holds all addresses as one array of this type, and their indices in it.

    None in place of the array if the distance between two addresses is not a multiple of the element size.
    """
    size, low = dtype.itemsize, int(addresses.min())
    distance = addresses - low
    if size > 1:
        if (distance & (size - 1)).any():
            return None, addresses
        distance >>= size.bit_length() - 1
    return array_at(low, (int(distance.max()) + 1,), dtype, (size,)), distance
