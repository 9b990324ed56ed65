"""libdevice in other ways than on blocks of floats of one type: bits, scalars, mixed types, branches."""

from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal
from tests.triton_viz.corpus.libdevice_math import name_of


@triton.jit
def questions(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    nan = tl.where(libdevice.isnan(a) != 0, 1, 0)
    infinite = tl.where(libdevice.isinf(a) != 0, 2, 0)
    finite = tl.where(libdevice.finitef(a) != 0, 4, 0)
    negative = tl.where(libdevice.signbit(a) != 0, 8, 0)
    tl.store(out + at, nan + infinite + finite + negative)


@triton.jit
def bits(x, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    if OP == "clz":
        r = libdevice.clz(a)
    elif OP == "popc":
        r = libdevice.popc(a)
    elif OP == "brev":
        r = libdevice.brev(a)
    elif OP == "ffs":
        r = libdevice.ffs(a)
    else:
        tl.static_assert(OP == "abs")
        r = libdevice.abs(a)
    tl.store(out + at, r)


@triton.jit
def mixed_arguments(x, n, out, power, BLOCK: tl.constexpr):
    """A float with an int block, with a scalar, with a constant."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    r = libdevice.ldexp(a, tl.load(n + at)) + libdevice.pow(tl.abs(a), power)
    tl.store(out + at, r + libdevice.fma(a, a, 1.5 * a))


@triton.jit
def fast_versions(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    r = libdevice.fast_expf(a) + libdevice.fast_sinf(a) + libdevice.fast_cosf(a)
    tl.store(
        out + at,
        r + libdevice.fast_dividef(a, 3.0 + a) + libdevice.fast_powf(a, 2.0) + libdevice.fast_logf(a),
    )


@triton.jit
def scalar_calls(x, out):
    """Functions of scalars, and of scalars in a branch."""
    pid = tl.program_id(0)
    a = tl.load(x + pid)
    r = libdevice.tanh(a)
    if a > 0:
        r = r + libdevice.log1p(a)
    tl.store(out + pid, r)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    """The way activation functions are written."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n)
    inner = 0.7978845608 * (a + 0.044715 * a * a * a)
    tl.store(out + at, 0.5 * a * (1 + libdevice.tanh(inner)), mask=at < n)


def answers(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"]
    return {"out": (x.isnan() * 1 + x.isinf() * 2 + x.isfinite() * 4 + x.signbit() * 8).int()}


def bit_case(op: str, function: Callable[[int], int], kind: torch.dtype = torch.int32) -> Case:
    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        found = np.array([function(v & 0xFFFFFFFF) for v in a["x"].tolist()], np.uint32)
        return {"out": torch.from_numpy(found.view(np.int32))}

    def arguments(generator: torch.Generator) -> Arguments:
        x = integers(generator, -(2**31) + 1, 2**31, 32)
        x[:4] = torch.tensor([0, 1, -1, 2**30])
        return {"x": x, "out": torch.zeros(32, dtype=kind), "OP": op, "BLOCK": 8}

    return Case(name_of(op, torch.int32), bits, arguments, (4,), expected)


def mixed(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].double()
    return {"out": (torch.ldexp(x, a["n"]) + x.abs() ** a["power"] + x * x + 1.5 * x).float()}


def fast(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].double()
    return {"out": (x.exp() + x.sin() + x.cos() + x / (3.0 + x) + x**2 + x.log()).float()}


INF, NAN = float("inf"), float("nan")

CASES = [
    Case(
        "libdevice_questions",
        questions,
        lambda g: {
            "x": torch.tensor([0.0, -0.0, INF, -INF, NAN, 1.5, -2.5, 1e-40]),
            "out": torch.zeros(8, dtype=torch.int32),
            "BLOCK": 4,
        },
        (2,),
        answers,
    ),
    bit_case("clz", lambda v: 32 - v.bit_length()),
    bit_case("popc", int.bit_count),
    bit_case("brev", lambda v: int(f"{v:032b}"[::-1], 2)),
    bit_case("ffs", lambda v: (v & -v).bit_length()),
    bit_case("abs", lambda v: v if v < 2**31 else 2**32 - v),
    Case(
        "libdevice_mixed_arguments",
        mixed_arguments,
        lambda g: {
            "x": normal(g, 32),
            "n": integers(g, -3, 4, 32),
            "out": torch.zeros(32),
            "power": 2.5,
            "BLOCK": 8,
        },
        (4,),
        mixed,
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "libdevice_fast_versions",
        fast_versions,
        lambda g: {"x": torch.rand(32, generator=g) + 0.5, "out": torch.zeros(32), "BLOCK": 8},
        (4,),
        fast,
        rtol=1e-4,
        atol=1e-4,
    ),
    Case(
        "libdevice_of_scalars",
        scalar_calls,
        lambda g: {"x": normal(g, 9), "out": torch.zeros(9)},
        (9,),
        lambda a: {"out": a["x"].tanh() + a["x"].clamp(min=0).log1p()},
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "libdevice_gelu",
        gelu,
        lambda g: {"x": normal(g, 60), "out": torch.zeros(60), "n": 60, "BLOCK": 16},
        (4,),
        lambda a: {"out": torch.nn.functional.gelu(a["x"], approximate="tanh")},
        rtol=1e-5,
        atol=1e-6,
    ),
]
