"""Arithmetic on blocks: one element in, one element out."""

import functools
from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

from tests.corpus.case import Arguments, Case, integers, normal


@triton.jit
def add_vectors(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def binary(x, y, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    elif OP == "mul":
        c = a * b
    elif OP == "truediv":
        c = a / b
    elif OP == "floordiv":
        c = a // b
    elif OP == "mod":
        c = a % b
    elif OP == "and":
        c = a & b
    elif OP == "or":
        c = a | b
    elif OP == "xor":
        c = a ^ b
    elif OP == "shl":
        c = a << b
    elif OP == "shr":
        c = a >> b
    elif OP == "lt":
        c = a < b
    elif OP == "le":
        c = a <= b
    elif OP == "gt":
        c = a > b
    elif OP == "ge":
        c = a >= b
    elif OP == "eq":
        c = a == b
    elif OP == "ne":
        c = a != b
    elif OP == "minimum":
        c = tl.minimum(a, b)
    elif OP == "maximum":
        c = tl.maximum(a, b)
    elif OP == "maximum_nan":
        c = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "minimum_nan":
        c = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "cdiv":
        c = tl.cdiv(a, b)
    elif OP == "umulhi":
        c = tl.umulhi(a, b)
    elif OP == "fdiv":
        c = tl.fdiv(a, b)
    else:
        tl.static_assert(OP == "div_rn")
        c = tl.div_rn(a, b)
    tl.store(out + at, c)


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


def binary_case(
    op: str,
    kind: str,
    values: Callable[[torch.Generator], tuple[torch.Tensor, torch.Tensor]],
    oracle: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    rtol: float = 0.0,
) -> Case:
    """A case of `binary`: the output has the type that the oracle's answer has."""

    def arguments(generator: torch.Generator) -> Arguments:
        x, y = values(generator)
        out = torch.zeros(x.shape, dtype=oracle(x, y).dtype)
        return {"x": x, "y": y, "out": out, "OP": op, "BLOCK": 16}

    return Case(
        f"{op}_{kind}",
        binary,
        arguments,
        (4,),
        lambda a: {"out": oracle(a["x"], a["y"])},
        rtol=rtol,
    )


def any_int(
    generator: torch.Generator, dtype: torch.dtype, no_zero: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """64 pairs of any values the type has; the second ones are small half of the time."""
    info = np.iinfo(str(dtype).removeprefix("torch."))
    low, high = int(info.min), int(info.max)
    seed = int(torch.randint(0, 2**31, (), generator=generator))
    random = np.random.default_rng(seed)
    x = random.integers(low, high, 64, dtype=info.dtype, endpoint=True)
    y = random.integers(low, high, 64, dtype=info.dtype, endpoint=True)
    y[::2] = random.integers(max(low, -9), 9, 32, dtype=info.dtype)
    if no_zero:
        y[y == 0] = 3
        if low:
            y[y == -1] = -2  # the smallest number divided by -1 does not fit
    return torch.from_numpy(x), torch.from_numpy(y)


def any_float(generator: torch.Generator, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """64 pairs, with zeros, infinities and NaN among them."""
    x, y = (normal(generator, 64) * 3).to(dtype), (normal(generator, 64) * 2).to(dtype)
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0], dtype=dtype)
    x[:6], y[4:10] = special, special
    return x, y


def in_numpy(function: Callable) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """NumPy's answer, wrapped around where it overflows."""

    def oracle(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with np.errstate(all="ignore"):
            return torch.from_numpy(np.ascontiguousarray(function(x.numpy(), y.numpy())))

    return oracle


def toward_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Division as C does it, exact for 64 bits."""
    quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(a.tolist(), b.tolist())]
    return np.array(quotients, a.dtype)


def sign_of_dividend(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([abs(p) % abs(q) * (-1 if p < 0 else 1) for p, q in zip(a.tolist(), b.tolist())], a.dtype)


def high_half(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = a.dtype.itemsize * 8
    mask = (1 << bits) - 1
    unsigned = f"u{a.dtype.itemsize}"
    products = [((p & mask) * (q & mask)) >> bits for p, q in zip(a.tolist(), b.tolist())]
    return np.array(products, unsigned).view(a.dtype)


INTS = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
INT_OPS: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "lt": np.less,
    "ge": np.greater_equal,
    "eq": np.equal,
}
FLOAT_OPS: dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "minimum": np.fmin,
    "maximum": np.fmax,
    "minimum_nan": np.minimum,
    "maximum_nan": np.maximum,
}


def integer_cases() -> list[Case]:
    cases = []
    for dtype in INTS + UNSIGNED:
        kind = str(dtype).removeprefix("torch.")
        values = functools.partial(any_int, dtype=dtype)
        divisible = functools.partial(any_int, dtype=dtype, no_zero=True)
        bits = dtype.itemsize * 8

        def shiftable(generator, dtype=dtype, bits=bits):
            x, y = any_int(generator, dtype)
            return x, torch.from_numpy(y.numpy() & np.array(bits - 1, y.numpy().dtype))

        cases += [binary_case(op, kind, values, in_numpy(np_op)) for op, np_op in INT_OPS.items()]
        cases += [
            binary_case("floordiv", kind, divisible, in_numpy(toward_zero)),
            binary_case("mod", kind, divisible, in_numpy(sign_of_dividend)),
            binary_case("shl", kind, shiftable, in_numpy(np.left_shift)),
            binary_case("shr", kind, shiftable, in_numpy(np.right_shift)),
        ]
        if bits >= 32:
            cases.append(binary_case("umulhi", kind, values, in_numpy(high_half)))
    return cases


def float_cases() -> list[Case]:
    cases = []
    for dtype in (torch.float16, torch.float32, torch.float64):
        kind = str(dtype).removeprefix("torch.")
        values = functools.partial(any_float, dtype=dtype)
        cases += [binary_case(op, kind, values, in_numpy(np_op)) for op, np_op in FLOAT_OPS.items()]
        # A half is divided as a float, and the answer stays one.
        wide = np.float64 if dtype == torch.float64 else np.float32
        quotient = in_numpy(lambda a, b, wide=wide: np.divide(a.astype(wide), b.astype(wide)))
        cases.append(binary_case("truediv", kind, values, quotient, rtol=1e-6))
        remainder = in_numpy(lambda a, b, wide=wide: np.fmod(a.astype(wide), b.astype(wide)))
        cases.append(binary_case("mod", kind, values, remainder, rtol=1e-6))
    floats = functools.partial(any_float, dtype=torch.float32)
    cases += [
        binary_case("div_rn", "float32", floats, in_numpy(np.divide)),
        binary_case("fdiv", "float32", floats, in_numpy(np.divide), rtol=1e-6),
    ]
    # PyTorch computes with bfloat16 as hardware does: in float32, then rounded.
    bfloats = functools.partial(any_float, dtype=torch.bfloat16)
    cases += [
        binary_case("add", "bfloat16", bfloats, torch.add),
        binary_case("sub", "bfloat16", bfloats, torch.sub),
        binary_case("mul", "bfloat16", bfloats, torch.mul),
        binary_case("truediv", "bfloat16", bfloats, lambda a, b: a.float() / b.float(), rtol=1e-6),
        binary_case("lt", "bfloat16", bfloats, torch.lt),
        binary_case("ge", "bfloat16", bfloats, torch.ge),
        binary_case("ne", "bfloat16", bfloats, torch.ne),
        binary_case("maximum", "bfloat16", bfloats, torch.fmax),
        binary_case("minimum", "bfloat16", bfloats, torch.fmin),
        binary_case("maximum_nan", "bfloat16", bfloats, torch.maximum),
    ]
    positive = lambda g: (integers(g, 0, 1000, 64), integers(g, 1, 40, 64))  # noqa: E731
    cases.append(binary_case("cdiv", "int32", positive, in_numpy(lambda a, b: -(-a // b))))
    return cases


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
    clamped = {True: torch.tensor([nan, -1, 1, 0.5, 1, -1, 0, 1]), False: odd.nan_to_num(-1, 1, -1).clamp(-1, 1)}
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
        Case("vector_add_grid_function", add_vectors, vectors, lambda m: (triton.cdiv(m["n"], m["BLOCK"]),), summed),
        Case(
            "where_and_clamp",
            select_and_clamp,
            lambda g: {
                "x": normal(g, 64), "y": normal(g, 64), "out": torch.zeros(64), "low": -0.5, "high": 0.75, "BLOCK": 16
            },
            (4,),
            lambda a: {"out": torch.where(a["x"] > a["y"], a["x"], -a["y"]).clamp(-0.5, 0.75)},
        ),
        *(
            Case(
                f"fma_{str(dtype).removeprefix('torch.')}",
                multiply_add,
                lambda g, dtype=dtype: {n: normal(g, 64, dtype=dtype) for n in "xyz"}
                | {"out": torch.zeros(64, dtype=dtype), "BLOCK": 16},
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
                "x": integers(g, -5, 6, 64), "out": torch.zeros(64, dtype=torch.int32), "low": -2, "high": 3, "BLOCK": 16
            },
            (4,),
            lambda a: {"out": ((a["x"] >= -2) & (a["x"] < 3)).int() + (a["x"] == -2).int() * 2},
        ),
    ]


CASES = [*integer_cases(), *float_cases(), *unary_cases(), *other_cases()]
