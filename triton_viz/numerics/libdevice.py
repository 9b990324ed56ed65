"""Triton's libdevice functions on arrays: what CUDA's and ROCm's device libraries compute, in NumPy.

The keys of `FUNCTIONS` are the symbols that a kernel is linked against (`__nv_expf`, `__ocml_exp_f32`), which
do not depend on the release of Triton or the names of its language layer. One row defines the float32 and the
float64 symbol of each library. Arguments are converted to the symbol's types, results have its result type,
and NumPy's warnings are off: a division by zero gives an infinity or NaN.

Accuracy: float32 functions are within the few units in the last place that CUDA promises; those with a
rounding in their name are exact. Subnormals are kept, where compiled float32 code may flush them to zero.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from triton_viz.errors import UnsupportedError
from triton_viz.numerics import bessel, bits, rounding, special
from triton_viz.numerics.special import erf

__all__ = ["FUNCTIONS", "elementwise", "erf"]

Function = Callable[..., np.ndarray]

F32, F64 = np.float32, np.float64
I32, I64, U32, U64 = np.int32, np.int64, np.uint32, np.uint64


def elementwise(symbol: str, *arrays: np.ndarray) -> np.ndarray:
    """Call a device library's function on arrays that broadcast against each other."""
    function = FUNCTIONS.get(symbol)
    if function is None:
        raise UnsupportedError(
            f"the kernel calls the device function {symbol!r}, which triton_viz has no NumPy version of. Use "
            "a function of triton.language or triton.language.extra.libdevice instead, or add it to "
            "triton_viz.numerics.libdevice.FUNCTIONS."
        )
    return function(*arrays)


def _typed(
    function: Function, result: type[np.generic] | None, *arguments: type[np.generic] | None
) -> Function:
    """A function that converts its arguments and its result; None keeps the type (of the first argument)."""

    def call(*arrays: np.ndarray) -> np.ndarray:
        if len(arrays) != len(arguments):
            raise TypeError(f"a device function of {len(arguments)} arguments was given {len(arrays)}")
        given = [_forward(np.asarray(array, kind)) for array, kind in zip(arrays, arguments, strict=True)]
        with np.errstate(all="ignore"):
            return np.asarray(function(*given), given[0].dtype if result is None else result)

    return call


def _forward(array: np.ndarray) -> np.ndarray:
    """The array with positive strides only: NumPy's loops for negative ones differ in the last digit."""
    return array.copy() if any(stride < 0 for stride in array.strides) else array


# -- functions of floats ------------------------------------------------------------------------------------


def _round_half_away(a: np.ndarray) -> np.ndarray:
    below_half = np.nextafter(a.dtype.type(0.5), a.dtype.type(0))  # 0.5 would round 0.49999997 up to 1
    return np.trunc(a + np.copysign(below_half, a))


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """IEEE's: the quotient is rounded to nearest even."""
    a, b = np.broadcast_arrays(a, b)
    size = np.abs(b)
    near = size < np.finfo(b.dtype).max / 2
    rest = np.where(near, np.fmod(np.abs(a), 2 * size), np.abs(a))
    # Halving a small number may underflow, and doubling a large one overflow.
    more = np.where(near, 2 * rest > size, rest > size / 2)
    rest = np.where(more, rest - size, rest)
    more &= np.where(near, 2 * rest >= size, rest >= size / 2)
    rest = np.where(more, rest - size, rest)
    rest = np.where(np.isinf(b), np.abs(a), rest)
    rest = np.where(np.isinf(a) | (b == 0) | np.isnan(b), np.nan, rest)
    return np.where(np.signbit(a), -rest, rest)


def _fdim(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a <= b, 0, a - b)


def _logb(a: np.ndarray) -> np.ndarray:
    exponent = (np.frexp(a)[1] - 1).astype(a.dtype)
    return np.where(a == 0, -np.inf, np.where(np.isfinite(a), exponent, np.abs(a)))


def _ilogb(a: np.ndarray) -> np.ndarray:
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    exponent = np.where(np.isinf(a), high, np.frexp(a)[1] - 1)
    return np.where((a == 0) | np.isnan(a), low, exponent)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.power(a, b.astype(a.dtype, copy=False))


def _integer_power(a: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.power(a.astype(np.float64), n)  # a float32 does not hold every int32


def _norm(*parts: np.ndarray) -> np.ndarray:
    total = parts[0].astype(np.float64)
    for part in parts[1:]:
        total = np.hypot(total, part)
    return total


def _inverse(function: Function) -> Function:
    return lambda *a: 1 / function(*a)


def _precise(function: Function) -> Function:
    """Computed in float64: for functions whose float32 version is slow or imprecise, and rare in kernels."""
    return lambda *a: function(*(part.astype(np.float64, copy=False) for part in a))


# CUDA's name, the function, its arguments (f is the float at hand, i an int32), ROCm's name if it has one.
_ROWS: list[tuple[str, Function, str, str | None]] = [
    ("fabs", np.abs, "f", None),
    ("floor", np.floor, "f", "floor"),
    ("ceil", np.ceil, "f", "ceil"),
    ("trunc", np.trunc, "f", "trunc"),
    ("rint", np.rint, "f", None),
    ("nearbyint", np.rint, "f", "nearbyint"),
    ("round", _round_half_away, "f", "round"),
    ("sqrt", np.sqrt, "f", "sqrt"),
    ("rsqrt", _inverse(np.sqrt), "f", "rsqrt"),
    ("cbrt", _precise(np.cbrt), "f", None),
    ("rcbrt", _precise(_inverse(np.cbrt)), "f", None),
    ("exp", np.exp, "f", "exp"),
    ("exp2", np.exp2, "f", "exp2"),
    ("exp10", lambda a: np.power(a.dtype.type(10), a), "f", None),
    ("expm1", np.expm1, "f", "expm1"),
    ("log", np.log, "f", "log"),
    ("log2", np.log2, "f", "log2"),
    ("log10", np.log10, "f", "log10"),
    ("log1p", np.log1p, "f", "log1p"),
    ("sin", np.sin, "f", "sin"),
    ("cos", np.cos, "f", "cos"),
    ("tan", np.tan, "f", "tan"),
    ("sinpi", special.sinpi, "f", None),
    ("cospi", special.cospi, "f", None),
    ("asin", np.arcsin, "f", "asin"),
    ("acos", np.arccos, "f", "acos"),
    ("atan", np.arctan, "f", "atan"),
    ("sinh", np.sinh, "f", "sinh"),
    ("cosh", np.cosh, "f", "cosh"),
    ("tanh", np.tanh, "f", "tanh"),
    ("asinh", np.arcsinh, "f", "asinh"),
    ("acosh", np.arccosh, "f", "acosh"),
    ("atanh", np.arctanh, "f", "atanh"),
    ("erf", special.erf, "f", "erf"),
    ("erfc", special.erfc, "f", "erfc"),
    ("erfcx", special.erfcx, "f", "erfcx"),
    ("erfinv", special.erfinv, "f", "erfinv"),
    ("erfcinv", special.erfcinv, "f", None),
    ("normcdf", special.normcdf, "f", None),
    ("normcdfinv", special.normcdfinv, "f", None),
    ("lgamma", special.lgamma, "f", "lgamma"),
    ("tgamma", special.tgamma, "f", None),
    ("j0", bessel.j0, "f", "j0"),
    ("j1", bessel.j1, "f", "j1"),
    ("jn", bessel.jn, "if", None),
    ("y0", bessel.y0, "f", "y0"),
    ("y1", bessel.y1, "f", "y1"),
    ("yn", bessel.yn, "if", None),
    ("cyl_bessel_i0", special.i0, "f", "i0"),
    ("cyl_bessel_i1", special.i1, "f", "i1"),
    ("atan2", np.arctan2, "ff", "atan2"),
    ("pow", _power, "ff", "pow"),
    ("powi", _integer_power, "fi", "pown"),
    ("fmod", np.fmod, "ff", "fmod"),
    ("remainder", _remainder, "ff", None),
    ("fdim", _fdim, "ff", None),
    ("copysign", np.copysign, "ff", "copysign"),
    ("nextafter", np.nextafter, "ff", "nextafter"),
    ("hypot", _precise(np.hypot), "ff", "hypot"),
    ("rhypot", _inverse(_norm), "ff", None),
    ("norm3d", _norm, "fff", None),
    ("rnorm3d", _inverse(_norm), "fff", None),
    ("norm4d", _norm, "ffff", None),
    ("rnorm4d", _inverse(_norm), "ffff", None),
    ("ldexp", np.ldexp, "fi", "ldexp"),
    ("scalbn", np.ldexp, "fi", None),
    ("logb", _logb, "f", None),
    ("fma", lambda a, b, c: rounding.multiply_add(a, b, c, "n"), "fff", "fma"),
]


def _from_rows() -> Iterator[tuple[str, Function]]:
    for cuda, function, arguments, rocm in _ROWS:
        for kind, suffix, ocml_suffix in ((F32, "f", "_f32"), (F64, "", "_f64")):
            typed = _typed(function, kind, *(kind if letter == "f" else I32 for letter in arguments))
            yield f"__nv_{cuda}{suffix}", typed
            if rocm is not None:
                yield f"__ocml_{rocm}{ocml_suffix}", typed


def _predicates() -> Iterator[tuple[str, Function]]:
    """Questions about a float, answered with an int32."""
    for name, function, single, double in (
        ("isnan", np.isnan, "__nv_isnanf", "__nv_isnand"),
        ("isinf", np.isinf, "__nv_isinff", "__nv_isinfd"),
        ("isfinite", np.isfinite, "__nv_finitef", "__nv_isfinited"),
        ("signbit", np.signbit, "__nv_signbitf", "__nv_signbitd"),
        ("ilogb", _ilogb, "__nv_ilogbf", "__nv_ilogb"),
    ):
        for kind, cuda, rocm in ((F32, single, f"__ocml_{name}_f32"), (F64, double, f"__ocml_{name}_f64")):
            yield from dict.fromkeys((cuda, rocm), _typed(function, I32, kind)).items()


# -- functions with a rounding in their name ----------------------------------------------------------------


def _bind(function: Callable[..., Any], *fixed: Any) -> Function:
    return lambda *arrays: function(*arrays, *fixed)


def _reciprocal(a: np.ndarray, direction: str) -> np.ndarray:
    return rounding.divide(np.ones_like(a), a, direction)


def _rounded_arithmetic() -> Iterator[tuple[str, Function]]:
    for name, function, count in (
        ("add", rounding.add, 2),
        ("sub", rounding.subtract, 2),
        ("mul", rounding.multiply, 2),
        ("div", rounding.divide, 2),
        ("rcp", _reciprocal, 1),
        ("sqrt", rounding.square_root, 1),
    ):
        for direction in "nzdu":
            for letter, kind in (("f", F32), ("d", F64)):
                typed = _typed(_bind(function, direction), kind, *[kind] * count)
                yield f"__nv_{letter}{name}_r{direction}", typed
    for direction in "nzdu":
        for name, kind in (("fmaf", F32), ("fma", F64)):
            yield (
                f"__nv_{name}_r{direction}",
                _typed(_bind(rounding.multiply_add, direction), kind, *[kind] * 3),
            )
    yield "__nv_frsqrt_rn", _typed(_precise(_inverse(np.sqrt)), F32, F32)


def _conversions() -> Iterator[tuple[str, Function]]:
    """Between floats and integers. Triton has only signed results: unsigned ones keep their bits."""
    integers = (("int", I32, I32), ("uint", U32, I32), ("ll", I64, I64), ("ull", U64, I64))
    reals = (("float", F32), ("double", F64))
    for direction in "nzdu":
        yield f"__nv_double2float_r{direction}", _typed(_bind(rounding.to_single, direction), F32, F64)
        for integer, kind, signed in integers:
            for real, float_kind in reals:
                from_real = _bind(rounding.to_integer, kind, direction)
                from_integer = _bind(rounding.from_integer, float_kind, direction)
                yield (
                    f"__nv_{real}2{integer}_r{direction}",
                    _typed(bits.as_type(from_real, signed), signed, float_kind),
                )
                yield f"__nv_{integer}2{real}_r{direction}", _typed(from_integer, float_kind, kind)
    to_long = _bind(rounding.to_integer, I64, "n")
    rounded_to_long = _typed(lambda a: to_long(_round_half_away(a)), I64, None)
    for suffix in ("f", ""):
        yield f"__nv_llrint{suffix}", _typed(to_long, I64, None)
        yield f"__nv_llround{suffix}", rounded_to_long
    yield "__triton_hip_llrint", _typed(to_long, I64, None)


# -- fast approximations, and others ------------------------------------------------------------------------


def _fast_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """div.approx: a divisor above 2**126 takes any finite number to 0, and infinity to NaN."""
    huge = (np.abs(b) > 2.0**126) & np.isfinite(b)
    return np.where(huge, np.where(np.isinf(a), np.nan, np.copysign(0, a) * np.sign(b)), a / b)


def _fast_power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp2(b * np.log2(a))  # that is all: a negative base gives NaN


def _saturate(a: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(a), 0, np.clip(a, 0, 1))


def _reciprocal_of_upper_half(a: np.ndarray) -> np.ndarray:
    """An approximation with only the upper half of a float64 set."""
    estimate = 1 / a
    return (estimate.view(U64) & np.uint64(0xFFFFFFFF00000000)).view(F64)


_OTHERS: dict[str, Function] = {
    "__nv_fast_sinf": _typed(np.sin, F32, F32),
    "__nv_fast_cosf": _typed(np.cos, F32, F32),
    "__nv_fast_tanf": _typed(np.tan, F32, F32),
    "__nv_fast_expf": _typed(np.exp, F32, F32),
    "__nv_fast_exp10f": _typed(lambda a: np.power(F32(10), a), F32, F32),
    "__nv_fast_logf": _typed(np.log, F32, F32),
    "__nv_fast_log2f": _typed(np.log2, F32, F32),
    "__nv_fast_log10f": _typed(np.log10, F32, F32),
    "__nv_fast_powf": _typed(_fast_power, F32, F32, F32),
    "__nv_fast_fdividef": _typed(_fast_divide, F32, F32, F32),
    "__nv_saturatef": _typed(_saturate, F32, F32),
    "__nv_rcp64h": _typed(_reciprocal_of_upper_half, F64, F64),
    "__triton_hip_fast_expf": _typed(np.exp, F32, F32),
    "__triton_hip_fast_tanhf": _typed(np.tanh, F32, F32),
    "__triton_hip_fast_fdividef": _typed(np.divide, F32, F32, F32),
    # One symbol for both widths: the type is the argument's.
    "__triton_hip_iabs": _typed(np.abs, None, None),
    "__triton_hip_fabs": _typed(np.abs, None, None),
    "__triton_hip_rint": _typed(np.rint, None, None),
}

_INTEGERS: dict[str, Function] = {
    "__nv_abs": _typed(np.abs, I32, I32),
    "__nv_llabs": _typed(np.abs, I64, I64),
    "__nv_clz": _typed(bits.leading_zeros, I32, U32),
    "__nv_clzll": _typed(bits.leading_zeros, I32, U64),
    "__nv_popc": _typed(np.bitwise_count, I32, U32),
    "__nv_popcll": _typed(np.bitwise_count, I32, U64),
    "__nv_ffs": _typed(bits.first_set, I32, U32),
    "__nv_ffsll": _typed(bits.first_set, I32, U64),
    "__nv_brev": _typed(bits.as_type(bits.reverse, I32), I32, U32),
    "__nv_brevll": _typed(bits.as_type(bits.reverse, I64), I64, U64),
    "__nv_byte_perm": _typed(bits.as_type(bits.permute_bytes, I32), I32, U32, U32, U32),
    "__nv_mulhi": _typed(bits.multiply_high, I32, I32, I32),
    "__nv_umulhi": _typed(bits.multiply_high, U32, U32, U32),
    "__nv_mul64hi": _typed(bits.multiply_high_64, I64, I64, I64),
    "__nv_umul64hi": _typed(bits.multiply_high_64, U64, U64, U64),
    "__nv_mul24": _typed(bits.multiply_24, I32, I32, I32),
    "__nv_umul24": _typed(bits.multiply_24, U32, U32, U32),
    "__nv_sad": _typed(bits.add_distance, I32, I32, I32, U32),
    "__nv_usad": _typed(bits.add_distance, U32, U32, U32, U32),
    "__nv_hadd": _typed(bits.average_down, I32, I32, I32),
    "__nv_uhadd": _typed(bits.average_down, U32, U32, U32),
    "__nv_rhadd": _typed(bits.average_up, I32, I32, I32),
    "__nv_urhadd": _typed(bits.average_up, U32, U32, U32),
    "__nv_int_as_float": _typed(bits.as_type(np.asarray, F32), F32, I32),
    "__nv_uint_as_float": _typed(bits.as_type(np.asarray, F32), F32, U32),
    "__nv_float_as_int": _typed(bits.as_type(np.asarray, I32), I32, F32),
    "__nv_float_as_uint": _typed(bits.as_type(np.asarray, I32), I32, F32),
    "__nv_longlong_as_double": _typed(bits.as_type(np.asarray, F64), F64, I64),
    "__nv_double_as_longlong": _typed(bits.as_type(np.asarray, I64), I64, F64),
    "__nv_hiloint2double": _typed(bits.join_halves, F64, U32, U32),
    "__nv_double2hiint": _typed(lambda a: bits.halves(a)[0], I32, F64),
    "__nv_double2loint": _typed(lambda a: bits.halves(a)[1], I32, F64),
    "__ockl_clz_u32": _typed(bits.leading_zeros, I32, U32),
    "__ockl_clz_u64": _typed(bits.leading_zeros, I64, U64),
    "__ockl_popcount_u32": _typed(np.bitwise_count, I32, U32),
    "__ockl_popcount_u64": _typed(np.bitwise_count, I32, U64),
}

FUNCTIONS: dict[str, Function] = {
    **dict(_from_rows()),
    **dict(_predicates()),
    **dict(_rounded_arithmetic()),
    **dict(_conversions()),
    **_OTHERS,
    **_INTEGERS,
}
"""Every device function by its symbol: arrays in, an array of the symbol's result type out."""
