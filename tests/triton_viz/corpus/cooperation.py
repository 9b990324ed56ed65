"""Programs that wait for each other, and kernels with an odd signature."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.corpus.case import Arguments, Case, normal


@triton.jit
def split_matmul_under_a_lock(
    a, b, c, locks, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr
):
    tile = tl.program_id(0)
    part = tl.program_id(1)
    across = tl.cdiv(N, BN)
    row = tile // across * BM + tl.arange(0, BM)
    col = tile % across * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(tl.cdiv(K, BK * PARTS)):
        k = (i * PARTS + part) * BK + tl.arange(0, BK)
        x = tl.load(a + row[:, None] * K + k[None, :], (row[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + col[None, :], (k[:, None] < K) & (col[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    at = c + row[:, None] * N + col[None, :]
    inside = (row[:, None] < M) & (col[None, :] < N)
    while tl.atomic_cas(locks + tile, 0, 1) == 1:
        pass
    tl.store(at, tl.load(at, inside) + acc, inside)
    tl.debug_barrier()
    tl.atomic_xchg(locks + tile, 0)


def split_arguments(g: torch.Generator) -> Arguments:
    return {
        "a": normal(g, 40, 70), "b": normal(g, 70, 30), "c": torch.zeros(40, 30),
        "locks": torch.zeros(6, dtype=torch.int32), "M": 40, "N": 30, "K": 70,
        "BM": 16, "BN": 16, "BK": 16, "PARTS": 3,
    }  # fmt: skip


@triton.jit
def streamed_sums(x, out, partial, ready, size, per_program, BLOCK: tl.constexpr):
    """Rows of `size` blocks, cut into equal shares: who begins a row waits for those who go on with it."""
    pid = tl.program_id(0)
    at = pid * per_program
    end = at + per_program
    while at < end:
        row = at // size
        stop = tl.minimum(end, (row + 1) * size)
        acc = 0.0
        for block in range(at, stop):
            acc += tl.sum(tl.load(x + block * BLOCK + tl.arange(0, BLOCK)))
        if at % size != 0:
            tl.store(partial + pid, acc)
            tl.debug_barrier()
            tl.atomic_xchg(ready + pid, 1)
        else:
            reached = stop
            other = pid + 1
            while reached < (row + 1) * size:
                while tl.atomic_cas(ready + other, 1, 1) != 1:
                    pass
                acc += tl.load(partial + other)
                reached += per_program
                other += 1
            tl.store(out + row, acc)
        at = stop


def streamed_arguments(g: torch.Generator) -> Arguments:
    return {
        "x": normal(g, 6 * 7, 8), "out": torch.zeros(6), "partial": torch.zeros(14),
        "ready": torch.zeros(14, dtype=torch.int32), "size": 7, "per_program": 3, "BLOCK": 8,
    }  # fmt: skip


@triton.jit
def last_one_sums(x, out, partial, arrived, size, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial + pid, tl.sum(tl.load(x + at, at < size, other=0.0)))
    tl.debug_barrier()
    if tl.atomic_add(arrived, 1) == tl.num_programs(0) - 1:
        acc = 0.0
        for i in range(tl.num_programs(0)):
            acc += tl.load(partial + i, volatile=True)
        tl.store(out, acc)
        tl.store(arrived, 0)


@triton.jit
def in_turn(out, turn):
    pid = tl.program_id(0)
    while tl.atomic_add(turn, 0) != pid:
        pass
    tl.store(out + pid, tl.load(turn) * 10)
    tl.atomic_add(turn, 1)


@triton.jit
def wide_by_annotation(out, n: tl.int64, m, narrow: tl.uint8):
    pid = tl.program_id(0)
    tl.store(out + pid * 2, (pid + 1) * n * m)
    tl.store(out + pid * 2 + 1, narrow + narrow)


CASES = [
    Case(
        "split_matmul_under_a_lock", split_matmul_under_a_lock, split_arguments, (6, 3),
        lambda a: {"c": a["a"] @ a["b"]}, 1e-4, 1e-4, reorders=True,
    ),
    Case(
        "streamed_sums", streamed_sums, streamed_arguments, (14,),
        lambda a: {"out": a["x"].reshape(6, -1).sum(1)}, 1e-5, 1e-5, reorders=True,
        scratch=("partial", "ready"),
    ),
    Case(
        "last_one_sums", last_one_sums,
        lambda g: {"x": normal(g, 33), "out": torch.zeros(1), "partial": torch.zeros(9),
                   "arrived": torch.zeros(1, dtype=torch.int32), "size": 33, "BLOCK": 4},
        (9,), lambda a: {"out": a["x"].sum()[None]}, 1e-5, 1e-5, scratch=("partial",),
    ),
    Case(
        "in_turn", in_turn,
        lambda g: {"out": torch.zeros(5, dtype=torch.int32), "turn": torch.zeros(1, dtype=torch.int32)},
        (5,), lambda a: {"out": torch.arange(5, dtype=torch.int32) * 10,
                         "turn": torch.tensor([5], dtype=torch.int32)},
    ),
    Case(
        "wide_by_annotation", wide_by_annotation,
        lambda g: {"out": torch.zeros(4, dtype=torch.int64), "n": 2**20, "m": 2**20, "narrow": 200},
        (2,), lambda a: {"out": torch.tensor([2**40, 144, 2**41, 144])},
    ),
]  # fmt: skip
