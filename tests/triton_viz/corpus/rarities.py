"""Operations that few kernels use."""

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal
from tests.triton_viz.corpus.randoms import as_words, normals, philox, uniform

I32 = torch.int32


@triton.jit
def merge(x, out, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.bitonic_merge(tl.load(x + at), descending=DESCENDING))


@triton.jit
def swizzled(out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), ROWS, COLUMNS, GROUP)
    tl.store(out + i * COLUMNS + j, tl.program_id(0) * COLUMNS + tl.program_id(1))


@triton.jit
def by_function(x, out, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Descriptors used through functions instead of methods."""
    source = tl.make_tensor_descriptor(x, [ROWS * 3, columns], [columns, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [ROWS * 3, columns], [columns, 1], [ROWS, COLUMNS])
    at = [tl.program_id(0) * ROWS, 0]
    tl.store_tensor_descriptor(target, at, tl.load_tensor_descriptor(source, at) * 2)


@triton.jit
def pieces_of_random(out, words, seed, BLOCK: tl.constexpr):
    """The parts that `rand` and `randn` are made of."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = (at * 0).to(tl.uint32)
    key = tl.to_tensor(seed).to(tl.uint32)
    a, b, _, _ = tl.philox_impl(at.to(tl.uint32), zero, zero, zero, key, zero + 0, 10)
    first, _ = tl.pair_uniform_to_normal(tl.uint_to_uniform_float(a), tl.uint_to_uniform_float(b))
    tl.store(out + at, first)
    tl.store(words + at, a)


@triton.jit
def vanishing(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.expect_zero(tl.where(v > 0, v, 0.0), v <= 0))


@triton.jit
def one_element(v, limit):
    if v > limit:
        return v * 2, limit
    else:
        return v - 1, limit + v


@triton.jit
def element_by_element(x, out, other, BLOCK: tl.constexpr):
    """A branch for each element of a block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, second = tl.map_elementwise(one_element, tl.load(x + at), tl.zeros([BLOCK], tl.int32) + 50)
    tl.store(out + at, first)
    tl.store(other + at, second)


@triton.jit
def nothing(x):
    """A kernel that does nothing."""
    tl.debug_barrier()


@triton.jit
def operators_by_name(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.sub(tl.add(v, 5), tl.mul(v, v)))


def bitonic(generator: torch.Generator) -> torch.Tensor:
    """Rows that rise, then fall."""
    x = integers(generator, 0, 99, 3, 16)
    return torch.cat([x[:, :8].sort(1).values, x[:, 8:].sort(1, descending=True).values], 1)


def swizzle_expected(a: Arguments) -> dict[str, torch.Tensor]:
    """Columns first within each group of two rows, the last group being one row."""
    out, number = torch.zeros(5, 4, dtype=I32), 0
    for group in ((0, 1), (2, 3), (4,)):
        for column in range(4):
            for row in group:
                out[row, column] = number
                number += 1
    return {"out": out}


def pieces(a: Arguments) -> dict[str, torch.Tensor]:
    words = np.array([philox((n, 0, 0, 0), (9, 0), 32, 10)[:2] for n in range(32)], np.uint32).T
    first, _ = normals(words[0], words[1])
    assert uniform(words).min() >= 0
    return {"out": torch.from_numpy(first).float(), "words": as_words(words[0], I32)}


CASES = [
    *(
        Case(
            f"bitonic_merge{'_descending' if descending else ''}",
            merge,
            lambda g, descending=descending: {
                "x": bitonic(g),
                "out": torch.zeros(3, 16, dtype=I32),
                "DESCENDING": descending,
                "BLOCK": 16,
            },
            (3,),
            lambda a: {"out": a["x"].sort(1, descending=a["DESCENDING"]).values},
        )
        for descending in (False, True)
    ),
    Case(
        "swizzle2d",
        swizzled,
        lambda g: {"out": torch.zeros(5, 4, dtype=I32), "ROWS": 5, "COLUMNS": 4, "GROUP": 2},
        (5, 4),
        swizzle_expected,
    ),
    Case(
        "descriptor_by_function",
        by_function,
        lambda g: {
            "x": normal(g, 24, 16),
            "out": torch.zeros(24, 16),
            "columns": 16,
            "ROWS": 8,
            "COLUMNS": 16,
        },
        (3,),
        lambda a: {"out": a["x"] * 2},
    ),
    Case(
        "random_pieces",
        pieces_of_random,
        lambda g: {"out": torch.zeros(32), "words": torch.zeros(32, dtype=I32), "seed": 9, "BLOCK": 8},
        (4,),
        pieces,
        rtol=1e-5,
        atol=2e-6,
    ),
    Case(
        "element_by_element",
        element_by_element,
        lambda g: {
            "x": integers(g, 0, 99, 32),
            "out": torch.zeros(32, dtype=I32),
            "other": torch.zeros(32, dtype=I32),
            "BLOCK": 8,
        },
        (4,),
        lambda a: {
            "out": torch.where(a["x"] > 50, a["x"] * 2, a["x"] - 1),
            "other": torch.where(a["x"] > 50, 50, 50 + a["x"]),
        },
    ),
    Case("nothing", nothing, lambda g: {"x": normal(g, 4)}, (3,), lambda a: {}),
    Case(
        "operators_by_name",
        operators_by_name,
        lambda g: {"x": integers(g, 0, 99, 32), "out": torch.zeros(32, dtype=I32), "BLOCK": 8},
        (4,),
        lambda a: {"out": a["x"] + 5 - a["x"] ** 2},
    ),
]
if hasattr(tl, "expect_zero"):
    CASES.append(
        Case(
            "expect_zero",
            vanishing,
            lambda g: {"x": normal(g, 32), "out": torch.zeros(32), "BLOCK": 8},
            (4,),
            lambda a: {"out": a["x"].clamp(min=0)},
        )
    )
