"""Arithmetic with two operands, on every type that has it."""

import functools
from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal


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
    quotients = [
        abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
        for p, q in zip(a.tolist(), b.tolist(), strict=True)
    ]
    return np.array(quotients, a.dtype)


def sign_of_dividend(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array(
        [abs(p) % abs(q) * (-1 if p < 0 else 1) for p, q in zip(a.tolist(), b.tolist(), strict=True)], a.dtype
    )


def high_half(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = a.dtype.itemsize * 8
    mask = (1 << bits) - 1
    unsigned = f"u{a.dtype.itemsize}"
    products = [((p & mask) * (q & mask)) >> bits for p, q in zip(a.tolist(), b.tolist(), strict=True)]
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


CASES = [*integer_cases(), *float_cases()]
