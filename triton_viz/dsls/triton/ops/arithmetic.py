"""Arithmetic, comparisons and functions of elements."""

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from triton_viz.dsls.triton import compat
from triton_viz.dsls.triton.ops.casts import fits, rounded
from triton_viz.dsls.triton.ops.op_traits import operations, origin_rule
from triton_viz.dsls.triton.ops.types import COMPUTE_DTYPES, NARROW, compute_dtype
from triton_viz.executor.affine import Affine
from triton_viz.executor.value import Value
from triton_viz.numerics import libdevice, rounding


class ArithmeticOps:
    """The builder's arithmetic. Ops that are one NumPy function are in the tables at the end of this file."""

    ORIGIN_RULE = "elementwise"
    OPERATIONS = 1

    def create_add(self, a: Value, b: Value) -> Value:
        """The sum of integers."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            return _affine_result(x.add(y), a, b, np.add)
        return _binary(a, b, np.add)

    def create_sub(self, a: Value, b: Value) -> Value:
        """The difference of integers."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            return _affine_result(x.add(y.negate()), a, b, np.subtract)
        return _binary(a, b, np.subtract)

    def create_mul(self, a: Value, b: Value) -> Value:
        """The product of integers."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            product = x.multiply(y)
            if product is not None:
                return _affine_result(product, a, b, np.multiply)
        return _binary(a, b, np.multiply)

    def create_srem(self, a: Value, b: Value) -> Value:
        """The remainder of a division toward zero: it has the dividend's sign."""
        if a.shape and (x := a.affine) is not None and (y := b.affine) is not None:
            by = int(y.base[0]) if y.constant and len(y.base) == 1 else 0
            if by > 0:
                low, high = (x.low, x.high) if x.low >= 0 and x.high < by else x.exact_range()
                if low >= 0 and high < by:  # nothing wraps around
                    return a
        return _binary(a, _no_zero(b), np.fmod)

    create_urem = create_srem

    def create_sdiv(self, a: Value, b: Value) -> Value:
        """The quotient of integers, rounded toward zero."""
        x, y = a.data, _no_zero(b).data
        if x.dtype.kind == "u":
            return Value(x // y, a.dtype.scalar)
        quotient = x // y
        # Floor division differs only if there is a remainder and the signs differ.
        return Value(quotient + ((quotient * y != x) & ((x < 0) != (y < 0))).astype(x.dtype), a.dtype.scalar)

    create_udiv = create_sdiv
    create_idiv = create_sdiv

    def create_and(self, a: Value, b: Value) -> Value:
        """Bitwise and; of masks, where both are true."""
        if a.box is not None and b.box is not None:
            return Value(None, a.dtype, box=a.box.intersect(b.box))
        return _binary(a, b, np.bitwise_and)

    def create_or(self, a: Value, b: Value) -> Value:
        """Bitwise or; of masks, where one is true."""
        for one in (a, b):
            if one.box is not None and one.box.full:
                return one
        return _binary(a, b, np.bitwise_or)

    def create_xor(self, a: Value, b: Value) -> Value:
        """Bitwise exclusive or."""
        return _binary(a, b, np.bitwise_xor)

    def create_lshr(self, a: Value, b: Value) -> Value:
        """A logical shift to the right, which fills with zeros."""
        data = a.data
        unsigned = data.view(f"u{data.dtype.itemsize}") if data.dtype.kind == "i" else data
        shifted = np.right_shift(unsigned, b.data.astype(unsigned.dtype))
        return Value(shifted.view(data.dtype), a.dtype.scalar)

    def create_ashr(self, a: Value, b: Value) -> Value:
        """An arithmetic shift to the right, which fills with the sign bit."""
        data = a.data
        signed = data.view(f"i{data.dtype.itemsize}") if data.dtype.kind == "u" else data
        return Value(np.right_shift(signed, b.data.astype(signed.dtype)).view(data.dtype), a.dtype.scalar)

    def create_umulhi(self, a: Value, b: Value) -> Value:
        """The upper half of the product of two unsigned integers."""
        x, y, np_dtype = a.data, b.data, a.data.dtype
        bits = np_dtype.itemsize * 8
        if bits == 64:
            return Value(
                libdevice.elementwise("__nv_umul64hi", x.view("u8"), y.view("u8")).view(np_dtype), a.dtype
            )
        narrow, wide = f"u{np_dtype.itemsize}", f"u{np_dtype.itemsize * 2}"
        product = x.view(narrow).astype(wide) * y.view(narrow).astype(wide)
        return Value((product >> np.array(bits, wide)).astype(narrow).view(np_dtype), a.dtype)

    def create_fneg(self, a: Value) -> Value:
        """The negative of a float."""
        return Value(-a.data, a.dtype)

    @operations(2)
    def create_fma(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, rounded once."""
        dtype, np_dtype = z.dtype.scalar, z.data.dtype
        arrays = np.broadcast_arrays(x.data, y.data, z.data)
        exact = compat.FMA.get(np_dtype)
        if dtype in NARROW:
            return rounded(rounding.multiply_add_to_odd(*arrays), dtype)
        if exact is not None:
            return Value(exact(*(np.ascontiguousarray(a) for a in arrays)), dtype)
        a, b, c = (array.astype(np.float64) for array in arrays)  # float16, of which this is exact
        return Value((a * b + c).astype(np_dtype), dtype)

    @operations(2)
    def create_clampf(self, x: Value, low: Value, high: Value, propagate_nan: Any) -> Value:
        """A float clamped between two limits."""
        if "NONE" in str(propagate_nan):
            return Value(np.fmin(np.fmax(x.data, low.data), high.data), x.dtype)
        return Value(np.minimum(np.maximum(x.data, low.data), high.data), x.dtype)

    @operations(0)
    def create_fabs(self, a: Value) -> Value:
        """The absolute value of a float."""
        return Value(np.abs(a.data), a.dtype)

    def create_rsqrt(self, a: Value) -> Value:
        """1 / sqrt."""
        one = a.data.dtype.type(1)
        return rounded(one / np.sqrt(a.data), a.dtype)

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, args: list[Value], type: Any, is_pure: bool
    ) -> Value:
        """A function of a math library."""
        result = libdevice.elementwise(symbol, *(arg.data for arg in args))
        return rounded(result.astype(compute_dtype(type.scalar), copy=False), type.scalar)


def _affine_result(form: Affine, a: Value, b: Value, function: np.ufunc) -> Value:
    """An affine result, or the result of `function` if an integer may wrap around."""
    np_dtype = COMPUTE_DTYPES[a.dtype.scalar]
    if fits(form, np_dtype):
        return Value(None, a.dtype, affine=form, np_dtype=np_dtype)
    return _binary(a, b, function)


def _no_zero(divisor: Value) -> Value:
    """A divisor with zeros replaced by ones: the result of a division by zero is undefined."""
    data = divisor.data
    if data.dtype.kind in "iu" and not data.all():
        return Value(np.where(data == 0, data.dtype.type(1), data), divisor.dtype)
    return divisor


def _binary(a: Value, b: Value, function: Callable[..., np.ndarray]) -> Value:
    dtype = a.dtype.scalar
    x, y = a.data, b.data
    if x.dtype.kind == "b" and y.dtype.kind == "b" and function in (np.add, np.subtract, np.multiply):
        # Triton's int1 is a one-bit integer.
        function = np.bitwise_and if function is np.multiply else np.bitwise_xor
    result = function(x, y)
    np_dtype = compute_dtype(dtype)
    if result.dtype != np_dtype:
        result = result.astype(np_dtype)
    return rounded(result, dtype)


def _elementwise(function: Callable[..., np.ndarray]) -> Callable[..., Value]:
    """An op of one operand, or of two operands of the same type."""

    def op(self: ArithmeticOps, *args: Value) -> Value:
        if len(args) == 2:
            return _binary(args[0], args[1], function)
        (a,) = args
        return rounded(function(a.data), a.dtype)

    return op


def _compared(function: np.ufunc, order: str) -> Callable[..., Value]:
    """A comparison. For affine operands, the result may be a box."""

    @operations(0)
    @origin_rule("none")
    def op(self: ArithmeticOps, a: Value, b: Value) -> Value:
        if a.shape and order and (x := a.affine) is not None and (y := b.affine) is not None:
            difference = x.add(y.negate()) if "<" in order else y.add(x.negate())
            if "=" in order:
                difference = Affine(
                    difference.base - 1,
                    difference.steps,
                    difference.shape,
                    difference.low - 1,
                    difference.high - 1,
                )
            box = difference.below_zero()
            if box is not None:
                return Value(None, tl.int1, box=box)
        return Value(function(a.data, b.data), tl.int1)

    return op


_ELEMENTWISE: dict[str, Callable[..., np.ndarray]] = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "precise_divf": np.divide,
    "approx_divf": np.divide,
    "frem": np.fmod,
    "shl": np.left_shift,
    "minsi": np.minimum,
    "minui": np.minimum,
    "minimumf": np.minimum,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "maxui": np.maximum,
    "maximumf": np.maximum,
    "maxnumf": np.fmax,
    "iabs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "precise_sqrt": np.sqrt,
    "erf": libdevice.erf,
}
_ROUNDING: dict[str, Callable[..., np.ndarray]] = {"floor": np.floor, "ceil": np.ceil}
_COMPARED = {"LT": (np.less, "<"), "LE": (np.less_equal, "<="), "GT": (np.greater, ">")} | {
    "GE": (np.greater_equal, ">="),
    "EQ": (np.equal, ""),
    "NE": (np.not_equal, ""),
}
for _name, _function in _ELEMENTWISE.items():
    setattr(ArithmeticOps, f"create_{_name}", _elementwise(_function))
for _name, _function in _ROUNDING.items():
    setattr(ArithmeticOps, f"create_{_name}", operations(0)(_elementwise(_function)))
for _name, (_ufunc, _order) in _COMPARED.items():
    for _prefix in ("icmpS", "icmpU", "icmp", "fcmpO", "fcmpU"):
        _op = _compared(_ufunc, _order if _prefix.startswith("i") else "")
        setattr(ArithmeticOps, f"create_{_prefix}{_name}", _op)
