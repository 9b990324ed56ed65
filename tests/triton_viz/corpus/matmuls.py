"""Matrix products: grouped order, ragged edges, all types, batches, pointers from a tensor, scaled blocks."""

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2


@triton.jit
def tile_of(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Programs in groups of rows, so that neighbours share columns."""
    across, down = tl.cdiv(N, BN), tl.cdiv(M, BM)
    per_group = GROUP * across
    first = pid // per_group * GROUP
    height = min(down - first, GROUP)
    return first + (pid % per_group) % height, (pid % per_group) // height


@triton.jit
def leaky(v):
    return tl.where(v >= 0, v, 0.01 * v)


@triton.jit
def matmul(
    a, b, c, M, N, K, am, ak, bk, bn, cm, cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Offsets wrap around at the edges instead of being masked, except along K and in the store."""
    i, j = tile_of(tl.program_id(axis=0), M, N, BM, BN, GROUP)
    rows = (i * BM + tl.arange(0, BM)) % M
    columns = (j * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * am + inner[None, :] * ak
    right = b + inner[:, None] * bk + columns[None, :] * bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=inner[None, :] < K - k * BK, other=0.0)
        y = tl.load(right, mask=inner[:, None] < K - k * BK, other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        left += BK * ak
        right += BK * bk
    if ACTIVATION == "leaky":
        total = leaky(total)
    r, s = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
    mask = (r[:, None] < M) & (s[None, :] < N)
    tl.store(c + r[:, None] * cm + s[None, :] * cn, total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def dot_tiles(a, b, c, N: tl.constexpr, PRECISION: tl.constexpr, TYPE: tl.constexpr):
    """One N by N product per program."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = tl.program_id(0) * N * N + i * N + j
    x, y = tl.load(a + at), tl.load(b + at)
    tl.store(c + at, tl.dot(x, y, input_precision=PRECISION, out_dtype=TYPE))


@triton.jit
def dot_transposed(a, b, c, N: tl.constexpr):
    """The right tile is loaded one way and used the other."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = tl.program_id(0) * N * N + i * N + j
    x, y = tl.load(a + at), tl.load(b + at)
    first = tl.dot(x, y.T, input_precision="ieee")
    tl.store(c + at, tl.dot(tl.trans(first), x, acc=first, input_precision="ieee"))


@triton.jit
def dot_batched(a, b, c, B: tl.constexpr, N: tl.constexpr):
    """Blocks of three axes: B products at once."""
    n, i, j = tl.arange(0, B)[:, None, None], tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :]
    at = tl.program_id(0) * B * N * N + n * N * N + i * N + j
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="ieee"))


@triton.jit
def matmul_split_k(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    """Programs along the inner axis add their parts by atomics."""
    i, j, k = tl.arange(0, N), tl.arange(0, N), tl.program_id(0) * BK + tl.arange(0, BK)
    x = tl.load(a + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
    y = tl.load(b + k[:, None] * N + j[None, :], mask=k[:, None] < K, other=0.0)
    tl.atomic_add(c + i[:, None] * N + j[None, :], tl.dot(x, y, input_precision="ieee"))


@triton.jit
def grouped_gemm(
    left, right, out, sizes, strides, count, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Several products of different sizes. Their addresses stand in tensors; tiles are dealt to programs."""
    tile = tl.program_id(0)
    before = 0
    for g in range(count):
        M, N, K = tl.load(sizes + g * 3), tl.load(sizes + g * 3 + 1), tl.load(sizes + g * 3 + 2)
        across = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * across
        while tile >= before and tile < before + tiles:
            sa, sb, sc = tl.load(strides + g * 3), tl.load(strides + g * 3 + 1), tl.load(strides + g * 3 + 2)
            a = tl.load(left + g).to(tl.pointer_type(tl.float16))
            b = tl.load(right + g).to(tl.pointer_type(tl.float16))
            c = tl.load(out + g).to(tl.pointer_type(tl.float16))
            i, j = (tile - before) // across, (tile - before) % across
            rows, columns = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
            inner = tl.arange(0, BK)
            total = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                x = tl.load(
                    a + rows[:, None] * sa + (k + inner)[None, :],
                    mask=(rows[:, None] < M) & (k + inner < K)[None, :],
                    other=0.0,
                )
                y = tl.load(
                    b + (k + inner)[:, None] * sb + columns[None, :],
                    mask=(k + inner < K)[:, None] & (columns[None, :] < N),
                    other=0.0,
                )
                total += tl.dot(x, y)
            mask = (rows[:, None] < M) & (columns[None, :] < N)
            tl.store(c + rows[:, None] * sc + columns[None, :], total.to(tl.float16), mask=mask)
            tile += tl.num_programs(0)
        before += tiles


@triton.jit
def scaled_matmul(
    a, a_scale, b, b_scale, c,
    N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr, KA: tl.constexpr, KB: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """One N by K by N product per program, each row of GROUP values with a scale of its own."""
    pid = tl.program_id(0)
    i, ka, kb, g = tl.arange(0, N), tl.arange(0, KA), tl.arange(0, KB), tl.arange(0, K // GROUP)
    x = tl.load(a + pid * N * KA + i[:, None] * KA + ka[None, :])
    y = tl.load(b + pid * N * KB + i[None, :] * KB + kb[:, None])
    scales = pid * N * (K // GROUP) + i[:, None] * (K // GROUP) + g[None, :]
    if a_scale is not None:
        sx = tl.load(a_scale + scales)
    else:
        sx = None
    sy = tl.load(b_scale + scales)
    r = tl.dot_scaled(x, sx, A, y, sy, B)
    tl.store(c + pid * N * N + i[:, None] * N + i[None, :], r)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def matmul_case(
    name: str,
    dtype: torch.dtype,
    tolerance: float,
    sizes: tuple[int, int, int],
    activation: str = "",
    turned: bool = False,
) -> Case:
    M, N, K = sizes

    def arguments(generator: torch.Generator) -> Arguments:
        a = normal(generator, M, K, dtype=dtype)
        b = normal(generator, N, K, dtype=dtype).T if turned else normal(generator, K, N, dtype=dtype)
        c = torch.zeros(M, N, dtype=dtype)
        strides = dict(
            zip(("am", "ak", "bk", "bn", "cm", "cn"), (*a.stride(), *b.stride(), *c.stride()), strict=True)
        )
        tiles = {"BM": 16, "BN": 16, "BK": 16, "GROUP": 2}
        return {"a": a, "b": b, "c": c, "M": M, "N": N, "K": K, **strides, **tiles, "ACTIVATION": activation}

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        r = product(a["a"], a["b"])
        return {"c": (torch.where(r >= 0, r, 0.01 * r) if activation else r).to(dtype)}

    grid = (triton.cdiv(M, 16) * triton.cdiv(N, 16),)
    return Case(name, matmul, arguments, grid, expected, rtol=tolerance, atol=tolerance, reorders=True)


def dot_case(
    name: str, dtype: torch.dtype, out: torch.dtype, tl_out: tl.dtype, precision: str | None, tolerance: float
) -> Case:
    whole = not dtype.is_floating_point

    def arguments(generator: torch.Generator) -> Arguments:
        tiles = [
            integers(generator, -128, 128, 3, 32, 32, dtype=dtype)
            if whole
            else normal(generator, 3, 32, 32, dtype=dtype)
            for _ in "ab"
        ]
        c = torch.zeros(3, 32, 32, dtype=out)
        return {"a": tiles[0], "b": tiles[1], "c": c, "N": 32, "PRECISION": precision, "TYPE": tl_out}

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        return {"c": product(a["a"], a["b"]).to(out)}

    tolerances = {} if whole else {"rtol": tolerance, "atol": tolerance, "reorders": True}
    return Case(name, dot_tiles, arguments, (3,), expected, **tolerances)


GROUPS = [(20, 33, 17), (16, 16, 32), (5, 40, 9)]


def group_arguments(generator: torch.Generator) -> Arguments:
    lefts = [normal(generator, m, k, dtype=F16) for m, n, k in GROUPS]
    rights = [normal(generator, k, n, dtype=F16) for m, n, k in GROUPS]
    outs = [torch.zeros(m, n, dtype=F16) for m, n, k in GROUPS]
    named = {f"_out{n}": t for n, t in enumerate(outs)} | {f"_in{n}": t for n, t in enumerate(lefts + rights)}
    addresses = [torch.tensor([t.data_ptr() for t in tensors]) for tensors in (lefts, rights, outs)]
    strides = [[k, n, n] for m, n, k in GROUPS]
    return {
        "left": addresses[0],
        "right": addresses[1],
        "out": addresses[2],
        "sizes": torch.tensor(GROUPS, dtype=torch.int32),
        "strides": torch.tensor(strides, dtype=torch.int32),
        "count": len(GROUPS),
        "BM": 16,
        "BN": 16,
        "BK": 16,
        **named,
    }


def group_expected(a: Arguments) -> dict[str, torch.Tensor]:
    return {f"_out{n}": product(a[f"_in{n}"], a[f"_in{n + 3}"]).to(F16) for n in range(3)}


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def values_of(stored: torch.Tensor) -> torch.Tensor:
    """The numbers in memory; bytes hold two of four bits, the low ones first."""
    if stored.dtype != torch.uint8:
        return stored.double()
    low, high = stored.numpy() & 15, stored.numpy() >> 4
    return torch.from_numpy(E2M1[np.stack([low, high], -1).reshape(*low.shape[:-1], -1)])


def scaled_values(stored: torch.Tensor, scales: torch.Tensor | None) -> torch.Tensor:
    """A scale is a power of two, 127 being one, for 32 values."""
    values = values_of(stored)
    if scales is None:
        return values
    return values * torch.exp2(scales.double() - 127).repeat_interleave(32, -1)


def scaled_case(left: str, right: str, scale_left: bool = True) -> Case:
    kinds = {"e4m3": E4, "e5m2": E5, "bf16": BF16, "fp16": F16}

    def stored(generator: torch.Generator, kind: str) -> torch.Tensor:
        if kind == "e2m1":
            return integers(generator, 0, 256, 3, 16, 32, dtype=torch.uint8)
        return normal(generator, 3, 16, 64, dtype=kinds[kind])

    def arguments(generator: torch.Generator) -> Arguments:
        a, b = stored(generator, left), stored(generator, right)
        scales = [integers(generator, 122, 132, 3, 16, 2, dtype=torch.uint8) for _ in "ab"]
        widths = {"N": 16, "K": 64, "A": left, "B": right, "KA": a.shape[2], "KB": b.shape[2], "GROUP": 32}
        tensors = {"a": a, "a_scale": scales[0] if scale_left else None, "b": b, "b_scale": scales[1]}
        return {**tensors, "c": torch.zeros(3, 16, 16), **widths}

    def expected(a: Arguments) -> dict[str, torch.Tensor]:
        x, y = scaled_values(a["a"], a["a_scale"]), scaled_values(a["b"], a["b_scale"])
        return {"c": (x @ y.transpose(1, 2)).float()}

    # Inputs of eight bits or less times a power of two are exact in bfloat16, so only the sum rounds.
    name = f"dot_scaled_{left}_{right}{'' if scale_left else '_one_scale'}"
    return Case(name, scaled_matmul, arguments, (3,), expected, rtol=1e-4, atol=1e-2, reorders=True)


CASES = [
    matmul_case("matmul_float32", F32, 1e-4, (40, 50, 33)),
    matmul_case("matmul_float16", F16, 5e-3, (40, 50, 33)),
    matmul_case("matmul_bfloat16", BF16, 5e-2, (40, 50, 33)),
    matmul_case("matmul_whole_tiles", F32, 1e-4, (64, 32, 32)),
    matmul_case("matmul_with_activation", F32, 1e-4, (17, 40, 20), "leaky"),
    matmul_case("matmul_of_a_transposed_matrix", F32, 1e-4, (33, 20, 18), turned=True),
    dot_case("dot_ieee", F32, F32, tl.float32, "ieee", 1e-4),
    dot_case("dot_tf32", F32, F32, tl.float32, "tf32", 3e-2),
    dot_case("dot_tf32x3", F32, F32, tl.float32, "tf32x3", 1e-4),
    dot_case("dot_default_precision", F32, F32, tl.float32, None, 3e-2),
    dot_case("dot_float16_to_float32", F16, F32, tl.float32, None, 1e-3),
    dot_case("dot_float16_to_float16", F16, F16, tl.float16, None, 2e-2),
    dot_case("dot_bfloat16", BF16, F32, tl.float32, None, 1e-3),
    dot_case("dot_float64", F64, F64, tl.float64, None, 1e-10),
    dot_case("dot_int8", torch.int8, torch.int32, tl.int32, None, 0),
    dot_case("dot_float8_e4m3fn", E4, F32, tl.float32, None, 1e-3),
    dot_case("dot_float8_e5m2", E5, F32, tl.float32, None, 1e-3),
    Case(
        "dot_of_transposed_tiles",
        dot_transposed,
        lambda g: {
            "a": normal(g, 3, 16, 16),
            "b": normal(g, 3, 16, 16),
            "c": torch.zeros(3, 16, 16),
            "N": 16,
        },
        (3,),
        lambda a: {"c": (a["b"] @ a["a"].transpose(1, 2) @ a["a"]) + a["a"] @ a["b"].transpose(1, 2)},
        rtol=1e-3,
        atol=1e-3,
        reorders=True,
    ),
    Case(
        "dot_batched",
        dot_batched,
        lambda g: {
            "a": normal(g, 3, 2, 16, 16),
            "b": normal(g, 3, 2, 16, 16),
            "c": torch.zeros(3, 2, 16, 16),
            "B": 2,
            "N": 16,
        },
        (3,),
        lambda a: {"c": a["a"] @ a["b"]},
        rtol=1e-4,
        atol=1e-4,
        reorders=True,
    ),
    Case(
        "matmul_split_k",
        matmul_split_k,
        lambda g: {
            "a": normal(g, 16, 70),
            "b": normal(g, 70, 16),
            "c": torch.zeros(16, 16),
            "K": 70,
            "N": 16,
            "BK": 16,
        },
        (5,),
        lambda a: {"c": a["a"] @ a["b"]},
        rtol=1e-4,
        atol=1e-4,
        reorders=True,
    ),
    *(
        Case(
            f"grouped_gemm_{programs}_programs",
            grouped_gemm,
            group_arguments,
            (programs,),
            group_expected,
            rtol=5e-3,
            atol=5e-3,
            reorders=True,
            scratch=("left", "right", "out"),
        )
        for programs in (4, 20)
    ),
    *(
        scaled_case(*kinds)
        for kinds in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e4m3", "e2m1"))
    ),
    scaled_case("bf16", "e4m3", scale_left=False),
    scaled_case("fp16", "e2m1", scale_left=False),
]
