"""Block pointers, which older releases of Triton have: blocks of a tensor that move on."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal
from tests.triton_viz.corpus.features import BLOCK_POINTERS


@triton.jit
def copy_blocks(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """What lies outside is not read, and not written."""
    at = (tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS)
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), at, (ROWS, COLUMNS), (1, 0))
    target = tl.make_block_ptr(out, (rows, columns), (columns, 1), at, (ROWS, COLUMNS), (1, 0))
    block = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, block + 1, boundary_check=(0, 1))


@triton.jit
def transpose_blocks(x, out, rows, columns, N: tl.constexpr):
    """A tensor seen the other way round is one with its strides exchanged."""
    i, j = tl.program_id(0) * N, tl.program_id(1) * N
    source = tl.make_block_ptr(x, (columns, rows), (1, columns), (j, i), (N, N), (0, 1))
    target = tl.make_block_ptr(out, (columns, rows), (rows, 1), (j, i), (N, N), (1, 0))
    tl.store(target, tl.load(source, boundary_check=(1, 0)), boundary_check=(0, 1))


@triton.jit
def read_outside(x, out, n, N: tl.constexpr, PADDING: tl.constexpr):
    """From before the tensor to behind it."""
    source = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * N - 3,), (N,), (0,))
    block = tl.load(source, boundary_check=(0,), padding_option=PADDING)
    tl.store(out + tl.program_id(0) * N + tl.arange(0, N), block)


@triton.jit
def check_one_axis(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Only rows are checked: columns need not be."""
    source = tl.make_block_ptr(
        x, (rows, columns), (COLUMNS, 1), (tl.program_id(0) * ROWS, 0), (ROWS, COLUMNS), (1, 0)
    )
    block = tl.load(source, boundary_check=(0,), padding_option="zero")
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + tl.program_id(0) * ROWS * COLUMNS + at, block)


@triton.jit
def matmul_by_block_pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_block_ptr(a, (M, K), (K, 1), (i, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (N, 1), (0, j), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(right, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(x, y, total)
        left = tl.advance(left, (0, BK))
        right = tl.advance(right, (BK, 0))
    target = tl.make_block_ptr(c, (M, N), (N, 1), (i, j), (BM, BN), (1, 0))
    tl.store(target, total.to(c.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def walk_back(x, out, rows, N: tl.constexpr):
    """From the last row to the first, of a block that is three axes deep."""
    pid = tl.program_id(0)
    row = tl.make_block_ptr(x, (2, rows, N), (rows * N, N, 1), (pid, rows - 1, 0), (1, 1, N), (2, 1, 0))
    target = tl.make_block_ptr(out, (2, rows, N), (rows * N, N, 1), (pid, 0, 0), (1, 1, N), (2, 1, 0))
    for _ in range(rows):
        tl.store(target, tl.load(row))
        row = tl.advance(row, (0, -1, 0))
        target = tl.advance(target, (0, 1, 0))


@triton.jit
def walk_unequally(x, counts, out, n, N: tl.constexpr):
    """Each program takes as many steps as it is told."""
    pid = tl.program_id(0)
    block = tl.make_block_ptr(x, (n,), (1,), (pid,), (N,), (0,))
    total = tl.zeros((N,), tl.int32)
    for _ in range(tl.load(counts + pid)):
        total += tl.load(block, boundary_check=(0,), padding_option="zero")
        block = tl.advance(block, (N,))
    tl.store(out + pid * N + tl.arange(0, N), total)


@triton.jit
def move_some(x, flags, out, n, N: tl.constexpr):
    """Only programs whose flag is set move on."""
    pid = tl.program_id(0)
    block = tl.make_block_ptr(x, (n,), (1,), (pid * N,), (N,), (0,))
    if tl.load(flags + pid) > 0:
        block = tl.advance(block, (N,))
    tl.store(out + pid * N + tl.arange(0, N), tl.load(block, boundary_check=(0,), padding_option="zero"))


@triton.jit
def own_strides(x, strides, out, n, N: tl.constexpr):
    """Every program walks the tensor at a pace of its own."""
    pid = tl.program_id(0)
    step = tl.load(strides + pid)
    source = tl.make_block_ptr(x, (n,), (step,), (1,), (N,), (0,))
    tl.store(out + pid * N + tl.arange(0, N), tl.load(source, boundary_check=(0,), padding_option="zero"))


@triton.jit
def last_step(block, N: tl.constexpr):
    return tl.advance(block, (N,))


@triton.jit
def pass_on(x, out, n, N: tl.constexpr):
    """A block pointer goes into a function and comes out of it."""
    block = last_step(tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * 2 * N,), (N,), (0,)), N)
    target = tl.make_block_ptr(out, (n,), (1,), (tl.program_id(0) * N,), (N,), (0,))
    tl.store(target, (tl.load(block).to(tl.float32) * 0.5).to(out.dtype.element_ty))


def outside(a: Arguments) -> dict[str, torch.Tensor]:
    fill = torch.nan if a["PADDING"] == "nan" else 0
    before, behind = a["x"].new_full((3,), fill), a["x"].new_full((a["out"].numel(),), fill)
    return {"out": torch.cat([before, a["x"], behind])[: a["out"].numel()].reshape(a["out"].shape)}


def unequal(a: Arguments) -> dict[str, torch.Tensor]:
    n, width = a["n"], a["N"]
    padded = torch.cat([a["x"], a["x"].new_zeros(100 * width)])
    rows = [
        padded[pid : pid + count * width].reshape(-1, width).sum(0)
        for pid, count in enumerate(a["counts"].tolist())
    ]
    assert n == len(a["x"])
    return {"out": torch.stack(rows).int()}


def some_moved(a: Arguments) -> dict[str, torch.Tensor]:
    width = a["N"]
    padded = torch.cat([a["x"], a["x"].new_zeros(2 * width)])
    starts = [(pid + flag) * width for pid, flag in enumerate(a["flags"].tolist())]
    return {"out": torch.stack([padded[start : start + width] for start in starts])}


def strided(a: Arguments) -> dict[str, torch.Tensor]:
    rows = []
    for step in a["strides"].tolist():
        # The tensor's size is in steps, whatever they are.
        inside = [index * step if index < a["n"] else None for index in range(1, 1 + a["N"])]
        rows.append([0 if at is None else a["x"][at].item() for at in inside])
    return {"out": torch.tensor(rows, dtype=torch.int32)}


def case(name: str, kernel, arguments, grid, expected, **more) -> Case:
    return Case(f"block_pointer_{name}", kernel, arguments, grid, expected, needs=BLOCK_POINTERS, **more)


CASES = [
    case(
        "copies",
        copy_blocks,
        lambda g: {
            "x": integers(g, 0, 99, 13, 21),
            "out": torch.zeros(13, 21, dtype=torch.int32),
            "rows": 13,
            "columns": 21,
            "ROWS": 4,
            "COLUMNS": 8,
        },
        (4, 3),
        lambda a: {"out": a["x"] + 1},
    ),
    case(
        "copies_bytes",
        copy_blocks,
        lambda g: {
            "x": integers(g, 0, 99, 8, 16, dtype=torch.uint8),
            "out": torch.zeros(8, 16, dtype=torch.uint8),
            "rows": 8,
            "columns": 16,
            "ROWS": 8,
            "COLUMNS": 8,
        },
        (1, 2),
        lambda a: {"out": a["x"] + 1},
    ),
    case(
        "transposes",
        transpose_blocks,
        lambda g: {
            "x": normal(g, 13, 21, dtype=torch.bfloat16),
            "out": torch.zeros(21, 13, dtype=torch.bfloat16),
            "rows": 13,
            "columns": 21,
            "N": 8,
        },
        (2, 3),
        lambda a: {"out": a["x"].T.contiguous()},
    ),
    *(
        case(
            f"reads_{padding}_outside",
            read_outside,
            lambda g, padding=padding: {
                "x": normal(g, 10),
                "out": torch.ones(3, 8),
                "n": 10,
                "N": 8,
                "PADDING": padding,
            },
            (3,),
            outside,
        )
        for padding in ("zero", "nan")
    ),
    case(
        "checks_one_axis",
        check_one_axis,
        lambda g: {
            "x": normal(g, 6, 16),
            "out": torch.ones(2, 4, 16),
            "rows": 6,
            "columns": 3,
            "ROWS": 4,
            "COLUMNS": 16,
        },
        (2,),
        lambda a: {"out": torch.cat([a["x"], torch.zeros(2, 16)]).reshape(2, 4, 16)},
    ),
    case(
        "matmul",
        matmul_by_block_pointers,
        lambda g: {
            "a": normal(g, 40, 50, dtype=torch.float16),
            "b": normal(g, 50, 35, dtype=torch.float16),
            "c": torch.zeros(40, 35, dtype=torch.float16),
            "M": 40,
            "N": 35,
            "K": 50,
            "BM": 16,
            "BN": 16,
            "BK": 16,
        },
        (3, 3),
        lambda a: {"c": (a["a"].float() @ a["b"].float()).half()},
        rtol=1e-2,
        atol=1e-2,
        reorders=True,
    ),
    case(
        "walks_back",
        walk_back,
        lambda g: {"x": normal(g, 2, 5, 8), "out": torch.zeros(2, 5, 8), "rows": 5, "N": 8},
        (2,),
        lambda a: {"out": a["x"].flip(1)},
    ),
    case(
        "walks_unequally",
        walk_unequally,
        lambda g: {
            "x": integers(g, 0, 99, 30),
            "counts": integers(g, 0, 6, 7),
            "out": torch.ones(7, 8, dtype=torch.int32),
            "n": 30,
            "N": 8,
        },
        (7,),
        unequal,
    ),
    case(
        "moves_for_some",
        move_some,
        lambda g: {
            "x": integers(g, 0, 99, 45),
            "flags": integers(g, 0, 2, 6),
            "out": torch.ones(6, 8, dtype=torch.int32),
            "n": 45,
            "N": 8,
        },
        (6,),
        some_moved,
    ),
    case(
        "strides_of_their_own",
        own_strides,
        lambda g: {
            "x": integers(g, 0, 99, 64),
            "strides": torch.tensor([1, 3, 2, 5], dtype=torch.int32),
            "out": torch.ones(4, 8, dtype=torch.int32),
            "n": 7,
            "N": 8,
        },
        (4,),
        strided,
    ),
    case(
        "passed_on",
        pass_on,
        lambda g: {
            "x": normal(g, 48, dtype=torch.float16),
            "out": torch.zeros(24, dtype=torch.float16),
            "n": 48,
            "N": 8,
        },
        (3,),
        lambda a: {"out": a["x"].reshape(3, 2, 8)[:, 1].reshape(24) * 0.5},
    ),
]
