"""Reductions, built in and custom."""

from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

SHAPE = (4, 8, 2)
PROGRAMS = 3


@triton.jit
def cube(x, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """This program's block of three axes."""
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    return tl.load(x + tl.program_id(0) * A * B * C + a * B * C + b * C + c)


@triton.jit
def reduce_axis(
    x, out, OP: tl.constexpr, AXIS: tl.constexpr, KEEP: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    block = cube(x, A, B, C)
    if OP == "sum":
        result = tl.sum(block, axis=AXIS, keep_dims=KEEP)
    elif OP == "max":
        result = tl.max(block, axis=AXIS, keep_dims=KEEP)
    elif OP == "min":
        result = tl.min(block, axis=AXIS, keep_dims=KEEP)
    elif OP == "argmax":
        result = tl.argmax(block, axis=AXIS, keep_dims=KEEP)
    elif OP == "argmin":
        result = tl.argmin(block, axis=AXIS, keep_dims=KEEP)
    elif OP == "reduce_or":
        result = tl.reduce_or(block, axis=AXIS, keep_dims=KEEP)
    else:
        tl.static_assert(OP == "xor_sum")
        result = tl.xor_sum(block, axis=AXIS, keep_dims=KEEP)
    if AXIS is None and not KEEP:
        tl.store(out + tl.program_id(0), result)
    else:
        flat = tl.reshape(result, [SIZE])
        tl.store(out + tl.program_id(0) * SIZE + tl.arange(0, SIZE), flat)


ORACLES: dict[str, Callable] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "reduce_or": np.bitwise_or.reduce,
    "xor_sum": np.bitwise_xor.reduce,
}


def over(op: str, axis: int | None, keep: bool, dtype: torch.dtype) -> Case:
    """A reduction of one block per program."""
    floats = dtype.is_floating_point

    def reduced(x: torch.Tensor) -> torch.Tensor:
        blocks = x.double().numpy() if floats else x.numpy()
        one = [ORACLES[op](block, axis=axis) for block in blocks.reshape(PROGRAMS, *SHAPE)]
        kind = torch.int32 if op.startswith("arg") else dtype
        return torch.from_numpy(np.array(one).reshape(-1)).to(kind)

    def arguments(generator: torch.Generator) -> Arguments:
        if floats:
            x = normal(generator, PROGRAMS * 64, dtype=dtype)
        else:
            x = integers(generator, 0, 40, PROGRAMS * 64, dtype=dtype)  # ties, for the arg functions
        out = torch.zeros_like(reduced(x))
        a, b, c = SHAPE
        size = out.numel() // PROGRAMS
        return {
            "x": x,
            "out": out,
            "OP": op,
            "AXIS": axis,
            "KEEP": keep,
            "A": a,
            "B": b,
            "C": c,
            "SIZE": size,
        }

    name = f"{op}_axis_{axis}{'_kept' if keep else ''}_{str(dtype).removeprefix('torch.')}"
    sums = op == "sum" and floats
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 2e-2}
    return Case(
        name,
        reduce_axis,
        arguments,
        (PROGRAMS,),
        lambda a: {"out": reduced(a["x"])},
        reorders=sums,
        **(tolerance if sums else {}),
    )


@triton.jit
def narrow_sums(x, out, wide, BLOCK: tl.constexpr):
    """Sums of int8 do not wrap at 8 bits, unless asked to."""
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + row, tl.sum(v, axis=0))
    tl.store(wide + row, tl.sum(v, axis=0, dtype=tl.int64))


@triton.jit
def ties_and_nan(x, values, places, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    most, where_most = tl.max(v, axis=0, return_indices=True)
    least, where_least = tl.min(v, axis=0, return_indices=True)
    tl.store(values + row * 4, most)
    tl.store(values + row * 4 + 1, least)
    tl.store(values + row * 4 + 2, tl.max(v, axis=0))
    tl.store(values + row * 4 + 3, tl.min(v, axis=0))
    tl.store(places + row * 2, where_most)
    tl.store(places + row * 2 + 1, where_least)


@triton.jit
def nan_everywhere(x, out, BLOCK: tl.constexpr):
    """The largest of rows that hold NaN among numbers: a NaN is passed over."""
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + row * 2, tl.max(v, axis=0))
    tl.store(out + row * 2 + 1, tl.min(v, axis=0))


@triton.jit
def merge_moments(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    part = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * part, m2_a + m2_b + delta * delta * n_a * part, n


@triton.jit
def moments(x, mean, variance, columns, BLOCK: tl.constexpr):
    """Mean and variance in one custom reduction of three values."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0)
    m, m2, n = tl.reduce((v, tl.zeros([BLOCK], tl.float32), mask.to(tl.float32)), 0, merge_moments)
    tl.store(mean + row, m)
    tl.store(variance + row, m2 / n)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def larger_magnitude(a, b):
    return tl.where(tl.abs(a) >= tl.abs(b), a, b)


@triton.jit
def custom_axes(x, rows, columns, all, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    v = tl.load(x + tl.program_id(0) * N * N + i * N + j)
    base = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(rows + base, tl.reduce(v, 1, product))
    tl.store(columns + base, tl.reduce(v, axis=0, combine_fn=larger_magnitude))
    tl.store(all + tl.program_id(0), tl.reduce(v, None, larger_magnitude))


@triton.jit
def first_true(flag_a, at_a, flag_b, at_b):
    return flag_a | flag_b, tl.where(flag_a, at_a, at_b)


@triton.jit
def any_and_where(x, found, place, BLOCK: tl.constexpr):
    """A reduction of two values of different types."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    hit, where = tl.reduce((tl.load(x + row * BLOCK + at) > 8, at), 0, first_true)
    tl.store(found + row, hit)
    tl.store(place + row, tl.where(hit, where, -1))


@triton.jit
def normalized_by_reductions(x, out, BLOCK: tl.constexpr):
    """Reductions feed blocks again: scalars and blocks meet in the same expression."""
    row = tl.program_id(0)
    at = row * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    low, high = tl.min(v, 0), tl.max(v, 0)
    tl.store(out + at, (v - low) / (high - low) + v.sum(0) * 0.0)


@triton.jit
def row_by_row(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A reduced axis is put back with `[:, None]`."""
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = tl.program_id(0) * ROWS * COLUMNS + i * COLUMNS + j
    v = tl.load(x + at)
    tl.store(
        out + at, v - tl.max(v, axis=1)[:, None] + tl.min(v, axis=0)[None, :] + tl.max(v, 1, keep_dims=True)
    )


def special_rows() -> torch.Tensor:
    """Ties, and a NaN in the first place, which every order of reduction passes over."""
    nan = float("nan")
    return torch.tensor(
        [
            [1.0, 3, 2, 3, 3, 1, 0, 0],
            [5.0] * 8,
            [-1.0, -1, -2, -2, -3, -3, -3, -2],
            [nan, 1, 4, 0, 4, 2, 0, 3],
            [0.5, -float("inf"), float("inf"), 2, float("inf"), -float("inf"), 1, 2],
        ]
    )


def expected_places(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].numpy()
    most, least = np.nanargmax(x, 1), np.nanargmin(x, 1)
    high, low = np.nanmax(x, 1), np.nanmin(x, 1)
    return {
        "values": torch.from_numpy(np.stack([high, low, high, low], 1)),
        "places": torch.from_numpy(np.stack([most, least], 1)).int(),
    }


def by_magnitude(x: np.ndarray, axis: int) -> np.ndarray:
    """The first of the largest absolute values."""
    return np.take_along_axis(x, np.abs(x).argmax(axis, keepdims=True), axis).squeeze(axis)


def custom_expected(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].numpy().reshape(3, 4, 4)
    return {
        "rows": torch.from_numpy(x.prod(2).astype(np.int32)),
        "columns": torch.from_numpy(by_magnitude(x, 1)),
        "all": torch.from_numpy(by_magnitude(x.reshape(3, 16), 1)),
    }


def distinct(generator: torch.Generator) -> torch.Tensor:
    """Integers of different magnitudes, so that no order of reduction matters."""
    signs = integers(generator, 0, 2, 48) * 2 - 1
    return (
        torch.stack([torch.randperm(16, generator=generator) + 1 for _ in range(3)]).reshape(-1).int() * signs
    )


def firsts(a: Arguments) -> dict[str, torch.Tensor]:
    hits = a["x"] > 8
    return {"found": hits.any(1), "place": torch.where(hits.any(1), hits.int().argmax(1), -1).int()}


def odd_nans(generator: torch.Generator) -> torch.Tensor:
    x = normal(generator, 4, 16)
    x[0, 3], x[1, :8], x[2] = float("nan"), float("nan"), float("nan")
    return x


def shifted(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"]
    return {"out": x - x.amax(2, keepdim=True) + x.amin(1, keepdim=True) + x.amax(2, keepdim=True)}


F32, F16, I32, I16, I64 = torch.float32, torch.float16, torch.int32, torch.int16, torch.int64
CASES = [
    *(
        over(op, axis, keep, F32)
        for op in ("sum", "max", "min")
        for axis in (0, 1, 2, None)
        for keep in (False, True)
    ),
    *(
        over(op, axis, keep, I32)
        for op in ("argmax", "argmin")
        for axis in (0, 1, 2)
        for keep in (False, True)
    ),
    *(over(op, axis, False, I32) for op in ("sum", "max", "xor_sum") for axis in (0, 1, 2, None)),
    *(over("reduce_or", axis, keep, I32) for axis in (0, 2) for keep in (False, True)),
    over("sum", 1, False, torch.float64),
    over("sum", 1, False, I64),
    over("sum", 1, False, F16),
    over("sum", 1, False, torch.bfloat16),
    over("max", 1, False, F16),
    over("max", 2, False, torch.bfloat16),
    over("min", 0, True, torch.bfloat16),
    over("max", 0, False, I16),
    over("min", None, False, I64),
    over("argmax", 1, False, F32),
    over("argmin", 2, True, F16),
    Case(
        "sum_of_int8",
        narrow_sums,
        lambda g: {
            "x": integers(g, -128, 128, 4, 32, dtype=torch.int8).abs(),
            "out": torch.zeros(4, dtype=I32),
            "wide": torch.zeros(4, dtype=I64),
            "BLOCK": 32,
        },
        (4,),
        lambda a: {"out": a["x"].int().sum(1).int(), "wide": a["x"].long().sum(1)},
    ),
    Case(
        "sum_wraps_around",
        reduce_axis,
        lambda g: {
            "x": integers(g, 2**30, 2**31 - 1, 2, 64),
            "out": torch.zeros(2, dtype=I32),
            "OP": "sum",
            "AXIS": None,
            "KEEP": False,
            "A": 4,
            "B": 8,
            "C": 2,
            "SIZE": 1,
        },
        (2,),
        lambda a: {"out": torch.from_numpy(a["x"].numpy().astype(np.int64).sum(1).astype(np.int32))},
    ),
    Case(
        "argmax_of_ties_and_nan",
        ties_and_nan,
        lambda g: {
            "x": special_rows(),
            "values": torch.zeros(5, 4),
            "places": torch.zeros(5, 2, dtype=I32),
            "BLOCK": 8,
        },
        (5,),
        expected_places,
    ),
    Case(
        "max_passes_over_nan",
        nan_everywhere,
        lambda g: {"x": odd_nans(g), "out": torch.zeros(4, 2), "BLOCK": 16},
        (4,),
        lambda a: {
            "out": torch.stack(
                [
                    torch.from_numpy(np.fmax.reduce(a["x"].numpy(), 1)),
                    torch.from_numpy(np.fmin.reduce(a["x"].numpy(), 1)),
                ],
                1,
            )
        },
    ),
    Case(
        "reduce_moments",
        moments,
        lambda g: {
            "x": normal(g, 5, 27) + 4,
            "mean": torch.zeros(5),
            "variance": torch.zeros(5),
            "columns": 27,
            "BLOCK": 32,
        },
        (5,),
        lambda a: {"mean": a["x"].mean(1), "variance": a["x"].var(1, correction=0)},
        rtol=1e-4,
        atol=1e-5,
        reorders=True,
    ),
    Case(
        "reduce_with_custom_functions",
        custom_axes,
        lambda g: {
            "x": distinct(g),
            "rows": torch.zeros(3, 4, dtype=I32),
            "columns": torch.zeros(3, 4, dtype=I32),
            "all": torch.zeros(3, dtype=I32),
            "N": 4,
        },
        (3,),
        custom_expected,
    ),
    Case(
        "reduce_a_flag_and_a_place",
        any_and_where,
        lambda g: {
            "x": integers(g, 0, 10, 8, 16),
            "found": torch.zeros(8, dtype=torch.bool),
            "place": torch.zeros(8, dtype=I32),
            "BLOCK": 16,
        },
        (8,),
        firsts,
    ),
    Case(
        "reductions_feed_blocks",
        normalized_by_reductions,
        lambda g: {"x": normal(g, 6, 16), "out": torch.zeros(6, 16), "BLOCK": 16},
        (6,),
        lambda a: {"out": (a["x"] - a["x"].amin(1, True)) / (a["x"].amax(1, True) - a["x"].amin(1, True))},
        rtol=1e-6,
        atol=1e-7,
    ),
    Case(
        "reductions_broadcast_back",
        row_by_row,
        lambda g: {"x": normal(g, 3, 4, 8), "out": torch.zeros(3, 4, 8), "ROWS": 4, "COLUMNS": 8},
        (3,),
        shifted,
        rtol=1e-6,
        atol=1e-6,
    ),
]
