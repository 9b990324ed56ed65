"""The NumPy dtypes of Triton's types: in computations, and in memory.

For bfloat16 and the 8-bit floats, which NumPy lacks, ops compute in float32 and round the result.
"""

from typing import Any, NamedTuple

import numpy as np
import triton.language as tl

from triton_viz.executor.value import Value
from triton_viz.numerics import floats

NARROW = {tl.bfloat16: "bf16"} | {
    getattr(tl, long): short
    for long, short in {
        "float8e5": "fp8e5",
        "float8e4nv": "fp8e4nv",
        "float8e4b8": "fp8e4b8",
        "float8e5b16": "fp8e5b16",
        "float8e4b15": "fp8e4b15",
    }.items()
    if hasattr(tl, long)
}
"""The floats that NumPy lacks, by their names in `numerics.floats`."""

COMPUTE_DTYPES: dict[Any, np.dtype] = {
    tl.int1: np.dtype(bool),
    tl.int8: np.dtype(np.int8),
    tl.uint8: np.dtype(np.uint8),
    tl.int16: np.dtype(np.int16),
    tl.uint16: np.dtype(np.uint16),
    tl.int32: np.dtype(np.int32),
    tl.uint32: np.dtype(np.uint32),
    tl.int64: np.dtype(np.int64),
    tl.uint64: np.dtype(np.uint64),
    tl.float16: np.dtype(np.float16),
    tl.float32: np.dtype(np.float32),
    tl.float64: np.dtype(np.float64),
} | {narrow: np.dtype(np.float32) for narrow in NARROW}
MEMORY_DTYPES: dict[Any, np.dtype] = COMPUTE_DTYPES | {
    narrow: np.dtype(np.uint16 if narrow.primitive_bitwidth == 16 else np.uint8) for narrow in NARROW
}
ADDRESS = np.dtype(np.int64)


class Atomically(NamedTuple):
    """The cache policy that marks a load or store as atomic, with its memory order and scope."""

    order: tuple[Any, ...]


RANGES = {
    np_dtype: (int(np.iinfo(np_dtype).min), int(np.iinfo(np_dtype).max))
    for np_dtype in set(COMPUTE_DTYPES.values())
    if np_dtype.kind in "iu"
}
"""The bounds of each integer type."""


def compute_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype in which values of a Triton type are computed; pointers are int64 addresses."""
    return ADDRESS if dtype.is_ptr() else COMPUTE_DTYPES.get(dtype, ADDRESS)


def memory_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype of a Triton type in memory."""
    return ADDRESS if dtype.is_ptr() else MEMORY_DTYPES.get(dtype, ADDRESS)


def narrow_name(dtype: Any) -> str | None:
    """The name of a float that NumPy lacks; None for any other type."""
    return None if dtype.is_ptr() else NARROW.get(dtype)  # pointer types are not hashable


def width(pointer: Any) -> int:
    """The size of an element behind a pointer, in bytes: one for a bool, eight for a pointer."""
    element = pointer.scalar.element_ty
    return ADDRESS.itemsize if element.is_ptr() else max(1, element.primitive_bitwidth // 8)


def plain(value: Any) -> Any:
    """The value of a constexpr; any other value unchanged."""
    return value.value if isinstance(value, tl.constexpr) else value


def to_memory(values: Value, dtype: Any) -> np.ndarray:
    """Values in the representation in memory of a type."""
    narrow = narrow_name(dtype)
    data = floats.pack(values.data, narrow) if narrow else values.data
    return data.astype(memory_dtype(dtype), copy=False)
