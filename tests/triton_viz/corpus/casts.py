"""Casts between all types, rounding, saturation, bitcasts."""

import itertools

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
INTS = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
LARGEST = {E4: 448.0, E5: 57344.0}


@triton.jit
def cast(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


@triton.jit
def store_converts(x, out, BLOCK: tl.constexpr):
    """A store casts to what the pointer points to."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@triton.jit
def reinterpret(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty, bitcast=True))


@triton.jit
def toward_zero(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty, fp_downcast_rounding="rtz"))


@triton.jit
def flags(x, out, BLOCK: tl.constexpr):
    """Anything but zero is true; true is one."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    flag = tl.load(x + at).to(tl.int1)
    tl.store(out + at, flag.to(tl.float32) + flag.to(tl.int32) * 2 + (~flag).to(tl.int32) * 10)


@triton.jit
def cast_scalars(x, out, n):
    """Scalars are cast by the same words."""
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    whole = v.to(tl.int32)
    tl.store(out + pid, whole.to(tl.float32) + tl.cast(pid, tl.float32) / n)


@triton.jit
def through_pointers(x, out, BLOCK: tl.constexpr):
    """A pointer cast to another type reads the same bytes; a pointer is a number."""
    words = x.to(tl.pointer_type(tl.int16), bitcast=True)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    address = x.to(tl.int64) + at.to(tl.int64) * 4
    same = tl.load(address.to(tl.pointer_type(tl.int32)))
    tl.store(out + at, same - tl.load(words + at * 2).to(tl.int32))


def values(generator: torch.Generator, source: torch.dtype, target: torch.dtype) -> torch.Tensor:
    """64 values that the source type has, and that make sense in the target."""
    if source.is_floating_point:
        scale = 30.0 if target.is_floating_point else 50.0
        x = torch.randn(64, generator=generator) * scale
        if target in UNSIGNED:
            x = x.abs()
        if torch.int8 in (source, target):
            x = x.clamp(-127, 127)
        x = x.clamp(-400, 400) if E4 in (source, target) else x
        x = x.clamp(-250, 250) if torch.uint8 in (source, target) else x
        return x.to(source)
    info = np.iinfo(str(source).removeprefix("torch."))
    low, high = int(info.min), int(info.max)
    if target == torch.float16:
        low, high = max(low, -60000), min(high, 60000)
    random = np.random.default_rng(int(torch.randint(0, 2**31, (), generator=generator)))
    return torch.from_numpy(random.integers(low, high, 64, dtype=info.dtype, endpoint=True))


def converted(x: torch.Tensor, target: torch.dtype) -> torch.Tensor:
    """What the numbers are in another type: floats to the nearest, ints cut to size."""
    if x.dtype.is_floating_point and target.is_floating_point:
        return x.to(target)
    if x.dtype.is_floating_point:
        return torch.from_numpy(np.trunc(x.double().numpy()).astype(str(target).removeprefix("torch.")))
    if target == torch.bfloat16:
        return rounded_to_bfloat16(x)
    return torch.from_numpy(x.numpy().astype(str(target).removeprefix("torch.")))


def rounded_to_bfloat16(x: torch.Tensor) -> torch.Tensor:
    """Integers to bfloat16 in one rounding, exact in Python's integers."""
    out = []
    for v in x.tolist():
        size = abs(v)
        drop = max(size.bit_length() - 8, 0)
        kept, rest = size >> drop, size & ((1 << drop) - 1)
        half = (1 << drop) >> 1
        kept += rest > half or (drop > 0 and rest == half and kept % 2 == 1)
        out.append(float(kept << drop) * (-1 if v < 0 else 1))
    return torch.tensor(out, dtype=torch.float64).to(torch.bfloat16)


def conversion(kernel: object, prefix: str, source: torch.dtype, target: torch.dtype) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        return {"x": values(generator, source, target), "out": torch.zeros(64, dtype=target), "BLOCK": 16}

    names = [str(dtype).removeprefix("torch.") for dtype in (source, target)]
    return Case(
        f"{prefix}_{names[0]}_to_{names[1]}",
        kernel,
        arguments,
        (4,),
        lambda a: {"out": converted(a["x"], target)},
    )


def bits_case(source: torch.dtype, target: torch.dtype) -> Case:
    def arguments(generator: torch.Generator) -> Arguments:
        raw = integers(generator, 0, 256, 64 * source.itemsize, dtype=torch.uint8)
        return {"x": raw.view(source), "out": torch.zeros(64, dtype=target), "BLOCK": 16}

    names = [str(dtype).removeprefix("torch.") for dtype in (source, target)]
    return Case(
        f"bitcast_{names[0]}_to_{names[1]}",
        reinterpret,
        arguments,
        (4,),
        lambda a: {"out": a["x"].view(target)},
    )


def saturated(a: Arguments) -> dict[str, torch.Tensor]:
    """What is too large for fp8 becomes its largest number, as GPUs do; NaN stays."""
    target = a["out"].dtype
    return {"out": a["x"].float().clamp(-LARGEST[target], LARGEST[target]).to(target)}


def special_floats(dtype: torch.dtype) -> torch.Tensor:
    """Zeros, infinities, NaN, what is too small or too large for fp8, and what lies between its numbers."""
    inf, nan = float("inf"), float("nan")
    odd = torch.tensor([0.0, -0.0, inf, -inf, nan])
    small = torch.tensor([1e-3, -1e-4, 2.0**-9, 2.0**-10, 3 * 2.0**-11, 2.0**-16, 2.0**-17])
    large = torch.tensor([448.0, 460.0, 464.0, 500.0, -1000.0, 57344.0, 60000.0, -61440.0, 65000.0])
    between = torch.tensor([0.3, 17.0, 18.9, 19.0, 1.0625, 1.1875, -1.3125, 240.0, 248.0, -232.0, 100.0])
    return torch.cat([odd, small, large, between]).to(dtype)


def cut(x: torch.Tensor, target: torch.dtype) -> torch.Tensor:
    """Rounded toward zero: the nearest, or one step less where that is further from zero."""
    near = x.to(target)
    wide = near.to(x.dtype)
    too_far = wide.abs() > x.abs()
    step_back = (near.view(torch.int16) - 1).view(target)  # one less in magnitude, infinity too
    return torch.where(too_far, step_back, near)


def narrow_case(
    kernel: object, name: str, source: torch.dtype, target: torch.dtype, expected: object
) -> Case:
    return Case(
        name,
        kernel,
        lambda g: {"x": special_floats(source), "out": torch.zeros(32, dtype=target), "BLOCK": 8},
        (4,),
        expected,
    )


WIDTHS = [
    [torch.int8, torch.uint8, E4, E5],
    [torch.int16, torch.uint16, torch.float16, torch.bfloat16],
    [torch.int32, torch.uint32, torch.float32],
    [torch.int64, torch.uint64, torch.float64],
]
ALL = INTS + UNSIGNED + FLOATS
PAIRS = [
    *itertools.permutations(ALL, 2),
    *((f, narrow) for f in FLOATS[:3] for narrow in (E4, E5)),
    *((narrow, f) for f in FLOATS[:3] for narrow in (E4, E5)),
]

CASES = [
    *(conversion(cast, "cast", source, target) for source, target in PAIRS),
    *(
        conversion(store_converts, "store", source, target)
        for source, target in (
            (torch.float32, torch.float16),
            (torch.float32, torch.bfloat16),
            (torch.float32, torch.int32),
            (torch.int32, torch.float32),
            (torch.int32, torch.int8),
            (torch.bfloat16, torch.float32),
            (torch.float16, torch.float64),
            (torch.int64, torch.int32),
            (torch.float32, E4),
            (E5, torch.float16),
        )
    ),
    *(bits_case(source, target) for same in WIDTHS for source, target in itertools.permutations(same, 2)),
    *(
        narrow_case(cast, f"cast_saturates_{str(source)[6:]}_to_{str(target)[6:]}", source, target, saturated)
        for source in FLOATS[:3]
        for target in (E4, E5)
    ),
    *(
        narrow_case(
            toward_zero,
            f"cast_toward_zero_to_{str(target)[6:]}",
            torch.float32,
            target,
            lambda a: {"out": cut(a["x"], a["out"].dtype)},
        )
        for target in (torch.float16, torch.bfloat16)
    ),
    narrow_case(
        cast,
        "cast_special_float32_to_bfloat16",
        torch.float32,
        torch.bfloat16,
        lambda a: {"out": a["x"].bfloat16()},
    ),
    narrow_case(
        cast,
        "cast_special_float32_to_float16",
        torch.float32,
        torch.float16,
        lambda a: {"out": a["x"].half()},
    ),
    *(
        Case(
            f"cast_every_{str(source)[6:]}_to_float32",
            cast,
            lambda g, source=source: {
                "x": torch.arange(256).to(torch.uint8).view(source),
                "out": torch.zeros(256),
                "BLOCK": 64,
            },
            (4,),
            lambda a: {"out": a["x"].float()},
        )
        for source in (E4, E5)
    ),
    *(
        Case(
            f"cast_{str(dtype)[6:]}_to_bool",
            flags,
            lambda g, dtype=dtype: {
                "x": (integers(g, -2, 3, 64) / (2 if dtype.is_floating_point else 1)).to(dtype),
                "out": torch.zeros(64),
                "BLOCK": 16,
            },
            (4,),
            lambda a: {"out": torch.where(a["x"] != 0, 3.0, 10.0)},
        )
        for dtype in (torch.int32, torch.int8, torch.float32, torch.float16, torch.bfloat16, torch.bool)
    ),
    Case(
        "cast_scalars",
        cast_scalars,
        lambda g: {"x": normal(g, 9) * 9, "out": torch.zeros(9), "n": 4},
        (9,),
        lambda a: {"out": a["x"].trunc() + torch.arange(9) / 4},
    ),
    Case(
        "cast_pointers",
        through_pointers,
        lambda g: {
            "x": integers(g, -(2**31), 2**31, 32),
            "out": torch.zeros(32, dtype=torch.int32),
            "BLOCK": 8,
        },
        (4,),
        lambda a: {"out": (a["x"].long() - a["x"].view(torch.int16)[::2].long()).to(torch.int32)},
    ),
]
