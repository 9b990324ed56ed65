"""The device libraries' functions in NumPy: all exist, with the correct types, values and edge cases."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from triton.language.extra.cuda import libdevice as cuda
from triton.language.extra.hip import libdevice as hip

from tests.thorough import some
from tests.triton_viz.helpers.device_symbols import EDGES, SIGNATURES, Signature, declared
from triton_viz.errors import UnsupportedError
from triton_viz.numerics import libdevice


def each(signatures: list[Signature]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("signature", signatures, ids=lambda s: f"{s.symbol}-{s.arguments[0]}")


def edge_values(dtype: np.dtype, shift: int) -> np.ndarray:
    """Sixteen values of a type, in another order for each argument."""
    if dtype.kind == "f":
        values = np.array(EDGES, dtype)
    else:
        info = np.iinfo(dtype)
        some = [0, 1, 2, 3, 7, 31, 32, 100, 255, 0x1234567, 5, 6, 4, 8, info.max, info.min]
        values = np.array(some, dtype)
    return np.roll(values, shift)


def arguments_of(signature: Signature) -> list[np.ndarray]:
    values = [edge_values(dtype, 3 * place) for place, dtype in enumerate(signature.arguments)]
    if signature.symbol.startswith(("__nv_jn", "__nv_yn")):
        values[0] = np.clip(values[0], -2, 40)  # time goes with the order
    return values


@pytest.mark.parametrize("module", [cuda, hip], ids=["cuda", "hip"])
def test_every_symbol_of_the_installed_triton_has_a_function(module: Any) -> None:
    symbols = {signature.symbol for signature in declared(module)}
    assert len(symbols) > 100
    assert symbols <= libdevice.FUNCTIONS.keys()


@each(SIGNATURES)
def test_results_have_the_declared_type_and_the_arguments_shape(signature: Signature) -> None:
    given = arguments_of(signature)
    before = [array.copy() for array in given]
    result = libdevice.elementwise(signature.symbol, *given)
    assert isinstance(result, np.ndarray)
    assert result.dtype == signature.result
    assert result.shape == (16,)
    for array, copy in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, copy)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "no axes": lambda a: a.reshape(16)[7],
    "empty": lambda a: a[:0],
    "transposed": lambda a: a.T,
    "stepped backwards": lambda a: a[::-2, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:, None, :1], (4, 3, 5)),
}


@each(some(SIGNATURES, 4))
def test_layout_does_not_matter(signature: Signature) -> None:
    given = [array.reshape(4, 4) for array in arguments_of(signature)]
    for arrange in LAYOUTS.values():
        strided = [np.asarray(arrange(array)) for array in given]
        plain = [np.array(array, order="C") for array in strided]
        result = libdevice.elementwise(signature.symbol, *strided)
        assert isinstance(result, np.ndarray)
        assert result.shape == strided[0].shape
        np.testing.assert_array_equal(result, libdevice.elementwise(signature.symbol, *plain))


@each(some(SIGNATURES, 4))
def test_lanes_that_agree_broadcast_against_those_that_do_not(signature: Signature) -> None:
    given = arguments_of(signature)
    for place in range(len(given)):
        mixed = [array[2:3] if i == place else array for i, array in enumerate(given)]
        full = [np.repeat(array[2:3], 16) if i == place else array for i, array in enumerate(given)]
        result = libdevice.elementwise(signature.symbol, *mixed)
        expected = libdevice.elementwise(signature.symbol, *full)
        np.testing.assert_array_equal(np.broadcast_to(result, (16,)), expected)


def test_an_unknown_symbol_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"'__nv_frobnicate'.*FUNCTIONS"):
        libdevice.elementwise("__nv_frobnicate", np.zeros(1))


def test_a_wrong_number_of_arguments_is_an_error() -> None:
    with pytest.raises(TypeError, match="2 arguments was given 1"):
        libdevice.elementwise("__nv_powf", np.zeros(1))


# -- the rest, each against Python's own arithmetic ----------------------------------------------------------


@example(a=0.5, b=1.0)  # ties go to the even quotient
@example(a=1.5, b=-1.0)
@example(a=-2.5, b=1.0)
@given(a=st.floats(width=32), b=st.floats(width=32))
def test_remainder_is_ieees(a: float, b: float) -> None:
    try:
        expected = math.remainder(a, b)
    except ValueError:
        expected = math.nan
    for suffix in ("f", ""):
        result = libdevice.elementwise(f"__nv_remainder{suffix}", np.array([a]), np.array([b]))
        np.testing.assert_array_equal(result, [expected])


@given(a=st.floats(), b=st.floats())
def test_remainder_of_float64_is_ieees(a: float, b: float) -> None:
    try:
        expected = math.remainder(a, b)
    except ValueError:
        expected = math.nan
    result = libdevice.elementwise("__nv_remainder", np.array([a]), np.array([b]))
    np.testing.assert_array_equal(result, [expected])


def signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1), c=st.integers(0, 2**32 - 1))
def test_integers_of_32_bits(a: int, b: int, c: int) -> None:
    def call(name: str, *values: int, dtype: str = "i4") -> int:
        return int(libdevice.elementwise(f"__nv_{name}", *[np.array([v], dtype) for v in values])[0])

    unsigned = [a % 2**32, b % 2**32]
    word = f"{unsigned[0]:032b}"
    assert call("popc", a) == word.count("1")
    assert call("clz", a) == 32 - unsigned[0].bit_length()
    assert call("ffs", a) == (word[::-1].find("1") + 1)
    assert call("brev", a) == signed(int(word[::-1], 2), 32)
    assert call("mulhi", a, b) == a * b >> 32
    assert call("umulhi", *unsigned, dtype="u4") == unsigned[0] * unsigned[1] >> 32
    assert call("mul24", a, b) == signed(signed(a, 24) * signed(b, 24), 32)
    assert call("umul24", *unsigned, dtype="u4") == (unsigned[0] % 2**24) * (unsigned[1] % 2**24) % 2**32
    assert call("hadd", a, b) == (a + b) >> 1
    assert call("uhadd", *unsigned, dtype="u4") == sum(unsigned) >> 1
    assert call("rhadd", a, b) == (a + b + 1) >> 1
    assert call("urhadd", *unsigned, dtype="u4") == (sum(unsigned) + 1) >> 1
    assert call("usad", *unsigned, c, dtype="u4") == (abs(unsigned[0] - unsigned[1]) + c) % 2**32
    sad = libdevice.elementwise("__nv_sad", np.array([a], "i4"), np.array([b], "i4"), np.array([c], "u4"))
    assert int(sad[0]) == signed(abs(a - b) + c, 32)
    assert call("abs", a) == signed(abs(a), 32)
    assert int(libdevice.elementwise("__ockl_clz_u32", np.array([a], "i4"))[0]) == call("clz", a)
    both = unsigned[0].to_bytes(4, "little") + unsigned[1].to_bytes(4, "little")
    picked = bytes(both[c >> 4 * place & 7] for place in range(4))
    assert call("byte_perm", a, b, signed(c, 32)) == int.from_bytes(picked, "little", signed=True)


@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-(2**63), 2**63 - 1))
def test_integers_of_64_bits(a: int, b: int) -> None:
    def call(name: str, *values: int, dtype: str = "i8") -> int:
        return int(libdevice.elementwise(f"__nv_{name}", *[np.array([v], dtype) for v in values])[0])

    unsigned = [a % 2**64, b % 2**64]
    word = f"{unsigned[0]:064b}"
    assert call("popcll", a) == word.count("1")
    assert call("clzll", a) == 64 - unsigned[0].bit_length()
    assert call("ffsll", a) == (word[::-1].find("1") + 1)
    assert call("brevll", a) == signed(int(word[::-1], 2), 64)
    assert call("mul64hi", a, b) == a * b >> 64
    assert call("umul64hi", *unsigned, dtype="u8") == unsigned[0] * unsigned[1] >> 64
    assert call("llabs", a) == signed(abs(a), 64)
    whole = libdevice.elementwise("__nv_longlong_as_double", np.array([a], "i8"))
    upper, lower = (libdevice.elementwise(f"__nv_double2{half}int", whole) for half in ("hi", "lo"))
    assert (int(upper[0]), int(lower[0])) == (a >> 32, signed(a, 32))
    joined = libdevice.elementwise("__nv_hiloint2double", upper, lower)
    assert int(libdevice.elementwise("__nv_double_as_longlong", joined)[0]) == a


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -math.inf, 1e-40])
def test_bits_of_a_float(value: float) -> None:
    single = np.array([value], np.float32)
    word = single.view(np.int32)
    assert libdevice.elementwise("__nv_float_as_int", single).tolist() == word.tolist()
    assert libdevice.elementwise("__nv_float_as_uint", single).tolist() == word.tolist()
    np.testing.assert_array_equal(libdevice.elementwise("__nv_int_as_float", word), single)
    np.testing.assert_array_equal(libdevice.elementwise("__nv_uint_as_float", word.view(np.uint32)), single)


def test_questions_about_floats_are_answered_with_0_or_1() -> None:
    values = np.array([math.nan, math.inf, -math.inf, -0.0, 1.0])
    answers = {
        ("__nv_isnanf", "__nv_isnand", "__ocml_isnan_f32", "__ocml_isnan_f64"): [1, 0, 0, 0, 0],
        ("__nv_isinff", "__nv_isinfd", "__ocml_isinf_f32", "__ocml_isinf_f64"): [0, 1, 1, 0, 0],
        ("__nv_finitef", "__nv_isfinited", "__ocml_isfinite_f32", "__ocml_isfinite_f64"): [0, 0, 0, 1, 1],
    }
    for symbols, expected in answers.items():
        for symbol in symbols:
            assert libdevice.elementwise(symbol, values).tolist() == expected
    for symbol in ("__nv_signbitf", "__nv_signbitd", "__ocml_signbit_f32", "__ocml_signbit_f64"):
        assert libdevice.elementwise(symbol, values[1:]).tolist() == [0, 1, 1, 0]


def test_exponents_as_integers() -> None:
    values = np.array([0.0, math.nan, -math.inf, 1.0, -0.75, 1e-40, 1e30])
    expected = [-(2**31), -(2**31), 2**31 - 1, 0, -1, -133, 99]
    for symbol in ("__nv_ilogbf", "__nv_ilogb", "__ocml_ilogb_f32", "__ocml_ilogb_f64"):
        assert libdevice.elementwise(symbol, values).tolist() == expected


@pytest.mark.parametrize("direction", "nzdu")
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_a_rounding_in_the_name_is_honoured(op: str, direction: str) -> None:
    a, b = np.array([1.0, -1.0], np.float32), np.array([3.0, 3.0], np.float32) * np.float32(1 + 2**-23)
    exact = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op](a.astype("f8"), b)
    result = libdevice.elementwise(f"__nv_f{op}_r{direction}", a, b).astype("f8")
    if direction == "d":
        assert (result <= exact).all()
    elif direction == "u":
        assert (result >= exact).all()
    elif direction == "z":
        assert (np.abs(result) <= np.abs(exact)).all()
    assert (np.abs(result - exact) <= np.spacing(exact.astype("f4")).astype("f8").__abs__()).all()


def test_conversions_keep_to_their_direction_and_range() -> None:
    values = np.array([2.5, -2.5, 3e9, -1.0, math.nan], np.float32)
    assert libdevice.elementwise("__nv_float2int_rn", values).tolist() == [2, -2, 2**31 - 1, -1, 0]
    assert libdevice.elementwise("__nv_float2int_rz", values).tolist() == [2, -2, 2**31 - 1, -1, 0]
    assert libdevice.elementwise("__nv_float2int_rd", values).tolist() == [2, -3, 2**31 - 1, -1, 0]
    assert libdevice.elementwise("__nv_float2int_ru", values).tolist() == [3, -2, 2**31 - 1, -1, 0]
    as_signed = [2, 0, 3_000_000_000 - 2**32, 0, 0]
    assert libdevice.elementwise("__nv_float2uint_rn", values).tolist() == as_signed
    assert libdevice.elementwise("__nv_llrintf", values).tolist() == [2, -2, 3_000_000_000, -1, -(2**63)]
    assert libdevice.elementwise("__nv_llround", values).tolist() == [3, -3, 3_000_000_000, -1, -(2**63)]
    large = np.array([2**24 + 1], np.int32)
    assert libdevice.elementwise("__nv_int2float_rd", large).tolist() == [2.0**24]
    assert libdevice.elementwise("__nv_int2float_ru", large).tolist() == [2.0**24 + 2]


def test_the_quick_ones_have_their_quirks() -> None:
    def call(symbol: str, *values: float) -> float:
        return float(libdevice.elementwise(symbol, *[np.array([value], np.float32) for value in values])[0])

    assert call("__nv_fast_fdividef", 6.0, 3.0) == 2.0
    assert call("__nv_fast_fdividef", 1e38, 1e38) == 0.0  # the divisor is beyond 2**126
    assert math.isnan(call("__nv_fast_fdividef", math.inf, 1e38))
    assert call("__nv_fast_fdividef", 1.0, math.inf) == 0.0
    assert math.isnan(call("__nv_fast_powf", -2.0, 2.0))
    assert call("__nv_fast_powf", 2.0, 10.0) == 1024.0
    assert [call("__nv_saturatef", x) for x in (-1.0, 0.25, 7.0, math.nan)] == [0.0, 0.25, 1.0, 0.0]
    assert call("__triton_hip_fast_fdividef", 1e38, 1e38) == 1.0
    for name in ("sin", "cos", "tan", "exp", "exp10", "log", "log2", "log10"):
        assert call(f"__nv_fast_{name}f", 0.7) == call(f"__nv_{name}f", 0.7)
    reciprocal = libdevice.elementwise("__nv_rcp64h", np.array([3.0]))
    assert reciprocal.view(np.uint64)[0] & 0xFFFFFFFF == 0
    np.testing.assert_allclose(reciprocal, 1 / 3, rtol=2.0**-20)


def test_one_symbol_of_rocm_serves_both_widths() -> None:
    for kind in (np.float32, np.float64):
        assert libdevice.elementwise("__triton_hip_fabs", np.array([-1.5], kind)).dtype == kind
        assert libdevice.elementwise("__triton_hip_rint", np.array([2.5], kind)).tolist() == [2.0]
        assert libdevice.elementwise("__triton_hip_llrint", np.array([3.5], kind)).tolist() == [4]
    for kind in (np.int32, np.int64):
        assert libdevice.elementwise("__triton_hip_iabs", np.array([-7], kind)).dtype == kind


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_erf_of_the_language_is_pytorchs(kind: type[np.floating]) -> None:
    values = np.linspace(-5, 5, 101).astype(kind)
    result = libdevice.erf(np.broadcast_to(values[:, None], (101, 3))[::-1])
    assert result.dtype == kind
    expected = torch.erf(torch.from_numpy(values)).numpy()[::-1]
    np.testing.assert_array_equal(result, np.repeat(expected[:, None], 3, 1))
