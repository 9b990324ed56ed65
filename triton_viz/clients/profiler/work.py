"""How much arithmetic an op is.

Of an op on elements, its language says how many operations it is on each (`DSL.arithmetic`): an addition,
product, quotient, remainder, minimum, maximum or change of sign is one; a fused multiply-add or a clamp, two;
a function such as exp or sqrt, one, though a GPU takes longer for it. A product of tiles is 2 * M * N * K, a
reduction one for each pair that it combines (or what its own function does), a scan likewise. Not counted:
comparisons, selections, casts, and what only moves elements. Every element of a block counts, also where its
mask is false: the GPU computes it all the same.
"""

import math
from typing import Any

import numpy as np

_NARROW = {"fp8": ("fp8", "e4m3", "e5m2"), "fp4": ("fp4", "e2m1")}


def precision(dtype: Any) -> str:
    """A type by the name under which devices have a peak for it: fp64, fp32, fp16, bf16, fp8, fp4, int8."""
    name = str(dtype)
    for short, parts in _NARROW.items():
        if any(part in name for part in parts):
            return short
    return "int8" if name in ("uint8", "int8") else name


def element_type(dtype: Any) -> tuple[str, bool]:
    """A value's type: its precision, and whether it is floating. It may be a language's or NumPy's."""
    if isinstance(dtype, np.dtype):
        floating = dtype.kind == "f"
        return precision(f"fp{8 * dtype.itemsize}" if floating else dtype.name), floating
    return precision(dtype.scalar), dtype.scalar.is_floating()


def product(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> int:
    """The operations of a product of tiles. 4-bit elements are packed in pairs along the inner axis."""
    inner = left[-1] * (2 if dtype == "fp4" else 1)
    return 2 * math.prod(left[:-1]) * right[-1] * inner


def combinations(shape: tuple[int, ...], axis: int | None) -> tuple[int, int]:
    """How many pairs a reduction or scan combines in a block, and in how many rounds that is done here."""
    length = math.prod(shape) if axis is None else shape[axis]
    if length < 2:
        return 0, 1
    return math.prod(shape) // length * (length - 1), math.ceil(math.log2(length))
