"""The functions of libdevice on floats of one type, which compiled kernels call."""

import math
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.triton_viz.corpus.case import Arguments, Case, normal


@triton.jit
def unary(x, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    if OP == "acos":
        r = libdevice.acos(a)
    elif OP == "acosh":
        r = libdevice.acosh(a)
    elif OP == "asin":
        r = libdevice.asin(a)
    elif OP == "asinh":
        r = libdevice.asinh(a)
    elif OP == "atan":
        r = libdevice.atan(a)
    elif OP == "atanh":
        r = libdevice.atanh(a)
    elif OP == "cbrt":
        r = libdevice.cbrt(a)
    elif OP == "ceil":
        r = libdevice.ceil(a)
    elif OP == "cos":
        r = libdevice.cos(a)
    elif OP == "cosh":
        r = libdevice.cosh(a)
    elif OP == "cospi":
        r = libdevice.cospi(a)
    elif OP == "cyl_bessel_i0":
        r = libdevice.cyl_bessel_i0(a)
    elif OP == "cyl_bessel_i1":
        r = libdevice.cyl_bessel_i1(a)
    elif OP == "erf":
        r = libdevice.erf(a)
    elif OP == "erfc":
        r = libdevice.erfc(a)
    elif OP == "erfcinv":
        r = libdevice.erfcinv(a)
    elif OP == "erfcx":
        r = libdevice.erfcx(a)
    elif OP == "erfinv":
        r = libdevice.erfinv(a)
    elif OP == "exp":
        r = libdevice.exp(a)
    elif OP == "exp10":
        r = libdevice.exp10(a)
    elif OP == "exp2":
        r = libdevice.exp2(a)
    elif OP == "expm1":
        r = libdevice.expm1(a)
    elif OP == "floor":
        r = libdevice.floor(a)
    elif OP == "j0":
        r = libdevice.j0(a)
    elif OP == "j1":
        r = libdevice.j1(a)
    elif OP == "lgamma":
        r = libdevice.lgamma(a)
    elif OP == "log":
        r = libdevice.log(a)
    elif OP == "log10":
        r = libdevice.log10(a)
    elif OP == "log1p":
        r = libdevice.log1p(a)
    elif OP == "log2":
        r = libdevice.log2(a)
    elif OP == "logb":
        r = libdevice.logb(a)
    elif OP == "nearbyint":
        r = libdevice.nearbyint(a)
    elif OP == "normcdf":
        r = libdevice.normcdf(a)
    elif OP == "normcdfinv":
        r = libdevice.normcdfinv(a)
    elif OP == "rcbrt":
        r = libdevice.rcbrt(a)
    elif OP == "rint":
        r = libdevice.rint(a)
    elif OP == "round":
        r = libdevice.round(a)
    elif OP == "rsqrt":
        r = libdevice.rsqrt(a)
    elif OP == "sin":
        r = libdevice.sin(a)
    elif OP == "sinh":
        r = libdevice.sinh(a)
    elif OP == "sinpi":
        r = libdevice.sinpi(a)
    elif OP == "sqrt":
        r = libdevice.sqrt(a)
    elif OP == "tan":
        r = libdevice.tan(a)
    elif OP == "tanh":
        r = libdevice.tanh(a)
    elif OP == "tgamma":
        r = libdevice.tgamma(a)
    elif OP == "trunc":
        r = libdevice.trunc(a)
    elif OP == "y0":
        r = libdevice.y0(a)
    elif OP == "y1":
        r = libdevice.y1(a)
    else:
        tl.static_assert(OP == "abs")
        r = libdevice.abs(a)
    tl.store(out + at, r)


@triton.jit
def binary(x, y, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    if OP == "atan2":
        r = libdevice.atan2(a, b)
    elif OP == "copysign":
        r = libdevice.copysign(a, b)
    elif OP == "fdim":
        r = libdevice.fdim(a, b)
    elif OP == "fmod":
        r = libdevice.fmod(a, b)
    elif OP == "hypot":
        r = libdevice.hypot(a, b)
    elif OP == "nextafter":
        r = libdevice.nextafter(a, b)
    elif OP == "pow":
        r = libdevice.pow(a, b)
    elif OP == "remainder":
        r = libdevice.remainder(a, b)
    else:
        tl.static_assert(OP == "rhypot")
        r = libdevice.rhypot(a, b)
    tl.store(out + at, r)


def by_element(function: Callable[..., float]) -> Callable[..., torch.Tensor]:
    """An oracle that computes one element at a time in Python."""

    def oracle(*inputs: torch.Tensor) -> torch.Tensor:
        rows = zip(*(t.double().tolist() for t in inputs), strict=True)
        return torch.tensor([function(*row) for row in rows], dtype=torch.float64)

    return oracle


def signed_root(v: float) -> float:
    return math.copysign(abs(v) ** (1 / 3), v)


def half_away(v: float) -> float:
    return math.copysign(math.floor(abs(v) + 0.5), v)


ANY, POSITIVE, UNIT, ABOVE_ONE, PROBABILITY = "any", "positive", "unit", "above one", "probability"
"""Which values a function is given: its domain, without the edges where only the last digits differ."""

UNARY: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "abs": (ANY, torch.abs),
    "acos": (UNIT, torch.acos),
    "acosh": (ABOVE_ONE, torch.acosh),
    "asin": (UNIT, torch.asin),
    "asinh": (ANY, torch.asinh),
    "atan": (ANY, torch.atan),
    "atanh": (UNIT, torch.atanh),
    "cbrt": (ANY, by_element(signed_root)),
    "ceil": (ANY, torch.ceil),
    "cos": (ANY, torch.cos),
    "cosh": (ANY, torch.cosh),
    "cospi": (ANY, lambda x: torch.cos(x * math.pi)),
    "cyl_bessel_i0": (ANY, torch.special.i0),
    "cyl_bessel_i1": (ANY, torch.special.i1),
    "erf": (ANY, torch.erf),
    "erfc": (ANY, torch.erfc),
    "erfcinv": (PROBABILITY, lambda x: torch.erfinv(1 - x)),
    "erfcx": (ANY, torch.special.erfcx),
    "erfinv": (UNIT, torch.erfinv),
    "exp": (ANY, torch.exp),
    "exp10": (ANY, lambda x: 10.0**x),
    "exp2": (ANY, torch.exp2),
    "expm1": (ANY, torch.expm1),
    "floor": (ANY, torch.floor),
    "j0": (POSITIVE, torch.special.bessel_j0),
    "j1": (POSITIVE, torch.special.bessel_j1),
    "lgamma": (POSITIVE, torch.lgamma),
    "log": (POSITIVE, torch.log),
    "log10": (POSITIVE, torch.log10),
    "log1p": (POSITIVE, torch.log1p),
    "log2": (POSITIVE, torch.log2),
    "logb": (POSITIVE, lambda x: torch.log2(x).floor()),
    "nearbyint": (ANY, torch.round),
    "normcdf": (ANY, torch.special.ndtr),
    "normcdfinv": (PROBABILITY, torch.special.ndtri),
    "rcbrt": (ANY, by_element(lambda v: 1 / signed_root(v))),
    "rint": (ANY, torch.round),
    "round": (ANY, by_element(half_away)),
    "rsqrt": (POSITIVE, torch.rsqrt),
    "sin": (ANY, torch.sin),
    "sinh": (ANY, torch.sinh),
    "sinpi": (ANY, lambda x: torch.sin(x * math.pi)),
    "sqrt": (POSITIVE, torch.sqrt),
    "tan": (ANY, torch.tan),
    "tanh": (ANY, torch.tanh),
    "tgamma": (POSITIVE, by_element(math.gamma)),
    "trunc": (ANY, torch.trunc),
    "y0": (POSITIVE, torch.special.bessel_y0),
    "y1": (POSITIVE, torch.special.bessel_y1),
}

BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "fdim": lambda a, b: (a - b).clamp(min=0),
    "fmod": torch.fmod,
    "hypot": torch.hypot,
    "pow": lambda a, b: a.abs() ** b,
    "remainder": by_element(math.remainder),
    "rhypot": lambda a, b: 1 / torch.hypot(a, b),
}


def domain(kind: str, generator: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    """64 values inside a function's domain; halves among them, for those that round."""
    x = torch.randn(64, generator=generator, dtype=torch.float64) * 2
    x[:8] = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1.0, -1.0])
    if kind == POSITIVE:
        x = x.abs() + 0.05
    elif kind == UNIT:
        x = x.tanh() * 0.95
    elif kind == ABOVE_ONE:
        x = x.abs() + 1.01
    elif kind == PROBABILITY:
        x = x.sigmoid().clamp(0.02, 0.98)
    return x.to(dtype)


def name_of(op: str, dtype: torch.dtype) -> str:
    return f"libdevice_{op}_{str(dtype).removeprefix('torch.')}"


def unary_case(op: str, dtype: torch.dtype) -> Case:
    kind, oracle = UNARY[op]
    # PyTorch's own Bessel functions of doubles have errors of 1e-7.
    rough = dtype == torch.float32 or op in ("j0", "j1", "y0", "y1")

    def arguments(generator: torch.Generator) -> Arguments:
        return {
            "x": domain(kind, generator, dtype),
            "out": torch.zeros(64, dtype=dtype),
            "OP": op,
            "BLOCK": 16,
        }

    return Case(
        name_of(op, dtype),
        unary,
        arguments,
        (4,),
        lambda a: {"out": oracle(a["x"].double()).to(dtype)},
        rtol=2e-5 if rough else 1e-7,
        atol=3e-6 if rough else 1e-8,
    )


def binary_case(op: str, dtype: torch.dtype) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        x, y = domain(ANY, generator, dtype), domain(ANY, generator, dtype)
        x = x.abs() if op == "pow" else x
        return {"x": x, "y": y, "out": torch.zeros(64, dtype=dtype), "OP": op, "BLOCK": 16}

    return Case(
        name_of(op, dtype),
        binary,
        arguments,
        (4,),
        lambda a: {"out": BINARY[op](a["x"].double(), a["y"].double()).to(dtype)},
        rtol=1e-5 if dtype == torch.float32 else 1e-9,
        atol=2e-6 if dtype == torch.float32 else 1e-9,
    )


F32, F64 = torch.float32, torch.float64

CASES = [
    *(unary_case(op, F32) for op in UNARY),
    *(unary_case(op, F64) for op in UNARY),
    *(binary_case(op, F32) for op in BINARY),
    *(binary_case(op, F64) for op in BINARY),
    Case(
        "libdevice_nextafter_float32",
        binary,
        lambda g: {
            "x": normal(g, 64),
            "y": normal(g, 64),
            "out": torch.zeros(64),
            "OP": "nextafter",
            "BLOCK": 16,
        },
        (4,),
        lambda a: {"out": torch.nextafter(a["x"], a["y"])},
    ),
]
