"""Casts between types: of numbers, of bits and of addresses; and pointer arithmetic."""

from typing import Any

import numpy as np

from triton_viz.dsls.triton.ops.op_traits import origin_rule
from triton_viz.dsls.triton.ops.types import ADDRESS, COMPUTE_DTYPES, NARROW, RANGES, memory_dtype, width
from triton_viz.executor.affine import Affine
from triton_viz.executor.value import Value
from triton_viz.numerics import floats, rounding


class CastOps:
    """The builder's casts, and steps from pointer to pointer."""

    ORIGIN_RULE = "elementwise"

    def create_int_cast(self, arg: Value, type: Any, is_signed: bool) -> Value:
        """A cast between integer types; integers that do not fit wrap around."""
        dtype = type.scalar
        np_dtype = COMPUTE_DTYPES[dtype]
        if arg.affine is not None and fits(arg.affine, np_dtype):
            return Value(None, dtype, affine=arg.affine, np_dtype=np_dtype)
        return Value(arg.data.astype(np_dtype), dtype)

    def create_si_to_fp(self, arg: Value, type: Any) -> Value:
        """Integers to floats."""
        return rounded(arg.data.astype(COMPUTE_DTYPES[type.scalar]), type.scalar)

    create_ui_to_fp = create_si_to_fp

    def create_fp_to_si(self, arg: Value, type: Any) -> Value:
        """Floats to integers, toward zero; what is out of range becomes the nearest end of it, as in PTX."""
        data, np_dtype = arg.data, COMPUTE_DTYPES[type.scalar]
        # PTX has no conversion to 8 bits: Triton's compiler takes the lower half of 16.
        register = np.dtype(f"{np_dtype.kind}2") if np_dtype.itemsize == 1 else np_dtype
        least, most = RANGES[register]
        if float(data.min()) >= least and float(data.max()) < float(most + 1):  # and there is no NaN
            found = data.astype(register)
        else:
            found = rounding.to_integer(data, register.type, "z")
        return Value(found.astype(np_dtype, copy=False), type.scalar)

    create_fp_to_ui = create_fp_to_si

    def create_fp_to_fp(self, arg: Value, type: Any, rounding: Any = None) -> Value:
        """A cast between floats, rounded to nearest even or, if the kernel requests it, toward zero."""
        dtype = type.scalar
        toward_zero = rounding is not None and "RTZ" in str(rounding)
        data = arg.data
        if dtype in NARROW:
            as_single = data.astype(np.float32)
            if toward_zero and data.dtype == np.float64:
                as_single = _toward_zero(data, as_single)
            return Value(floats.round_to(as_single, NARROW[dtype], toward_zero), dtype)
        rounded = data.astype(COMPUTE_DTYPES[dtype])
        return Value(_toward_zero(data, rounded) if toward_zero else rounded, dtype)

    create_fp_ext = create_fp_to_fp
    create_fp_trunc = create_fp_to_fp

    def create_bitcast(self, arg: Value, type: Any) -> Value:
        """The same bits as another type."""
        dtype = type.scalar
        if dtype.is_ptr() and arg.dtype.is_ptr():
            return _retyped(arg, dtype)
        bits = floats.pack(arg.data, NARROW[arg.dtype]) if arg.dtype in NARROW else arg.data
        bits = bits.view(memory_dtype(dtype)) if bits.dtype.itemsize == memory_dtype(dtype).itemsize else bits
        return Value(floats.decode(bits, NARROW[dtype]) if dtype in NARROW else bits, dtype)

    def create_int_to_ptr(self, arg: Value, type: Any) -> Value:
        """An integer as an address."""
        if arg.affine is not None:
            return Value(None, type.scalar, affine=arg.affine, np_dtype=ADDRESS)
        return Value(arg.data.astype(ADDRESS), type.scalar)

    def create_ptr_to_int(self, arg: Value, type: Any) -> Value:
        """An address as an integer."""
        np_dtype = COMPUTE_DTYPES[type.scalar]
        if arg.affine is not None and fits(arg.affine, np_dtype):
            return Value(None, type.scalar, affine=arg.affine, np_dtype=np_dtype)
        return Value(arg.data.astype(np_dtype), type.scalar)

    @origin_rule("first")
    def create_addptr(self, pointer: Value, offset: Value) -> Value:
        """A pointer moved by a number of elements."""
        size = width(pointer.dtype)
        base, distance = pointer.numbers, offset.numbers
        if base is not None and distance is not None:
            return Value(None, pointer.dtype, affine=base.add(distance.scale(size)), np_dtype=ADDRESS)
        return Value(pointer.data + offset.data.astype(np.int64) * size, pointer.dtype)


def rounded(data: np.ndarray, dtype: Any) -> Value:
    """A value of `data`, rounded if NumPy lacks its type."""
    return Value(floats.round_to(data, NARROW[dtype]) if dtype in NARROW else data, dtype)


def fits(form: Affine, np_dtype: np.dtype) -> bool:
    """Whether all integers of an affine value fit into a type, and none wrapped around when it was
    computed."""
    low, high = RANGES[np_dtype]
    if not form.exact:
        return False
    if low <= form.low and form.high <= high:
        return True
    form.low, form.high = form.exact_range()
    return low <= form.low and form.high <= high


def _retyped(value: Value, dtype: Any) -> Value:
    if value.affine is not None:
        return Value(None, dtype, affine=value.affine, np_dtype=value.np_dtype)
    return Value(value.data, dtype)


def _toward_zero(exact: np.ndarray, rounded: np.ndarray) -> np.ndarray:
    beyond = np.abs(rounded.astype(exact.dtype)) > np.abs(exact)
    return np.where(beyond, np.nextafter(rounded, rounded.dtype.type(0)), rounded)
