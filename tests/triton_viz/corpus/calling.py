"""What kernels are given and what they call: floats, None, tuples, defaults, globals, nested functions."""

import typing

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus import deeper, helpers
from tests.triton_viz.corpus.case import Arguments, Case, integers, normal
from tests.triton_viz.corpus.helpers import loaded_row, polynomial

I32 = torch.int32
WIDTH: tl.constexpr = tl.constexpr(8)
NAMES = tl.constexpr((2, 3, 5))


class Affine(typing.NamedTuple):
    """A tuple with names."""

    scale: typing.Any
    shift: typing.Any


@triton.jit
def affine(x, out, scale, shift, BLOCK: tl.constexpr):
    """Floats that are arguments."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * scale + shift)


@triton.jit
def optional(x, bias, scale, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + at)
    if bias is not None:
        v += tl.load(bias + at)
    if scale is None:
        v = v * 2
    else:
        v = v * scale
    tl.store(out + row * BLOCK + at, v)


@triton.jit
def kinds_of_arguments(
    out,
    flag: tl.int1,
    small,
    large,
    huge,
    half,
    KIND: tl.constexpr,
    TYPE: tl.constexpr,
    by: tl.constexpr = 3,
    more=4,
):
    """Bool, int of 32 and 64 bits, unsigned, float; constants that are strings and types; defaults."""
    pid = tl.program_id(0)
    r = tl.full([], 0, TYPE)
    if flag:
        r += 1
    if KIND == "wide":
        r += large // 1000000000
    else:
        r += small
    r += (huge >> 60).to(TYPE)
    tl.store(out + pid, r * by + more + (half * 2).to(TYPE))


@triton.jit
def sum_of_tuple(tensors, weights, out, BLOCK: tl.constexpr):
    """Tuples of tensors and of numbers, of a length known when compiling."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for n in tl.static_range(len(tensors)):
        total += tl.load(tensors[n] + at) * weights[n]
    tl.store(out + at, total)


@triton.jit
def named_tuple(x, out, by: Affine, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * by.scale + tl.load(by.shift + at))


@triton.jit
def tuples_inside(x, out, BLOCK: tl.constexpr):
    """Tuples made, swapped, taken apart and passed on inside a kernel."""
    row = tl.program_id(0)
    at = row * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    pair = (v, row)
    second, first = deeper.swap(pair)
    both = (first + second, (first, second * 2))
    total, (_, twice) = both
    tl.store(out + at, total + twice)


@triton.jit
def across_files(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = loaded_row(x, row, stride, columns, BLOCK, fill=1.0)
    at = tl.arange(0, BLOCK)
    helpers.store_twice(out, row * BLOCK + at, helpers.scaled(v) + helpers.scaled(v, by=0.5), at < columns)


@triton.jit
def recursive(x, out, DEGREE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, polynomial(tl.load(x + at), DEGREE))


@triton.jit
def constants_outside(x, out):
    """Constants of this file and of another."""
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    v = tl.load(x + at)
    for n in tl.static_range(3):
        v = v * NAMES[n] + helpers.SCALE
    tl.store(out + at, v)


@triton.jit
def apply_twice(v, FUNCTION: tl.constexpr):
    return FUNCTION(FUNCTION(v, v), v)


@triton.jit
def function_as_argument(x, out, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, apply_twice(tl.load(x + at), FUNCTION))


@triton.jit
def members(x, out, BLOCK: tl.constexpr):
    """What blocks can do as methods, and what they know of themselves."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    r = v.reshape(BLOCK // 2, 2).sum(1).max(0) + v.abs().exp2().log2().max(axis=0)
    tl.static_assert(v.shape[0] == BLOCK)
    tl.static_assert(v.numel == BLOCK)
    tl.static_assert(v.dtype == tl.float32)
    tl.static_assert(v.type.is_block())
    tl.static_assert(x.dtype.element_ty == tl.float32)
    tl.store(out + tl.program_id(0), r + v.argmax(0).to(tl.float32))


@triton.jit
def speaks(x, out, BLOCK: tl.constexpr, LOUD: tl.constexpr):
    """Prints and checks: both happen, neither changes a value."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.static_print("block of", BLOCK)
    v = tl.load(x + at)
    tl.device_assert(v >= 0, "values are not negative")
    if LOUD:
        if pid == 1:
            tl.device_print("values", v, pid)
            print("program", pid)
    tl.static_assert(BLOCK % 2 == 0, "an even block")
    tl.store(out + at, v)


def kinds_expected(a: Arguments) -> dict[str, torch.Tensor]:
    r = (1 if a["flag"] else 0) + (a["large"] // 10**9 if a["KIND"] == "wide" else a["small"])
    r = (r + (a["huge"] >> 60)) * 3 + 4 + int(a["half"] * 2)
    return {"out": torch.full_like(a["out"], r)}


def kinds_case(flag: bool, kind: str, dtype: torch.dtype, tl_dtype: tl.dtype) -> Case:
    return Case(
        f"kinds_of_arguments_{flag}_{kind}",
        kinds_of_arguments,
        lambda g: {
            "out": torch.zeros(3, dtype=dtype),
            "flag": flag,
            "small": -7,
            "large": 5_000_000_000,
            "huge": 2**63 + 2**60,
            "half": 2.5,
            "KIND": kind,
            "TYPE": tl_dtype,
        },
        (3,),
        kinds_expected,
    )


def optional_case(bias: bool, scale: float | None) -> Case:
    return Case(
        f"optional_arguments_{bias}_{scale}",
        optional,
        lambda g: {
            "x": normal(g, 4, 8),
            "bias": normal(g, 8) if bias else None,
            "scale": scale,
            "out": torch.zeros(4, 8),
            "BLOCK": 8,
        },
        (4,),
        lambda a: {
            "out": (a["x"] + (a["bias"] if bias else 0)) * torch.tensor(2.0 if scale is None else scale)
        },
    )


def weighted(a: Arguments) -> dict[str, torch.Tensor]:
    return {"out": sum(t * w for t, w in zip(a["tensors"], a["weights"], strict=True))}


def twice(a: Arguments) -> dict[str, torch.Tensor]:
    v = a["x"] * 6 + a["x"] * 1.5
    out = a["out"].clone()
    out[:, :6] = torch.stack([v, v * v], 2)[:, :6]
    return {"out": out}


def horner(x: torch.Tensor, degree: int) -> torch.Tensor:
    r = torch.ones_like(x)
    for _ in range(degree):
        r = x * r + 1
    return r


def of_members(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"]
    return {"out": x.reshape(4, 4, 2).sum(2).amax(1) + x.abs().amax(1) + x.argmax(1)}


@triton.jit
def wide_by_annotation(out, n: tl.int64, m, narrow: tl.uint8):
    pid = tl.program_id(0)
    tl.store(out + pid * 2, (pid + 1) * n * m)
    tl.store(out + pid * 2 + 1, narrow + narrow)


CASES = [
    *(
        Case(
            f"float_arguments_{str(dtype)[6:]}",
            affine,
            lambda g, dtype=dtype: {
                "x": normal(g, 32, dtype=dtype),
                "out": torch.zeros(32),
                "scale": 1.7,
                "shift": -0.3,
                "BLOCK": 8,
            },
            (4,),
            lambda a: {
                "out": (a["x"].double() * float(torch.tensor(1.7)) + float(torch.tensor(-0.3))).float()
            },
            rtol=rtol,
            atol=rtol,
        )
        for dtype, rtol in ((torch.float32, 1e-6), (torch.float16, 1e-6), (torch.bfloat16, 1e-6))
    ),
    Case(
        "whole_floats_stay_floats",
        affine,
        lambda g: {
            "x": integers(g, 0, 9, 32),
            "out": torch.zeros(32),
            "scale": 2.0,
            "shift": 0.0,
            "BLOCK": 8,
        },
        (4,),
        lambda a: {"out": a["x"] * 2.0},
    ),
    *(optional_case(bias, scale) for bias in (True, False) for scale in (None, 0.5)),
    kinds_case(True, "wide", torch.int64, tl.int64),
    kinds_case(False, "narrow", I32, tl.int32),
    Case(
        "tuple_of_tensors",
        sum_of_tuple,
        lambda g: {
            "tensors": (normal(g, 32), normal(g, 32), normal(g, 32)),
            "weights": (2, 0.5, -1),
            "out": torch.zeros(32),
            "BLOCK": 8,
        },
        (4,),
        weighted,
        rtol=1e-6,
        atol=1e-6,
    ),
    Case(
        "named_tuple",
        named_tuple,
        lambda g: {"x": normal(g, 32), "out": torch.zeros(32), "by": Affine(4, normal(g, 32)), "BLOCK": 8},
        (4,),
        lambda a: {"out": a["x"] * 4 + a["by"].shift},
        rtol=1e-6,
        atol=1e-6,
    ),
    Case(
        "tuples_inside_a_kernel",
        tuples_inside,
        lambda g: {"x": integers(g, 0, 99, 4, 8), "out": torch.zeros(4, 8, dtype=I32), "BLOCK": 8},
        (4,),
        lambda a: {"out": a["x"] + torch.arange(4, dtype=I32)[:, None] * 3},
    ),
    Case(
        "functions_of_other_files",
        across_files,
        lambda g: {"x": normal(g, 3, 8), "out": torch.zeros(3, 8, 2), "columns": 6, "stride": 8, "BLOCK": 8},
        (3,),
        twice,
        rtol=1e-5,
        atol=1e-5,
    ),
    *(
        Case(
            f"recursion_to_depth_{degree}",
            recursive,
            lambda g, degree=degree: {
                "x": integers(g, -3, 4, 16),
                "out": torch.zeros(16, dtype=I32),
                "DEGREE": degree,
                "BLOCK": 8,
            },
            (2,),
            lambda a: {"out": horner(a["x"], a["DEGREE"])},
        )
        for degree in (0, 1, 4)
    ),
    Case(
        "constants_of_the_module",
        constants_outside,
        lambda g: {"x": integers(g, -3, 4, 16), "out": torch.zeros(16, dtype=I32)},
        (2,),
        lambda a: {"out": ((a["x"] * 2 + 3) * 3 + 3) * 5 + 3},
    ),
    Case(
        "function_as_argument",
        function_as_argument,
        lambda g: {
            "x": integers(g, -3, 4, 16),
            "out": torch.zeros(16, dtype=I32),
            "FUNCTION": deeper.times,
            "BLOCK": 8,
        },
        (2,),
        lambda a: {"out": a["x"] ** 3},
    ),
    Case(
        "methods_of_blocks",
        members,
        lambda g: {"x": normal(g, 4, 8), "out": torch.zeros(4), "BLOCK": 8},
        (4,),
        of_members,
        rtol=1e-6,
        atol=1e-5,
    ),
    *(
        Case(
            f"prints_and_asserts{'_loud' if loud else ''}",
            speaks,
            lambda g, loud=loud: {
                "x": integers(g, 0, 9, 24),
                "out": torch.zeros(24, dtype=I32),
                "BLOCK": 8,
                "LOUD": loud,
            },
            (3,),
            lambda a: {"out": a["x"]},
        )
        for loud in (True, False)
    ),
    Case(
        "wide_by_annotation",
        wide_by_annotation,
        lambda g: {"out": torch.zeros(4, dtype=torch.int64), "n": 2**20, "m": 2**20, "narrow": 200},
        (2,),
        lambda a: {"out": torch.tensor([2**40, 144, 2**41, 144])},
    ),
]
