"""Blocks that change their shape or the order of their elements."""

from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, integers, normal
from tests.triton_viz.corpus.features import FLIP_OF_THE_LAST_AXIS, SMALLEST_OF_TOPK


@triton.jit
def move(x, y, out, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SIZE: tl.constexpr):
    """Two M by N blocks per program, moved about, written out flat."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    pid = tl.program_id(0)
    at = pid * M * N + i * N + j
    a, b = tl.load(x + at), tl.load(y + at)
    if OP == "T":
        r = a.T
    elif OP == "trans":
        r = tl.trans(a)
    elif OP == "trans_dims":
        r = tl.trans(a, (1, 0))
    elif OP == "permute_3d":
        r = tl.permute(tl.join(a, b), (2, 1, 0))
    elif OP == "permute_method":
        r = tl.join(a, b).permute(1, 2, 0)
    elif OP == "T_of_sum":
        r = (a + b * 2).T + 1
    elif OP == "join":
        r = tl.join(a, b)
    elif OP == "split":
        even, odd = tl.split(tl.reshape(a, [M, N // 2, 2]))
        r = even * 1000 + odd
    elif OP == "join_then_split":
        left, right = tl.join(a, b).split()
        r = left - right
    elif OP == "interleave":
        r = tl.interleave(a, b)
    elif OP == "cat":
        r = tl.cat(tl.ravel(a), tl.ravel(b))
    elif OP == "cat_rows":
        r = tl.cat(a, b)
    elif OP == "cat_columns":
        r = tl.cat(a, b, dim=1)
    elif OP == "reshape":
        r = tl.reshape(a, [N, M])
    elif OP == "reshape_method":
        r = a.reshape(M // 2, 2, N)
    elif OP == "view":
        r = tl.view(a, [M * N])
    elif OP == "ravel":
        r = tl.ravel(a)
    elif OP == "reshape_of_T":
        r = tl.reshape(a.T, [M, N])
    elif OP == "flip":
        r = tl.flip(a)
    elif OP == "flip_rows":
        r = tl.flip(a, 0)
    elif OP == "sort":
        r = tl.sort(a)
    elif OP == "sort_descending":
        r = tl.sort(a, descending=True)
    elif OP == "topk":
        r = tl.topk(a, 4)
    elif OP == "topk_smallest":
        r = tl.topk(a, 2, descending=False)
    elif OP == "expand_dims":
        r = tl.expand_dims(a, 1) + tl.expand_dims(b, (1,))
    elif OP == "expand_last":
        r = tl.expand_dims(a, -1) * 2
    elif OP == "new_axis":
        r = a[:, None, :] + b[None, :, :]
    elif OP == "broadcast_to":
        r = tl.broadcast_to(tl.sum(a, 1, keep_dims=True), [M, N]) + tl.broadcast_to(
            tl.max(b, 0)[None, :], [M, N]
        )
    elif OP == "broadcast":
        left, right = tl.broadcast(tl.max(a, 1)[:, None], tl.max(b, 0)[None, :])
        r = left - right
    elif OP == "unsqueeze":
        r = tl.squeeze(tl.unsqueeze(a, 0), 0)
    elif OP == "gather_columns":
        r = tl.gather(a, b % N, 1)
    elif OP == "gather_rows":
        r = tl.gather(a, b % M, 0)
    elif OP == "full":
        r = tl.full([M, N], 7, tl.int32) + tl.zeros([M, N], tl.int32) + tl.zeros_like(a) + pid
    else:
        tl.static_assert(OP == "ranges")
        r = tl.arange(4, 4 + M)[:, None] * 10 + tl.arange(0, N)[None, :] + pid
    flat = tl.reshape(r, [SIZE])
    tl.store(out + pid * SIZE + tl.arange(0, SIZE), flat)


def interleaved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([a, b], -1).reshape(*a.shape[:-1], -1)


M, N = 4, 8
MOVES: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "T": lambda a, b, pid: a.T,
    "trans": lambda a, b, pid: a.T,
    "trans_dims": lambda a, b, pid: a.T,
    "permute_3d": lambda a, b, pid: np.stack([a, b], -1).transpose(2, 1, 0),
    "permute_method": lambda a, b, pid: np.stack([a, b], -1).transpose(1, 2, 0),
    "T_of_sum": lambda a, b, pid: (a + b * 2).T + 1,
    "join": lambda a, b, pid: np.stack([a, b], -1),
    "split": lambda a, b, pid: a[:, ::2] * 1000 + a[:, 1::2],
    "join_then_split": lambda a, b, pid: a - b,
    "interleave": lambda a, b, pid: interleaved(a, b),
    "cat": lambda a, b, pid: np.concatenate([a.ravel(), b.ravel()]),
    "cat_rows": lambda a, b, pid: np.concatenate([a, b], 0),
    "cat_columns": lambda a, b, pid: np.concatenate([a, b], 1),
    "reshape": lambda a, b, pid: a,
    "reshape_method": lambda a, b, pid: a,
    "view": lambda a, b, pid: a,
    "ravel": lambda a, b, pid: a,
    "reshape_of_T": lambda a, b, pid: a.T,
    "flip": lambda a, b, pid: a[:, ::-1],
    "flip_rows": lambda a, b, pid: a[::-1],
    "sort": lambda a, b, pid: np.sort(a, 1),
    "sort_descending": lambda a, b, pid: np.sort(a, 1)[:, ::-1],
    "topk": lambda a, b, pid: np.sort(a, 1)[:, ::-1][:, :4],
    "topk_smallest": lambda a, b, pid: np.sort(a, 1)[:, :2],
    "expand_dims": lambda a, b, pid: a + b,
    "expand_last": lambda a, b, pid: a * 2,
    "new_axis": lambda a, b, pid: a[:, None, :] + b[None, :, :],
    "broadcast_to": lambda a, b, pid: a.sum(1, keepdims=True) + b.max(0)[None, :],
    "broadcast": lambda a, b, pid: a.max(1)[:, None] - b.max(0)[None, :],
    "unsqueeze": lambda a, b, pid: a,
    "gather_columns": lambda a, b, pid: np.take_along_axis(a, b % N, 1),
    "gather_rows": lambda a, b, pid: np.take_along_axis(a, b % M, 0),
    "full": lambda a, b, pid: np.full((M, N), 7 + pid),
    "ranges": lambda a, b, pid: np.arange(4, 4 + M)[:, None] * 10 + np.arange(N) + pid,
}


def move_case(op: str) -> Case:
    def moved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        pairs = enumerate(zip(x.numpy(), y.numpy(), strict=True))
        rows = [np.ascontiguousarray(MOVES[op](a, b, pid)).reshape(-1) for pid, (a, b) in pairs]
        return torch.from_numpy(np.stack(rows)).to(torch.int32)

    def arguments(generator: torch.Generator) -> Arguments:
        x, y = integers(generator, 0, 900, 3, M, N), integers(generator, 0, 900, 3, M, N)
        out = torch.zeros_like(moved(x, y))
        return {"x": x, "y": y, "out": out, "OP": op, "M": M, "N": N, "SIZE": out.shape[1]}

    needs = {"flip": FLIP_OF_THE_LAST_AXIS, "topk_smallest": SMALLEST_OF_TOPK}.get(op)
    return Case(f"shape_{op}", move, arguments, (3,), lambda a: {"out": moved(a["x"], a["y"])}, needs=needs)


@triton.jit
def sort_floats(x, out, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at), descending=DESCENDING))


@triton.jit
def count_bins(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Each program counts its own values; those outside the bins, or masked, count nowhere."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    counts = tl.histogram(v, BINS, mask=at < n)
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), counts)


@triton.jit
def count_bins_unmasked(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at), BINS)
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), counts)


@triton.jit
def split_channels(x, red, green, BLOCK: tl.constexpr):
    """Two values that stand next to each other in memory, pulled apart in registers."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pairs = tl.load(x + at[:, None] * 2 + tl.arange(0, 2)[None, :])
    first, second = tl.split(pairs)
    tl.store(red + at, first)
    tl.store(green + at, second)


@triton.jit
def outer_product(x, y, out, M: tl.constexpr, N: tl.constexpr):
    """A block of M rows broadcast against one of N columns, transposed on the way out."""
    pid = tl.program_id(0)
    a, b = tl.load(x + pid * M + tl.arange(0, M)), tl.load(y + pid * N + tl.arange(0, N))
    product = a[:, None] * b[None, :]
    at = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + pid * M * N + at, product.T)


@triton.jit
def scalar_blocks(x, out):
    """Scalars joined into a block of two, and split into scalars again."""
    pid = tl.program_id(0)
    a, b = tl.load(x + pid * 2), tl.load(x + pid * 2 + 1)
    pair = tl.join(a, b)
    tl.store(out + pid * 4 + tl.arange(0, 2), pair * 10)
    left, right = tl.split(pair)
    tl.store(out + pid * 4 + 2, left + right)
    tl.store(out + pid * 4 + 3, tl.sum(tl.full([4], a, tl.int32), 0))


def binned(x: torch.Tensor, n: int, bins: int) -> torch.Tensor:
    """Counts of rows of 32 in the first n values."""
    kept = x.numpy().copy()
    kept[n:] = -1
    return torch.from_numpy(
        np.stack([np.bincount(r[(r >= 0) & (r < bins)], minlength=bins) for r in kept.reshape(-1, 32)])
    ).int()


I32 = torch.int32
CASES = [
    *(move_case(op) for op in MOVES),
    *(
        Case(
            f"sort_{str(dtype).removeprefix('torch.')}{'_descending' if descending else ''}",
            sort_floats,
            lambda g, dtype=dtype, descending=descending: {
                "x": normal(g, 3, 16, dtype=dtype),
                "out": torch.zeros(3, 16, dtype=dtype),
                "DESCENDING": descending,
                "BLOCK": 16,
            },
            (3,),
            lambda a: {"out": a["x"].float().sort(1, descending=a["DESCENDING"]).values.to(a["x"].dtype)},
        )
        for dtype, descending in (
            (torch.float32, False),
            (torch.float32, True),
            (torch.float16, False),
            (torch.bfloat16, True),
        )
    ),
    Case(
        "histogram_masked",
        count_bins,
        lambda g: {
            "x": integers(g, 0, 12, 128),
            "out": torch.zeros(4, 8, dtype=I32),
            "n": 77,
            "BLOCK": 32,
            "BINS": 8,
        },
        (4,),
        lambda a: {"out": binned(a["x"], 77, 8)},
    ),
    Case(
        "histogram",
        count_bins_unmasked,
        lambda g: {
            "x": integers(g, 0, 16, 128),
            "out": torch.zeros(4, 16, dtype=I32),
            "BLOCK": 32,
            "BINS": 16,
        },
        (4,),
        lambda a: {"out": binned(a["x"], 128, 16)},
    ),
    Case(
        "split_channels",
        split_channels,
        lambda g: {"x": normal(g, 64, 2), "red": torch.zeros(64), "green": torch.zeros(64), "BLOCK": 16},
        (4,),
        lambda a: {"red": a["x"][:, 0], "green": a["x"][:, 1]},
    ),
    Case(
        "outer_product_transposed",
        outer_product,
        lambda g: {"x": normal(g, 3, 4), "y": normal(g, 3, 8), "out": torch.zeros(3, 8, 4), "M": 4, "N": 8},
        (3,),
        lambda a: {"out": a["y"][:, :, None] * a["x"][:, None, :]},
    ),
    Case(
        "scalars_joined_and_split",
        scalar_blocks,
        lambda g: {"x": integers(g, 0, 99, 5, 2), "out": torch.zeros(5, 4, dtype=I32)},
        (5,),
        lambda a: {"out": torch.cat([a["x"] * 10, a["x"].sum(1, True).int(), a["x"][:, :1] * 4], 1)},
    ),
]
