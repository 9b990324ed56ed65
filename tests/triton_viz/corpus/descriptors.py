"""Tensor descriptors, made in a kernel and by the host."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal


@triton.jit
def copy_tiles(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """What lies outside is read as zero, and not written."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [ROWS, COLUMNS])
    i, j = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    target.store([i, j], source.load([i, j]) + 1)


@triton.jit
def read_outside(x, out, rows, columns, N: tl.constexpr):
    """A tile that starts before the tensor and one that ends after it."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [N, N])
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    start = tl.program_id(0) * 8 - 4
    tl.store(out + tl.program_id(0) * N * N + at, source.load([start, start]))


@triton.jit
def read_nan_outside(x, out, rows, columns, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [N, N], padding_option="nan")
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.program_id(0) * N * N + at, source.load([tl.program_id(0) * N, 0]))


@triton.jit
def matmul_by_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    target = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([i, k]), right.load([j, k]).T, total)
    target.store([i, j], total.to(c.dtype.element_ty))


@triton.jit
def three_axes(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """Planes of a cube, turned."""
    source = tl.make_tensor_descriptor(x, [A, B, C], [B * C, C, 1], [1, B, C])
    target = tl.make_tensor_descriptor(out, [A, C, B], [C * B, B, 1], [1, C, B])
    plane = source.load([tl.program_id(0), 0, 0]).reshape(B, C)
    target.store([tl.program_id(0), 0, 0], plane.T.reshape(1, C, B))


@triton.jit
def host_made(source, target, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    target.store([i, j], source.load([i, j]) * 2)


@triton.jit
def host_row_sums(source, out, rows, BLOCK: tl.constexpr):
    """A descriptor passed on to another function, read in a loop."""
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, source.shape[1], BLOCK):
        total += row_of(source, tl.program_id(0), k, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def row_of(source, row, k, BLOCK: tl.constexpr):
    return source.load([row, k]).reshape(BLOCK)


@triton.jit
def gather_and_scatter(x, index, out, rows, columns, COLUMNS: tl.constexpr, N: tl.constexpr):
    """Rows picked by an index, put where another says."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [1, COLUMNS])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [1, COLUMNS])
    picked = tl.load(index + tl.program_id(0) * N + tl.arange(0, N))
    values = source.gather(picked, 0)
    target.scatter(values * 10, tl.program_id(0) * N + tl.arange(0, N), 0)


@triton.jit
def added_by_descriptor(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Programs add their tiles to one."""
    target = tl.make_tensor_descriptor(out, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    target.atomic_add([0, 0], tl.load(x + tl.program_id(0) * ROWS * COLUMNS + at))


@triton.jit
def early_or_descriptor(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Descriptors in a branch, at rows that are loaded."""
    pid = tl.program_id(0)
    if pid >= n:
        return
    source = tl.make_tensor_descriptor(x, [n * ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    if pid % 2 == 0:
        v = source.load([pid * ROWS, 0])
    else:
        v = source.load([0, 0]) * 3
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + pid * ROWS * COLUMNS + at, v)


def tiles_arguments(dtype: torch.dtype):
    def arguments(generator: torch.Generator) -> Arguments:
        x = integers(generator, 0, 90, 20, 48).to(dtype)
        out = torch.full((20, 48), 7).to(dtype)
        return {"x": x, "out": out, "rows": 20, "columns": 48, "ROWS": 8, "COLUMNS": 32}

    return arguments


def windows(a: Arguments) -> dict[str, torch.Tensor]:
    padded = torch.nn.functional.pad(a["x"], (4, 20, 4, 20))
    return {"out": torch.stack([padded[8 * p : 8 * p + 16, 8 * p : 8 * p + 16] for p in range(3)])}


def with_nan(a: Arguments) -> dict[str, torch.Tensor]:
    padded = torch.nn.functional.pad(a["x"], (0, 4, 0, 12), value=float("nan"))
    return {"out": torch.stack([padded[16 * p : 16 * p + 16, :16] for p in range(2)])}


def host_arguments(generator: torch.Generator) -> Arguments:
    x, out = normal(generator, 20, 48), torch.zeros(20, 48)
    described = {
        name: TensorDescriptor(base, list(base.shape), list(base.stride()), [8, 32])
        for name, base in (("source", x), ("target", out))
    }
    return {**described, "_x": x, "_out": out, "ROWS": 8, "COLUMNS": 32}


def host_view_arguments(generator: torch.Generator) -> Arguments:
    """A descriptor of a part of a tensor."""
    x, out = normal(generator, 24, 64), torch.zeros(20, 48)
    part = x[2:22, 8:56]
    source = TensorDescriptor(part, [20, 48], [64, 1], [8, 32])
    target = TensorDescriptor(out, [20, 48], [48, 1], [8, 32])
    return {"source": source, "target": target, "_x": x, "_part": part, "_out": out, "ROWS": 8, "COLUMNS": 32}


def row_sum_arguments(generator: torch.Generator) -> Arguments:
    x = normal(generator, 6, 40)
    source = TensorDescriptor(x, [6, 40], [40, 1], [1, 16])
    return {"source": source, "_x": x, "out": torch.zeros(6), "rows": 6, "BLOCK": 16}


def scattered(a: Arguments) -> dict[str, torch.Tensor]:
    out = a["out"].clone()
    out[:16] = a["x"][a["index"].long()] * 10
    return {"out": out}


def branched(a: Arguments) -> dict[str, torch.Tensor]:
    out = a["out"].clone()
    for p in range(3):
        out[p] = a["x"][p] if p % 2 == 0 else a["x"][0] * 3
    return {"out": out}


CASES = [
    *(
        Case(
            f"descriptor_copy_{str(dtype)[6:]}",
            copy_tiles,
            tiles_arguments(dtype),
            (3, 2),
            lambda a: {"out": a["x"] + 1},
        )
        for dtype in (torch.float32, torch.float16, torch.int32, torch.bfloat16)
    ),
    Case(
        "descriptor_reads_zero_outside",
        read_outside,
        lambda g: {"x": normal(g, 20, 24), "out": torch.ones(3, 16, 16), "rows": 20, "columns": 24, "N": 16},
        (3,),
        windows,
    ),
    Case(
        "descriptor_reads_nan_outside",
        read_nan_outside,
        lambda g: {"x": normal(g, 20, 12), "out": torch.ones(2, 16, 16), "rows": 20, "columns": 12, "N": 16},
        (2,),
        with_nan,
    ),
    *(
        Case(
            f"descriptor_matmul_{str(dtype)[6:]}",
            matmul_by_descriptors,
            lambda g, dtype=dtype: {
                "a": normal(g, 40, 48, dtype=dtype),
                "b": normal(g, 24, 48, dtype=dtype),
                "c": torch.zeros(40, 24, dtype=dtype),
                "M": 40,
                "N": 24,
                "K": 48,
                "BM": 16,
                "BN": 16,
                "BK": 32,
            },
            (3, 2),
            lambda a: {"c": (a["a"].double() @ a["b"].double().T).to(a["c"].dtype)},
            rtol=5e-3,
            atol=2e-2,
            reorders=True,
        )
        for dtype in (torch.float32, torch.float16)
    ),
    Case(
        "descriptor_of_three_axes",
        three_axes,
        lambda g: {"x": normal(g, 5, 8, 16), "out": torch.zeros(5, 16, 8), "A": 5, "B": 8, "C": 16},
        (5,),
        lambda a: {"out": a["x"].transpose(1, 2)},
    ),
    Case("descriptor_of_the_host", host_made, host_arguments, (3, 2), lambda a: {"_out": a["_x"] * 2}),
    Case(
        "descriptor_of_the_host_on_a_view",
        host_made,
        host_view_arguments,
        (3, 2),
        lambda a: {"_out": a["_part"] * 2},
    ),
    Case(
        "descriptor_passed_on",
        host_row_sums,
        row_sum_arguments,
        (6,),
        lambda a: {"out": a["_x"].sum(1)},
        rtol=1e-5,
        atol=1e-5,
        reorders=True,
    ),
    Case(
        "descriptor_gather_and_scatter",
        gather_and_scatter,
        lambda g: {
            "x": integers(g, 0, 99, 20, 16),
            "index": integers(g, 0, 20, 16),
            "out": torch.zeros(20, 16, dtype=torch.int32),
            "rows": 20,
            "columns": 16,
            "COLUMNS": 16,
            "N": 8,
        },
        (2,),
        scattered,
    ),
    Case(
        "descriptor_atomic_add",
        added_by_descriptor,
        lambda g: {
            "x": integers(g, 0, 99, 5, 8, 16),
            "out": torch.zeros(8, 16, dtype=torch.int32),
            "ROWS": 8,
            "COLUMNS": 16,
        },
        (5,),
        lambda a: {"out": a["x"].sum(0).int()},
    ),
    Case(
        "descriptor_in_branches",
        early_or_descriptor,
        lambda g: {"x": normal(g, 3, 8, 16), "out": torch.zeros(5, 8, 16), "n": 3, "ROWS": 8, "COLUMNS": 16},
        (5,),
        branched,
    ),
]
