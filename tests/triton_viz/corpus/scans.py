"""Scans: cumulative sums, products and custom ones, forwards and backwards."""

from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

ROWS, COLUMNS, PROGRAMS = 4, 8, 3


@triton.jit
def cumulative(
    x,
    out,
    OP: tl.constexpr,
    AXIS: tl.constexpr,
    REVERSE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = tl.program_id(0) * ROWS * COLUMNS + i * COLUMNS + j
    v = tl.load(x + at)
    if OP == "cumsum":
        r = tl.cumsum(v, axis=AXIS, reverse=REVERSE)
    else:
        r = tl.cumprod(v, axis=AXIS, reverse=REVERSE)
    tl.store(out + at, r)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_maximum(x, out, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.associative_scan(tl.load(x + at), 0, larger, reverse=REVERSE))


@triton.jit
def compose(a1, b1, a2, b2):
    """First x -> a1 x + b1, then x -> a2 x + b2."""
    return a2 * a1, a2 * b1 + b2


@triton.jit
def recurrence(gates, inputs, out, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    """h = gate * h + input along a row, as a scan of pairs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(gates + at), tl.load(inputs + at)), 0, compose, reverse=REVERSE)
    tl.store(out + at, h)


@triton.jit
def keep_latest(value_a, fresh_a, value_b, fresh_b):
    """The last value that was there: not commutative, so the order of the scan shows."""
    return tl.where(fresh_b != 0, value_b, value_a), fresh_a | fresh_b


@triton.jit
def fill_forward(x, fresh, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = tl.program_id(0) * ROWS * COLUMNS + i * COLUMNS + j
    filled, _ = tl.associative_scan((tl.load(x + at), tl.load(fresh + at)), 1, keep_latest)
    tl.store(out + at, filled)


@triton.jit
def compact(x, out, counts, BLOCK: tl.constexpr):
    """Keep what is positive, closed up: a cumulative sum gives the places."""
    row = tl.program_id(0)
    at = row * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    keep = v > 0
    place = tl.cumsum(keep.to(tl.int32), 0) - 1
    tl.store(out + row * BLOCK + place, v, mask=keep)
    tl.store(counts + row, tl.sum(keep.to(tl.int32), 0))


def scan_case(op: str, axis: int, reverse: bool, dtype: torch.dtype) -> Case:
    floats = dtype.is_floating_point
    function: Callable = np.cumsum if op == "cumsum" else np.cumprod
    result = {torch.int8: torch.int32, torch.uint8: torch.uint32}.get(dtype, dtype)

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        x = a["x"].double().numpy() if floats else a["x"].numpy().astype(np.int64)
        x = np.flip(x, axis + 1) if reverse else x
        r = function(x, axis=axis + 1)
        r = np.flip(r, axis + 1) if reverse else r
        return {"out": torch.from_numpy(r.copy()).to(result)}

    def arguments(generator: torch.Generator) -> Arguments:
        shape = (PROGRAMS, ROWS, COLUMNS)
        x = (
            normal(generator, *shape, dtype=dtype)
            if floats
            else integers(generator, 1, 9, *shape, dtype=dtype)
        )
        out = torch.zeros(shape, dtype=result)
        return {
            "x": x,
            "out": out,
            "OP": op,
            "AXIS": axis,
            "REVERSE": reverse,
            "ROWS": ROWS,
            "COLUMNS": COLUMNS,
        }

    kind = str(dtype).removeprefix("torch.")
    tolerance = {"rtol": 1e-5, "atol": 1e-5, "reorders": True} if floats else {}
    if dtype in (torch.float16, torch.bfloat16):
        tolerance |= {"rtol": 2e-2, "atol": 5e-2}
    name = f"{op}_axis_{axis}{'_reverse' if reverse else ''}_{kind}"
    return Case(name, cumulative, arguments, (PROGRAMS,), expected, **tolerance)


def maxima(a: Arguments) -> dict[str, torch.Tensor]:
    x = a["x"].flip(1) if a["REVERSE"] else a["x"]
    r = x.cummax(1).values
    return {"out": r.flip(1) if a["REVERSE"] else r}


def recurred(a: Arguments) -> dict[str, torch.Tensor]:
    out = torch.zeros(3, 16, dtype=torch.float64)
    order = range(15, -1, -1) if a["REVERSE"] else range(16)
    for row in range(3):
        h = 0.0
        for t in order:
            h = float(a["gates"][row, t]) * h + float(a["inputs"][row, t])
            out[row, t] = h
    return {"out": out.float()}


def filled(a: Arguments) -> dict[str, torch.Tensor]:
    out = a["x"].clone().reshape(-1, 8)
    for values, fresh in zip(out, a["fresh"].reshape(-1, 8), strict=True):
        for t in range(1, 8):
            if not fresh[t]:
                values[t] = values[t - 1]
    return {"out": out.reshape(a["x"].shape)}


def compacted(a: Arguments) -> dict[str, torch.Tensor]:
    out = torch.full((4, 16), -1.0)
    for row, values in enumerate(a["x"]):
        kept = values[values > 0]
        out[row, : len(kept)] = kept
    return {"out": out, "counts": (a["x"] > 0).sum(1).int()}


F32, I32 = torch.float32, torch.int32
CASES = [
    *(
        scan_case(op, axis, reverse, dtype)
        for op in ("cumsum", "cumprod")
        for axis in (0, 1)
        for reverse in (False, True)
        for dtype in (F32, I32)
    ),
    *(
        scan_case("cumsum", 1, False, dtype)
        for dtype in (torch.float64, torch.float16, torch.int64, torch.int8)
    ),
    scan_case("cumsum", 0, False, torch.bfloat16),
    *(
        Case(
            f"running_maximum{'_reverse' if reverse else ''}",
            running_maximum,
            lambda g, reverse=reverse: {
                "x": normal(g, 3, 16),
                "out": torch.zeros(3, 16),
                "REVERSE": reverse,
                "BLOCK": 16,
            },
            (3,),
            maxima,
        )
        for reverse in (False, True)
    ),
    *(
        Case(
            f"recurrence_by_scan{'_reverse' if reverse else ''}",
            recurrence,
            lambda g, reverse=reverse: {
                "gates": torch.rand(3, 16, generator=g),
                "inputs": normal(g, 3, 16),
                "out": torch.zeros(3, 16),
                "REVERSE": reverse,
                "BLOCK": 16,
            },
            (3,),
            recurred,
            rtol=1e-4,
            atol=1e-5,
            reorders=True,
        )
        for reverse in (False, True)
    ),
    Case(
        "fill_forward_by_scan",
        fill_forward,
        lambda g: {
            "x": integers(g, 0, 99, 2, 4, 8),
            "fresh": integers(g, 0, 2, 2, 4, 8),
            "out": torch.zeros(2, 4, 8, dtype=I32),
            "ROWS": 4,
            "COLUMNS": 8,
        },
        (2,),
        filled,
    ),
    Case(
        "compact_by_cumsum",
        compact,
        lambda g: {
            "x": normal(g, 4, 16),
            "out": torch.full((4, 16), -1.0),
            "counts": torch.zeros(4, dtype=I32),
            "BLOCK": 16,
        },
        (4,),
        compacted,
    ),
]
