"""What a branch may test: arguments, boolean words, chained comparisons, ternaries; `min` and `max`."""

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, blocks, integers, normal, per_program, scalars
from tests.triton_viz.corpus.features import CHAINED_COMPARISONS


@triton.jit
def ternaries(x, out, LARGE: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    a = v if v > 0 else -v
    b = 1 if LARGE else 2
    c = pid if pid > 3 else (v if v > 10 else 10)
    tl.store(out + pid, a * 1000 + b * 100 + c)


@triton.jit
def boolean_words(x, y, out):
    pid = tl.program_id(0)
    a, b = tl.load(x + pid), tl.load(y + pid)
    r = 0
    if a > 0 and b > 0:
        r += 1
    if a > 0 or b > 0:
        r += 2
    if not (a > 0):
        r += 4
    if (a > 0 and not (b > 0)) or pid == 2:
        r += 8
    both = (a > 0) and (b > 0)
    if not both:
        r += 16
    tl.store(out + pid, r)


@triton.jit
def chained(x, out, n):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    r = 0
    if 0 <= v < n:
        r = 1
    if -n < v <= 0 <= pid:
        r = r + 2
    tl.store(out + pid, r)


@triton.jit
def smaller_and_larger(x, out, n, BLOCK: tl.constexpr):
    """Python's own `min` and `max` of scalars."""
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    first = max(v, 0)
    last = min(first + BLOCK, n)
    at = tl.arange(0, BLOCK)
    tl.store(out + pid * BLOCK + at, at + first, mask=at + first < last)


@triton.jit
def if_on_argument(x, out, flag, bias, BLOCK: tl.constexpr):
    """A condition that is the same for all programs."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    if flag:
        v = v * 2
    if bias is not None:
        v += tl.load(bias + tl.arange(0, BLOCK))
    tl.store(out + at, v)


@triton.jit
def booleans_of_blocks(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    inside = (v > -20) & (v < 20)
    tl.store(
        out + at,
        tl.where(inside | (v == 50), 1, 0) + tl.where(~inside, 2, 0) + (inside ^ (v > 0)).to(tl.int32) * 4,
    )


def words(pid: int, a: int, b: int) -> int:
    both = a > 0 and b > 0
    r = both * 1 + (a > 0 or b > 0) * 2 + (not a > 0) * 4
    return r + ((a > 0 and not b > 0) or pid == 2) * 8 + (not both) * 16


def ranged(a: Arguments) -> dict[str, torch.Tensor]:
    out = a["out"].clone()
    for pid, v in enumerate(a["x"].tolist()):
        for n, value in enumerate(range(max(v, 0), min(max(v, 0) + 8, 12))):
            out[pid, n] = value
    return {"out": out}


def argument_case(flag: bool, bias: bool) -> Case:
    return Case(
        f"if_on_argument_{flag}_{bias}",
        if_on_argument,
        lambda g: {
            "x": normal(g, 4, 8),
            "out": torch.zeros(4, 8),
            "flag": flag,
            "bias": normal(g, 8) if bias else None,
            "BLOCK": 8,
        },
        (4,),
        lambda a: {"out": a["x"] * (2 if flag else 1) + (a["bias"] if bias else 0)},
    )


CASES = [
    *(
        Case(
            f"ternary_{large}",
            ternaries,
            lambda g, large=large: scalars(-20, 20)(g) | {"LARGE": large},
            (12,),
            per_program(
                lambda pid, v, large=large: (
                    abs(v) * 1000 + (100 if large else 200) + (pid if pid > 3 else max(v, 10))
                ),
                "x",
            ),
        )
        for large in (True, False)
    ),
    Case(
        "and_or_not",
        boolean_words,
        lambda g: scalars(-2, 3)(g) | {"y": integers(g, -2, 3, 12)},
        (12,),
        per_program(words, "x", "y"),
    ),
    Case(
        "chained_comparison",
        chained,
        lambda g: scalars(-8, 9)(g) | {"n": 5},
        (12,),
        per_program(lambda pid, v: (0 <= v < 5) + 2 * (-5 < v <= 0), "x"),
        needs=CHAINED_COMPARISONS,
    ),
    Case(
        "min_and_max_of_python",
        smaller_and_larger,
        lambda g: {
            "x": integers(g, -4, 12, 9),
            "out": torch.full((9, 8), -1, dtype=torch.int32),
            "n": 12,
            "BLOCK": 8,
        },
        (9,),
        ranged,
    ),
    *(argument_case(flag, bias) for flag in (True, False) for bias in (True, False)),
    Case(
        "booleans_of_blocks",
        booleans_of_blocks,
        blocks(-60, 61),
        (7,),
        lambda a: {
            "out": torch.from_numpy(
                np.where((abs(a["x"].numpy()) < 20) | (a["x"].numpy() == 50), 1, 0)
                + np.where(abs(a["x"].numpy()) >= 20, 2, 0)
                + ((abs(a["x"].numpy()) < 20) ^ (a["x"].numpy() > 0)) * 4
            ).int()
        },
    ),
]
