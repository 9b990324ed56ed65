"""Products of tiles."""

from typing import Any

import numpy as np
import triton.language as tl

from triton_viz.core.data import Dot
from triton_viz.dsls.triton.ops import adapters
from triton_viz.dsls.triton.ops.op_traits import recorded_as
from triton_viz.dsls.triton.ops.types import COMPUTE_DTYPES, NARROW
from triton_viz.executor.value import Value
from triton_viz.numerics import floats


class DotOps:
    """The builder's products."""

    @recorded_as(Dot, adapters.dot)
    def create_dot(self, a: Value, b: Value, accumulator: Value, *precision: Any) -> Value:
        """a @ b + accumulator, for each lane. Narrow inputs are multiplied in the accumulator's type."""
        dtype = accumulator.dtype.scalar
        np_dtype = COMPUTE_DTYPES[dtype]
        return Value(_product(a.data, b.data, np_dtype) + accumulator.data, dtype)

    @recorded_as(Dot, adapters.dot_scaled)
    def create_dot_scaled(
        self,
        a: Value,
        a_scale: Value | None,
        a_format: Any,
        b: Value,
        b_scale: Value | None,
        b_format: Any,
        fast_math: bool,
        a_packed_along_k: bool,
        b_packed_along_k: bool,
        accumulator: Value,
    ) -> Value:
        """`create_dot` with a scale for each group of elements along the inner axis."""
        left = _unpacked(a, a_format, -1 if a_packed_along_k else -2)
        right = _unpacked(b, b_format, -2 if b_packed_along_k else -1)
        if a_scale is not None:
            left = left * _scales(a_scale, left.shape[-1])
        if b_scale is not None:  # the groups are along columns of b, so the scale is transposed
            right = right * np.swapaxes(_scales(b_scale, right.shape[-2]), -1, -2)
        np_dtype = COMPUTE_DTYPES[accumulator.dtype.scalar]
        return Value(
            (_product(left, right, np.dtype(np.float32)) + accumulator.data).astype(np_dtype),
            accumulator.dtype,
        )


def _product(a: np.ndarray, b: np.ndarray, np_dtype: np.dtype) -> np.ndarray:
    if np_dtype.kind in "iu":
        # BLAS has no integer products; float64 represents all sums of products of bytes exactly.
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np_dtype)
    wide = np.float64 if np_dtype == np.float64 else np.float32
    return np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False)).astype(np_dtype, copy=False)


def _unpacked(value: Value, format: Any, axis: int) -> np.ndarray:
    if "E2M1" in str(format).upper():
        return floats.decode_e2m1(value.data, axis)
    return value.data.astype(np.float32, copy=False)


def _scales(scale: Value, size: int) -> np.ndarray:
    """One scale per element, from one per group."""
    if scale.dtype in NARROW or scale.dtype == tl.float8e4nv:
        factors = scale.data
    else:
        factors = floats.decode_e8m0(scale.data.view(np.uint8))
    return np.repeat(factors, size // factors.shape[-1], axis=-1)
