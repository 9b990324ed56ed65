"""Random numbers, against Philox written out in Python's integers."""

from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, normal

SEED, N = 0x123456789AB, 64


def philox(
    counter: tuple[int, int, int, int], key: tuple[int, int], bits: int, rounds: int
) -> tuple[int, ...]:
    """Philox 4x32 or 4x64: the counter, scrambled by the key in so many rounds."""
    mask = (1 << bits) - 1
    multipliers = (0xD2511F53, 0xCD9E8D57) if bits == 32 else (0xD2E7470EE14C6C93, 0xCA5A826395121157)
    weyl = (0x9E3779B9, 0xBB67AE85) if bits == 32 else (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        left, right = multipliers[0] * c0, multipliers[1] * c2
        c0, c1, c2, c3 = (right >> bits) ^ c1 ^ k0, right & mask, (left >> bits) ^ c3 ^ k1, left & mask
        k0, k1 = (k0 + weyl[0]) & mask, (k1 + weyl[1]) & mask
    return c0, c1, c2, c3


def streams(seed: int, offsets: list[int], rounds: int = 10) -> np.ndarray:
    """Four random words for each offset, shape (4, n)."""
    key = (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF)
    return np.array([philox((n & 0xFFFFFFFF, n >> 32, 0, 0), key, 32, rounds) for n in offsets], np.uint32).T


def uniform(words: np.ndarray) -> np.ndarray:
    """Words as floats from 0 to below 1."""
    signed = words.view(np.int32)
    folded = np.where(signed < 0, ~signed, signed)
    return folded.astype(np.float32) * np.float32(4.6566127342e-10)


def normals(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two uniform values to two normal ones, by Box and Muller."""
    u1, u2 = (
        np.maximum(uniform(first), np.float32(1e-7)).astype(np.float64),
        uniform(second).astype(np.float64),
    )
    radius = np.sqrt(-2 * np.log(u1))
    return radius * np.cos(2 * np.pi * u2), radius * np.sin(2 * np.pi * u2)


@triton.jit
def draw(out, seed, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if OP == "randint":
        r = tl.randint(seed, at)
    elif OP == "randint_7_rounds":
        r = tl.randint(seed, at, n_rounds=7)
    elif OP == "rand":
        r = tl.rand(seed, at)
    elif OP == "randn":
        r = tl.randn(seed, at)
    else:
        tl.static_assert(OP == "wide_offsets")
        r = tl.randint(seed, at.to(tl.int64) * 4294967296 + 5)
    tl.store(out + at, r)


@triton.jit
def draw_four(out, seed, OP: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if OP == "randint4x":
        a, b, c, d = tl.randint4x(seed, at)
    elif OP == "rand4x":
        a, b, c, d = tl.rand4x(seed, at)
    else:
        tl.static_assert(OP == "randn4x")
        a, b, c, d = tl.randn4x(seed, at)
    tl.store(out + at, a)
    tl.store(out + N + at, b)
    tl.store(out + 2 * N + at, c)
    tl.store(out + 3 * N + at, d)


@triton.jit
def raw_philox(out, seed, N: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = at * 0
    a, b, c, d = tl.philox(seed, at, zero + 1, zero + 2, zero + 3)
    tl.store(out + at, a)
    tl.store(out + N + at, b)
    tl.store(out + 2 * N + at, c)
    tl.store(out + 3 * N + at, d)


@triton.jit
def raw_philox_wide(out, seed, N: tl.constexpr, BLOCK: tl.constexpr):
    """Counters of 64 bits give words of 64 bits."""
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.uint64)
    zero = at * 0
    a, b, c, d = tl.philox(seed, at, zero, zero, zero)
    tl.store(out + at, a)
    tl.store(out + N + at, b)
    tl.store(out + 2 * N + at, c)
    tl.store(out + 3 * N + at, d)


@triton.jit
def seeded_dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + at, mask=mask)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), mask=mask)


@triton.jit
def dropout_rows(x, out, seeds, p, COLUMNS: tl.constexpr):
    """A seed per row, loaded."""
    row = tl.program_id(0)
    at = tl.arange(0, COLUMNS)
    keep = tl.rand(tl.load(seeds + row), at) > p
    tl.store(out + row * COLUMNS + at, tl.where(keep, tl.load(x + row * COLUMNS + at), 0.0))


@triton.jit
def walk(out, seed, n):
    """Scalar draws in a loop, each program a stream of its own."""
    pid = tl.program_id(0)
    at = 0.0
    for step in range(n):
        if tl.rand(seed, pid * n + step) < 0.5:
            at -= 1.0
        else:
            at += 1.0
    tl.store(out + pid, at)


def as_words(words: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(words)).view(dtype)


def one(op: str, oracle: Callable[[], torch.Tensor], dtype: torch.dtype, **tolerance: float) -> Case:
    return Case(
        f"random_{op}",
        draw,
        lambda g: {"out": torch.zeros(N, dtype=dtype), "seed": SEED, "OP": op, "BLOCK": 16},
        (4,),
        lambda a: {"out": oracle()},
        **tolerance,
    )


def four(op: str, oracle: Callable[[], torch.Tensor], dtype: torch.dtype, **tolerance: float) -> Case:
    return Case(
        f"random_{op}",
        draw_four,
        lambda g: {"out": torch.zeros(4, N, dtype=dtype), "seed": 42, "OP": op, "N": N, "BLOCK": 16},
        (4,),
        lambda a: {"out": oracle()},
        **tolerance,
    )


def dropped(a: Arguments) -> dict[str, torch.Tensor]:
    keep = torch.from_numpy(uniform(streams(7, list(range(60)))[0])) > a["p"]
    return {"out": torch.where(keep, a["x"] / (1 - a["p"]), 0.0)}


def dropped_rows(a: Arguments) -> dict[str, torch.Tensor]:
    chances = np.stack([uniform(streams(seed, list(range(16)))[0]) for seed in a["seeds"].tolist()])
    return {"out": torch.where(torch.from_numpy(chances) > a["p"], a["x"], 0.0)}


def walked(a: Arguments) -> dict[str, torch.Tensor]:
    steps = np.where(uniform(streams(3, list(range(30)))[0]) < 0.5, -1, 1).reshape(6, 5)
    return {"out": torch.from_numpy(steps.sum(1)).float()}


def four_normals() -> torch.Tensor:
    words = streams(42, list(range(N)))
    pairs = [*normals(words[0], words[1]), *normals(words[2], words[3])]
    return torch.from_numpy(np.stack(pairs)).float()


def philox_words() -> torch.Tensor:
    key = (SEED & 0xFFFFFFFF, SEED >> 32)
    return as_words(np.array([philox((n, 1, 2, 3), key, 32, 10) for n in range(N)], np.uint32).T, torch.int32)


def wide_words() -> torch.Tensor:
    return as_words(
        np.array([philox((n, 0, 0, 0), (SEED, 0), 64, 10) for n in range(N)], np.uint64).T, torch.int64
    )


FIRST = list(range(N))
I32, F32 = torch.int32, torch.float32

CASES = [
    one("randint", lambda: as_words(streams(SEED, FIRST)[0], I32), I32),
    one("randint_7_rounds", lambda: as_words(streams(SEED, FIRST, 7)[0], I32), I32),
    one("wide_offsets", lambda: as_words(streams(SEED, [(n << 32) + 5 for n in FIRST])[0], I32), I32),
    one("rand", lambda: torch.from_numpy(uniform(streams(SEED, FIRST)[0])), F32, rtol=1e-7),
    one(
        "randn",
        lambda: torch.from_numpy(normals(*streams(SEED, FIRST)[:2])[0]).float(),
        F32,
        rtol=1e-5,
        atol=2e-6,
    ),
    four("randint4x", lambda: as_words(streams(42, FIRST), I32), I32),
    four("rand4x", lambda: torch.from_numpy(uniform(streams(42, FIRST))), F32, rtol=1e-7),
    four("randn4x", four_normals, F32, rtol=1e-5, atol=2e-6),
    Case(
        "random_philox",
        raw_philox,
        lambda g: {"out": torch.zeros(4, N, dtype=I32), "seed": SEED, "N": N, "BLOCK": 16},
        (4,),
        lambda a: {"out": philox_words()},
    ),
    Case(
        "random_philox_64_bits",
        raw_philox_wide,
        lambda g: {"out": torch.zeros(4, N, dtype=torch.int64), "seed": SEED, "N": N, "BLOCK": 16},
        (4,),
        lambda a: {"out": wide_words()},
    ),
    Case(
        "dropout_seeded",
        seeded_dropout,
        lambda g: {"x": normal(g, 60), "out": torch.zeros(60), "n": 60, "p": 0.4, "seed": 7, "BLOCK": 16},
        (4,),
        dropped,
        rtol=1e-6,
    ),
    Case(
        "dropout_with_a_seed_per_row",
        dropout_rows,
        lambda g: {
            "x": normal(g, 5, 16),
            "out": torch.zeros(5, 16),
            "seeds": torch.tensor([1, 2**31 - 1, 77, 0, 5], dtype=I32),
            "p": 0.5,
            "COLUMNS": 16,
        },
        (5,),
        dropped_rows,
    ),
    Case(
        "random_walk",
        walk,
        lambda g: {"out": torch.zeros(6), "seed": 3, "n": 5},
        (6,),
        walked,
    ),
]
