"""Functions of one operand, and small kernels that mix several."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.arithmetic import INTS, any_float, any_int
from tests.triton_viz.corpus.case import Arguments, Case, integers, normal


@triton.jit
def add_vectors(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def unary(x, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    if OP == "neg":
        c = -a
    elif OP == "invert":
        c = ~a
    elif OP == "abs":
        c = tl.abs(a)
    elif OP == "exp":
        c = tl.exp(a)
    elif OP == "exp2":
        c = tl.exp2(a)
    elif OP == "log":
        c = tl.log(a)
    elif OP == "log2":
        c = tl.log2(a)
    elif OP == "sin":
        c = tl.sin(a)
    elif OP == "cos":
        c = tl.cos(a)
    elif OP == "sqrt":
        c = tl.sqrt(a)
    elif OP == "sqrt_rn":
        c = tl.sqrt_rn(a)
    elif OP == "rsqrt":
        c = tl.rsqrt(a)
    elif OP == "erf":
        c = tl.erf(a)
    elif OP == "floor":
        c = tl.floor(a)
    elif OP == "ceil":
        c = tl.ceil(a)
    elif OP == "sigmoid":
        c = tl.sigmoid(a)
    else:
        tl.static_assert(OP == "softmax")
        c = tl.softmax(a)
    tl.store(out + at, c)


@triton.jit
def select_and_clamp(x, y, out, low, high, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    chosen = tl.where(a > b, a, -b)
    tl.store(out + at, tl.clamp(chosen, low, high))


@triton.jit
def clamp_keeps_nan(x, out, KEEP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    if KEEP:
        c = tl.clamp(a, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL)
    else:
        c = tl.clamp(a, -1.0, 1.0)
    tl.store(out + at, c)


@triton.jit
def multiply_add(x, y, z, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.fma(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


@triton.jit
def mixed_types(ints, floats, halves, out, BLOCK: tl.constexpr):
    """An int meets a float, a half meets a float, a Python number meets both."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i, f, h = tl.load(ints + at), tl.load(floats + at), tl.load(halves + at)
    tl.store(out + at, i * f + h * 2 + (i + 1) - 0.5)


@triton.jit
def reversed_operators(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    tl.store(out + at, (100 - a) * 3 + 1000 // a + 17 % a + (1 << (a & 3)) + (0x0F ^ a))


@triton.jit
def wide_offsets(x, out, stride, BLOCK: tl.constexpr):
    """Products that need 64 bits."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide = at.to(tl.int64) * stride
    tl.store(out + at, tl.load(x + at) + wide * wide)


@triton.jit
def chained_compare(x, out, low, high, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    tl.store(out + at, tl.where((low <= a) & (a < high), 1, 0) + (a == low).to(tl.int32) * 2)


UNARY: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "exp": (torch.exp, 2e-6),
    "exp2": (torch.exp2, 2e-6),
    "log": (lambda x: torch.log(x.abs()), 2e-6),
    "log2": (lambda x: torch.log2(x.abs()), 2e-6),
    "sin": (torch.sin, 2e-6),
    "cos": (torch.cos, 2e-6),
    "sqrt": (lambda x: torch.sqrt(x.abs()), 1e-6),
    "rsqrt": (lambda x: torch.rsqrt(x.abs()), 1e-6),
    "erf": (torch.erf, 2e-6),
    "floor": (torch.floor, 0.0),
    "ceil": (torch.ceil, 0.0),
    "sigmoid": (torch.sigmoid, 2e-6),
    "neg": (torch.neg, 0.0),
    "abs": (torch.abs, 0.0),
}
WANT_POSITIVE = {"log", "log2", "sqrt", "sqrt_rn", "rsqrt"}


def unary_case(
    op: str, x: Callable[[torch.Generator], torch.Tensor], oracle: Callable, rtol: float, kind: str
) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        values = x(generator)
        return {"x": values, "out": torch.zeros_like(values), "OP": op, "BLOCK": 16}

    return Case(
        f"{op}_{kind}",
        unary,
        arguments,
        (4,),
        lambda a: {"out": oracle(a["x"])},
        rtol=rtol,
        atol=rtol and 1e-7,
        reorders=op == "softmax",
    )


def unary_cases() -> list[Case]:
    cases = []
    for op, (oracle, rtol) in UNARY.items():
        for dtype in (torch.float32, torch.float64):
            kind = str(dtype).removeprefix("torch.")

            def values(generator, dtype=dtype, op=op):
                x = any_float(generator, dtype)[0]
                return x.abs() if op in WANT_POSITIVE else x

            cases.append(unary_case(op, values, oracle, rtol, kind))
    single = lambda g: any_float(g, torch.float32)[0].abs()  # noqa: E731
    cases.append(unary_case("sqrt_rn", single, lambda x: x.double().sqrt().float(), 0.0, "float32"))
    rows = lambda x: torch.softmax(x.reshape(4, 16), 1).reshape(-1)  # noqa: E731
    cases.append(unary_case("softmax", lambda g: normal(g, 64), rows, 2e-6, "float32"))
    for dtype in (torch.float16, torch.bfloat16):
        kind = str(dtype).removeprefix("torch.")
        narrow = lambda g, dtype=dtype: any_float(g, dtype)[0]  # noqa: E731
        cases += [
            unary_case("neg", narrow, torch.neg, 0.0, kind),
            unary_case("abs", narrow, torch.abs, 0.0, kind),
        ]
    for dtype in INTS:
        kind = str(dtype).removeprefix("torch.")
        whole = lambda g, dtype=dtype: any_int(g, dtype)[0]  # noqa: E731
        cases += [
            unary_case("neg", whole, torch.neg, 0.0, kind),
            unary_case("invert", whole, torch.bitwise_not, 0.0, kind),
            unary_case("abs", whole, torch.abs, 0.0, kind),
        ]
    return cases


def fused(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """x * y + z rounded once: a product of two floats is exact in double, and this sum nearly always."""
    return (x.double() * y.double() + z.double()).to(x.dtype)


def other_cases() -> list[Case]:
    inf, nan = float("inf"), float("nan")
    odd = torch.tensor([nan, -2.0, 2.0, 0.5, inf, -inf, -0.0, 1.0])
    clamped = {
        True: torch.tensor([nan, -1, 1, 0.5, 1, -1, 0, 1]),
        False: odd.nan_to_num(-1, 1, -1).clamp(-1, 1),
    }
    cases = [
        Case(
            f"clamp_nan_{keep}",
            clamp_keeps_nan,
            lambda g, keep=keep: {"x": odd.clone(), "out": torch.zeros(8), "KEEP": keep, "BLOCK": 8},
            (1,),
            lambda a, keep=keep: {"out": clamped[keep]},
        )
        for keep in (True, False)
    ]

    def mixed(a: Arguments) -> dict[str, torch.Tensor]:
        i, f, h = a["ints"], a["floats"], a["halves"]
        return {"out": i.float() * f + (h * 2).float() + (i + 1).float() - 0.5}

    def turned(a: Arguments) -> dict[str, torch.Tensor]:
        x = a["x"]
        return {"out": (100 - x) * 3 + 1000 // x + 17 % x + (1 << (x & 3)) + (0x0F ^ x)}

    def vectors(generator: torch.Generator) -> Arguments:
        x, y = normal(generator, 1000), normal(generator, 1000)
        return {"x": x, "y": y, "out": torch.full((1000,), -7.0), "n": 997, "BLOCK": 64}

    def summed(a: Arguments) -> dict[str, torch.Tensor]:
        return {"out": torch.where(torch.arange(1000) < 997, a["x"] + a["y"], -7.0)}

    return [
        *cases,
        Case("vector_add", add_vectors, vectors, (16,), summed),
        Case("vector_add_with_spare_programs", add_vectors, vectors, (20,), summed),
        Case(
            "vector_add_grid_function",
            add_vectors,
            vectors,
            lambda m: (triton.cdiv(m["n"], m["BLOCK"]),),
            summed,
        ),
        Case(
            "where_and_clamp",
            select_and_clamp,
            lambda g: {
                "x": normal(g, 64),
                "y": normal(g, 64),
                "out": torch.zeros(64),
                "low": -0.5,
                "high": 0.75,
                "BLOCK": 16,
            },
            (4,),
            lambda a: {"out": torch.where(a["x"] > a["y"], a["x"], -a["y"]).clamp(-0.5, 0.75)},
        ),
        *(
            Case(
                f"fma_{str(dtype).removeprefix('torch.')}",
                multiply_add,
                lambda g, dtype=dtype: (
                    {n: normal(g, 64, dtype=dtype) for n in "xyz"}
                    | {"out": torch.zeros(64, dtype=dtype), "BLOCK": 16}
                ),
                (4,),
                lambda a: {"out": fused(a["x"], a["y"], a["z"])},
            )
            for dtype in (torch.float32, torch.float16)
        ),
        Case(
            "mixed_types",
            mixed_types,
            lambda g: {
                "ints": integers(g, -99, 99, 32),
                "floats": normal(g, 32),
                "halves": normal(g, 32, dtype=torch.float16),
                "out": torch.zeros(32),
                "BLOCK": 8,
            },
            (4,),
            mixed,
            rtol=1e-6,
            atol=1e-6,
        ),
        Case(
            "reversed_operators",
            reversed_operators,
            lambda g: {"x": integers(g, 1, 50, 64), "out": torch.zeros(64, dtype=torch.int32), "BLOCK": 16},
            (4,),
            turned,
        ),
        Case(
            "wide_offsets",
            wide_offsets,
            lambda g: {
                "x": integers(g, -9, 9, 64, dtype=torch.int64),
                "out": torch.zeros(64, dtype=torch.int64),
                "stride": 1 << 20,
                "BLOCK": 16,
            },
            (4,),
            lambda a: {"out": a["x"] + (torch.arange(64) * (1 << 20)) ** 2},
        ),
        Case(
            "compare_with_arguments",
            chained_compare,
            lambda g: {
                "x": integers(g, -5, 6, 64),
                "out": torch.zeros(64, dtype=torch.int32),
                "low": -2,
                "high": 3,
                "BLOCK": 16,
            },
            (4,),
            lambda a: {"out": ((a["x"] >= -2) & (a["x"] < 3)).int() + (a["x"] == -2).int() * 2},
        ),
    ]


CASES = [*unary_cases(), *other_cases()]
