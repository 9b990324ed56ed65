"""Triton's types as NumPy's: how a value is computed with, and how it lies in memory.

bfloat16 and the 8-bit floats, which NumPy lacks, are computed with as float32 and rounded after every op.
"""

from typing import Any

import numpy as np
import triton.language as tl

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
"""The floats that NumPy lacks, by the name under which `core.grid.floats` knows them."""

COMPUTED: dict[Any, np.dtype] = {
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
STORED: dict[Any, np.dtype] = COMPUTED | {
    narrow: np.dtype(np.uint16 if narrow.primitive_bitwidth == 16 else np.uint8) for narrow in NARROW
}
ADDRESS = np.dtype(np.int64)

RANGES = {
    kind: (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in set(COMPUTED.values())
    if kind.kind in "iu"
}
"""The smallest and largest number of each type of whole numbers."""


def computed(dtype: Any) -> np.dtype:
    """NumPy's type for the values of a Triton type, a pointer's being an address."""
    return COMPUTED.get(dtype, ADDRESS)


def stored(dtype: Any) -> np.dtype:
    """NumPy's type for what lies in memory."""
    return STORED.get(dtype, ADDRESS)


def width(pointer: Any) -> int:
    """How many bytes apart the elements behind a pointer are; a bool takes a byte, too."""
    return max(1, pointer.scalar.element_ty.primitive_bitwidth // 8)


def plain(value: Any) -> Any:
    """What a constexpr holds; anything else as it is."""
    return value.value if isinstance(value, tl.constexpr) else value
