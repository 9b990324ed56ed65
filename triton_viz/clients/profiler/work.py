"""The number of arithmetic operations of an op.

An op on elements counts as the operations per element that its language states (`DSL.arithmetic`): an
addition, product, quotient, remainder, minimum, maximum or negation as one, a fused multiply-add or a clamp
as two, and a function such as exp or sqrt as one, although it takes a GPU longer. A product of tiles counts
2 * M * N * K operations. A reduction or scan counts one for each combined pair, or the operations of its
combining function. Comparisons, selections, casts and data movement are not counted. Masked elements are
counted, because a GPU computes them, too.
"""

import math
from typing import Any

import numpy as np

_NARROW = {"fp8": ("fp8", "e4m3", "e5m2"), "fp4": ("fp4", "e2m1")}


def precision(dtype: Any) -> str:
    """The precision of a type, as in the peaks of devices: fp64, fp32, fp16, bf16, fp8, fp4 or int8."""
    name = str(dtype)
    for short, parts in _NARROW.items():
        if any(part in name for part in parts):
            return short
    return "int8" if name in ("uint8", "int8") else name


def element_type(dtype: Any) -> tuple[str, bool]:
    """The precision of a value's type (Triton's or NumPy's), and whether it is floating point."""
    if isinstance(dtype, np.dtype):
        floating = dtype.kind == "f"
        return precision(f"fp{8 * dtype.itemsize}" if floating else dtype.name), floating
    return precision(dtype.scalar), dtype.scalar.is_floating()


def product(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> int:
    """The operations of a product of tiles. 4-bit elements are packed in pairs along the inner axis."""
    inner = left[-1] * (2 if dtype == "fp4" else 1)
    return 2 * math.prod(left[:-1]) * right[-1] * inner


def combinations(shape: tuple[int, ...], axis: int | None) -> tuple[int, int]:
    """The pairs that a reduction or scan combines in a block, and the calls of the function that it takes
    here."""
    length = math.prod(shape) if axis is None else shape[axis]
    if length < 2:
        return 0, 1
    return math.prod(shape) // length * (length - 1), math.ceil(math.log2(length))
