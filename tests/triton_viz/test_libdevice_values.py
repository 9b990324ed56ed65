"""Values of device functions: those of mpmath, and in edge cases those of C and CUDA."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from tests.triton_viz.helpers.device_symbols import EDGES, SIGNATURES
from triton_viz.numerics import libdevice

mp = mpmath.mp.clone()
mp.prec = 400


def _erfcinv(x: Any) -> Any:
    return mp.erfinv(1 - x)


def _inverse(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a: 1 / function(*a)


def _norm(*parts: Any) -> Any:
    return mp.sqrt(mp.fsum(part * part for part in parts))


REALS = [
    -20.25,
    -3.7,
    -1.3,
    -0.9,
    -0.3,
    -1e-3,
    1e-6,
    0.011,
    0.3,
    0.77,
    1.0,
    1.9,
    2.7,
    5.52,
    7.1,
    9.9,
    24.7,
    30.3,
]
POSITIVE = [x for x in REALS if x > 0] + [1e-30, 1e20, 171.3]
UNIT = [-0.999, -0.7, -0.3, -1e-5, 1e-9, 0.1, 0.25, 0.5, 0.77, 0.9999]
SHARE = [x for x in UNIT if x > 0]
PAIRS = [(0.3, 2.5), (7.1, -1.25), (2.0, 10.0), (24.7, 3.0), (1e-3, 0.5), (100.5, 7.25), (3.0, 1e-4)]
TRIPLES = [(a, b, c) for (a, b), c in zip(PAIRS, [1.0, -2.5, 1e-3, 7.0, 3e-4, 0.1, 9.9], strict=True)]
ORDERS = [(0, 3.3), (1, 3.3), (2, 0.1), (3, 8.7), (5, 30.3), (7, 0.9), (30, 12.5), (2, 100.25)]

# CUDA's name: the reference function, and its arguments.
REFERENCES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "sqrt": (mp.sqrt, POSITIVE),
    "rsqrt": (_inverse(mp.sqrt), POSITIVE),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), REALS),
    "rcbrt": (lambda x: mp.sign(x) / mp.cbrt(abs(x)), REALS),
    "exp": (mp.exp, REALS),
    "exp2": (lambda x: mp.mpf(2) ** x, REALS),
    "exp10": (lambda x: mp.mpf(10) ** x, REALS),
    "expm1": (mp.expm1, REALS),
    "log": (mp.log, POSITIVE),
    "log2": (lambda x: mp.log(x, 2), POSITIVE),
    "log10": (mp.log10, POSITIVE),
    "log1p": (mp.log1p, POSITIVE + [-0.5, -1e-5]),
    "sin": (mp.sin, REALS),
    "cos": (mp.cos, REALS),
    "tan": (mp.tan, REALS),
    "sinpi": (mp.sinpi, REALS),
    "cospi": (mp.cospi, REALS),
    "asin": (mp.asin, UNIT),
    "acos": (mp.acos, UNIT),
    "atan": (mp.atan, REALS),
    "sinh": (mp.sinh, REALS),
    "cosh": (mp.cosh, REALS),
    "tanh": (mp.tanh, REALS),
    "asinh": (mp.asinh, REALS),
    "acosh": (mp.acosh, [x for x in POSITIVE if x > 1]),
    "atanh": (mp.atanh, UNIT),
    "erf": (mp.erf, REALS),
    "erfc": (mp.erfc, [x for x in REALS if x < 9]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [x for x in REALS if x > -5]),
    "erfinv": (mp.erfinv, UNIT),
    "erfcinv": (_erfcinv, SHARE + [1.3, 1.9, 1e-30]),
    "normcdf": (mp.ncdf, [x for x in REALS if x > -9]),
    "normcdfinv": (lambda p: -mp.sqrt(2) * _erfcinv(2 * p), SHARE + [1e-30]),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), REALS),
    "tgamma": (mp.gamma, REALS),
    "j0": (mp.j0, REALS),
    "j1": (mp.j1, REALS),
    "y0": (lambda x: mp.bessely(0, x), POSITIVE),
    "y1": (lambda x: mp.bessely(1, x), POSITIVE),
    "jn": (mp.besselj, ORDERS),
    "yn": (mp.bessely, ORDERS),
    "cyl_bessel_i0": (lambda x: mp.besseli(0, x), REALS),
    "cyl_bessel_i1": (lambda x: mp.besseli(1, x), REALS),
    "atan2": (mp.atan2, PAIRS),
    "pow": (mp.power, PAIRS),
    "powi": (mp.power, [(1.5, 7), (-2.25, 3), (0.3, -5), (1.0000001, 2**24 + 1)]),
    "hypot": (_norm, PAIRS),
    "rhypot": (_inverse(_norm), PAIRS),
    "norm3d": (_norm, TRIPLES),
    "rnorm3d": (_inverse(_norm), TRIPLES),
    "norm4d": (_norm, [(*triple, 2.5) for triple in TRIPLES]),
    "rnorm4d": (_inverse(_norm), [(*triple, 2.5) for triple in TRIPLES]),
    "fma": (lambda a, b, c: a * b + c, TRIPLES),
    "ldexp": (lambda x, n: mp.ldexp(x, int(n)), [(1.25, 3), (-0.3, -100), (7.0, 0)]),
    "scalbn": (lambda x, n: mp.ldexp(x, int(n)), [(1.25, 3), (-0.3, -100), (7.0, 0)]),
}
# How far from the exact value, in steps of the result's type: float32 as CUDA promises, and a little more for
# what is composed of several functions in float64.
ALLOWED = {np.float32: 4, np.float64: 64}
BESSEL = {"j0", "j1", "y0", "y1", "jn", "yn"}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFERENCES)
def test_values_are_right_to_the_last_digits(name: str, kind: type[np.floating]) -> None:
    reference, places = REFERENCES[name]
    symbol = f"__nv_{name}" + ("f" if kind is np.float32 else "")
    signature = next(s for s in SIGNATURES if s.symbol == symbol)
    rows = [place if isinstance(place, tuple) else (place,) for place in places]
    given = [
        np.array(column, dtype)
        for column, dtype in zip(zip(*rows, strict=True), signature.arguments, strict=True)
    ]
    result = libdevice.elementwise(symbol, *given)
    for index, ours in enumerate(result):
        exact = reference(*(mp.mpf(column[index].item()) for column in given))
        size = np.abs(kind(float(exact)))
        if name in BESSEL:  # close to a zero, digits are lost to the argument's
            size = np.maximum(size, kind(1e-2))
        allowed = ALLOWED[kind] * float(np.spacing(size)) if np.isfinite(size) else 0
        error = abs(mp.mpf(float(ours)) - exact) if np.isfinite(size) else 0 if ours == float(exact) else 1
        assert error <= allowed, (name, [float(column[index]) for column in given], float(ours), float(exact))


# -- edges: PyTorch, which has C's, where it has the function ------------------------------------------------

EDGE_REFERENCES: dict[str, Callable[..., torch.Tensor]] = {
    "fabs": torch.abs,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "rint": torch.round,
    "nearbyint": torch.round,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "atan2": torch.atan2,
    "pow": torch.pow,
    "fmod": torch.fmod,
    "copysign": torch.copysign,
    "nextafter": torch.nextafter,
    "hypot": torch.hypot,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", EDGE_REFERENCES)
def test_edges_are_those_of_c(name: str, dtype: torch.dtype) -> None:
    reference = EDGE_REFERENCES[name]
    symbol = f"__nv_{name}" + ("f" if dtype == torch.float32 else "")
    count = len(next(s for s in SIGNATURES if s.symbol == symbol).arguments)
    # Where torch goes its own way (float32 sine of 1e30 in its vectorized code) double says what is right.
    values = torch.tensor(EDGES, dtype=dtype)
    given = torch.meshgrid(*[values] * count, indexing="ij")
    exact = reference(*[part.double() for part in given]) if name != "nextafter" else reference(*given)
    with np.errstate(over="ignore", under="ignore"):
        expected = exact.numpy().astype(str(dtype).removeprefix("torch."))
    result = libdevice.elementwise(symbol, *[part.numpy() for part in given])
    np.testing.assert_allclose(result, expected, rtol=5e-7 if dtype == torch.float32 else 1e-14, atol=0)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[number]), np.signbit(expected[number]))


NAN, INF = math.nan, math.inf
SPECIAL: list[tuple[str, tuple[float, ...], float]] = [
    ("round", (0.5,), 1.0),
    ("round", (-2.5,), -3.0),
    ("round", (0.49999997,), 0.0),
    ("round", (8388609.0,), 8388609.0),
    ("round", (-INF,), -INF),
    ("exp10", (3.0,), 1000.0),
    ("cbrt", (-27.0,), -3.0),
    ("cbrt", (-0.0,), -0.0),
    ("rcbrt", (-8.0,), -0.5),
    ("rcbrt", (-0.0,), -INF),
    ("sinpi", (-1.0,), -0.0),
    ("sinpi", (2.0,), 0.0),
    ("sinpi", (2.5,), 1.0),
    ("sinpi", (-0.5,), -1.0),
    ("sinpi", (INF,), NAN),
    ("cospi", (0.5,), 0.0),
    ("cospi", (3.0,), -1.0),
    ("cospi", (-1.0,), -1.0),
    ("cospi", (1e30,), 1.0),
    ("erfcx", (INF,), 0.0),
    ("erfcx", (-INF,), INF),
    ("erfinv", (1.0,), INF),
    ("erfinv", (-1.0,), -INF),
    ("erfinv", (1.5,), NAN),
    ("erfcinv", (0.0,), INF),
    ("erfcinv", (2.0,), -INF),
    ("erfcinv", (2.5,), NAN),
    ("normcdf", (-INF,), 0.0),
    ("normcdf", (INF,), 1.0),
    ("normcdfinv", (0.0,), -INF),
    ("normcdfinv", (1.0,), INF),
    ("normcdfinv", (-1.0,), NAN),
    ("lgamma", (-3.0,), INF),
    ("lgamma", (-INF,), INF),
    ("tgamma", (-3.0,), NAN),
    ("tgamma", (-0.0,), -INF),
    ("tgamma", (0.0,), INF),
    ("tgamma", (200.0,), INF),
    ("tgamma", (-200.5,), -0.0),
    ("tgamma", (INF,), INF),
    ("tgamma", (-INF,), NAN),
    ("j0", (0.0,), 1.0),
    ("j0", (-INF,), 0.0),
    ("j1", (-0.0,), -0.0),
    ("j1", (INF,), 0.0),
    ("jn", (-1, 1.0), NAN),
    ("jn", (3, 0.0), 0.0),
    ("jn", (0, 0.0), 1.0),
    ("jn", (2, INF), 0.0),
    ("y0", (0.0,), -INF),
    ("y0", (-1.0,), NAN),
    ("y0", (INF,), 0.0),
    ("y1", (0.0,), -INF),
    ("yn", (3, 0.0), -INF),
    ("yn", (-1, 1.0), NAN),
    ("yn", (2, INF), 0.0),
    ("yn", (30, 1e-30), -INF),
    ("cyl_bessel_i0", (-INF,), INF),
    ("cyl_bessel_i1", (-INF,), -INF),
    ("cyl_bessel_i1", (-0.0,), -0.0),
    ("pow", (1.0, NAN), 1.0),
    ("pow", (NAN, 0.0), 1.0),
    ("pow", (-8.0, 1 / 3), NAN),
    ("powi", (-2.0, 3), -8.0),
    ("powi", (-0.0, -3), -INF),
    ("powi", (0.0, 0), 1.0),
    ("powi", (-1.0, 2**31 - 1), -1.0),
    ("rhypot", (INF, NAN), 0.0),
    ("norm3d", (NAN, 1.0, -INF), INF),
    ("rnorm4d", (0.0, 0.0, 0.0, 0.0), INF),
    ("fdim", (3.0, 1.0), 2.0),
    ("fdim", (1.0, 3.0), 0.0),
    ("fdim", (INF, INF), 0.0),
    ("fdim", (NAN, 1.0), NAN),
    ("logb", (0.0,), -INF),
    ("logb", (-INF,), INF),
    ("logb", (-10.0,), 3.0),
    ("ldexp", (1.0, 10000), INF),
    ("ldexp", (-1.0, -10000), -0.0),
    ("fma", (INF, 0.0, 1.0), NAN),
    ("fma", (0.0, -1.0, -0.0), -0.0),
    ("fma", (1.0, 1.0, -1.0), 0.0),
]


@pytest.mark.parametrize("suffix", ["f", ""], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "given", "expected"), SPECIAL)
def test_edges_of_special_functions(
    name: str, given: tuple[float, ...], expected: float, suffix: str
) -> None:
    result = libdevice.elementwise(f"__nv_{name}{suffix}", *[np.array([value]) for value in given])
    np.testing.assert_array_equal(result, [expected])
    if not math.isnan(expected):
        assert np.signbit(result[0]) == (math.copysign(1, expected) < 0)
