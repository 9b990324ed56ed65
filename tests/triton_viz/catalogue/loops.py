"""Loops that run once too often, walk without looking, or call functions that do."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.catalogue.entry import Bug, Entry, first_axis

OUT = "out of bounds"
I32 = torch.int32


@triton.jit
def sum_with_one_step_more(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, n + BLOCK, BLOCK):
        total += tl.load(x + row * n + k + tl.arange(0, BLOCK))  # BUG
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def sum_in_steps(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, n, BLOCK):
        total += tl.load(x + row * n + k + tl.arange(0, BLOCK))
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def matmul_with_tail(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    """The last step of the inner loop reaches past K; only one operand is masked."""
    row = tl.program_id(0)
    j, k = tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros([N], tl.float32)
    for start in range(tl.cdiv(K, BK)):
        at = start * BK + k
        left = tl.load(a + row * K + at, mask=at < K, other=0.0)
        right = tl.load(b + at[:, None] * N + j[None, :])  # BUG
        total += tl.sum(left[:, None] * right, 0)
    tl.store(c + row * N + j, total)


@triton.jit
def matmul_with_masked_tail(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0)
    j, k = tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros([N], tl.float32)
    for start in range(tl.cdiv(K, BK)):
        at = start * BK + k
        left = tl.load(a + row * K + at, mask=at < K, other=0.0)
        right = tl.load(b + at[:, None] * N + j[None, :], mask=at[:, None] < K, other=0.0)
        total += tl.sum(left[:, None] * right, 0)
    tl.store(c + row * N + j, total)


@triton.jit
def pointer_that_walks(x, out, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """The pointer is moved on before it is read."""
    row = tl.program_id(0)
    here = x + row * STEPS * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(STEPS):
        here += BLOCK
        total += tl.load(here)  # BUG
    tl.store(out + row * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def pointer_that_walks_after(x, out, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    here = x + row * STEPS * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(STEPS):
        total += tl.load(here)
        here += BLOCK
    tl.store(out + row * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def search(keys, wanted, out, n):
    """A binary search that may end behind the last key, and looks there."""
    pid = tl.program_id(0)
    target = tl.load(wanted + pid)
    low = 0
    high = n
    while low < high:
        middle = (low + high) // 2
        if tl.load(keys + middle) < target:
            low = middle + 1
        else:
            high = middle
    tl.store(out + pid, tl.load(keys + low))  # BUG


@triton.jit
def search_and_look_inside(keys, wanted, out, n):
    pid = tl.program_id(0)
    target = tl.load(wanted + pid)
    low = 0
    high = n
    while low < high:
        middle = (low + high) // 2
        if tl.load(keys + middle) < target:
            low = middle + 1
        else:
            high = middle
    if low < n:
        tl.store(out + pid, tl.load(keys + low))


@triton.jit
def follow(following, out, start):
    """A list whose end is marked by -1; one step is taken too many."""
    node = tl.load(start + tl.program_id(0))
    count = 0
    while node != -2:
        count += 1
        node = tl.load(following + node)  # BUG
        if count > 9:
            node = -2
    tl.store(out + tl.program_id(0), count)


@triton.jit
def follow_to_the_end(following, out, start):
    node = tl.load(start + tl.program_id(0))
    count = 0
    while node != -1:
        count += 1
        node = tl.load(following + node)
    tl.store(out + tl.program_id(0), count)


@triton.jit
def sparse_row(values, begins, out, rows, BLOCK: tl.constexpr):
    """Each row's length is the difference of two entries: of rows + 1 there are."""
    row = tl.program_id(0)
    begin = tl.load(begins + row)
    end = tl.load(begins + row + 1)  # BUG
    total = 0.0
    for k in range(begin, end):
        total += tl.load(values + k)
    tl.store(out + row, total)


@triton.jit
def read_pair(x, at, n):
    first = tl.load(x + at, mask=at < n, other=0.0)
    second = tl.load(x + at + 1, mask=at < n, other=0.0)  # BUG
    return first + second


@triton.jit
def pairs(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, read_pair(x, at, n), mask=at < n)


@triton.jit
def read_pair_inside(x, at, n):
    first = tl.load(x + at, mask=at < n, other=0.0)
    second = tl.load(x + at + 1, mask=at + 1 < n, other=0.0)
    return first + second


@triton.jit
def pairs_inside(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, read_pair_inside(x, at, n), mask=at < n)


@triton.jit
def smooth(x, out, n, RADIUS: tl.constexpr, BLOCK: tl.constexpr):
    """A window around each element, of which only the right end is watched."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for shift in tl.static_range(-RADIUS, RADIUS + 1):
        total += tl.load(x + at + shift, mask=at + shift < n, other=0.0)  # BUG
    tl.store(out + at, total, mask=at < n)


@triton.jit
def smooth_inside(x, out, n, RADIUS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for shift in tl.static_range(-RADIUS, RADIUS + 1):
        inside = (at + shift >= 0) & (at + shift < n)
        total += tl.load(x + at + shift, mask=inside, other=0.0)
    tl.store(out + at, total, mask=at < n)


def summed(n: int):
    return lambda: {"x": torch.randn(3, n), "out": torch.zeros(3), "n": n, "BLOCK": 8}


def product():
    return {
        "a": torch.randn(3, 10),
        "b": torch.randn(10, 4),
        "c": torch.zeros(3, 4),
        "K": 10,
        "N": 4,
        "BK": 4,
    }


def walked():
    return {"x": torch.randn(3, 5, 8), "out": torch.zeros(3, 8), "STEPS": 5, "BLOCK": 8}


def searched(*wanted: int):
    keys = torch.arange(0, 20, 2, dtype=I32)
    return lambda: {
        "keys": keys.clone(),
        "wanted": torch.tensor(wanted, dtype=I32),
        "out": torch.zeros(len(wanted), dtype=I32),
        "n": 10,
    }


def linked():
    following = torch.tensor([3, -1, 1, 2], dtype=I32)
    return {
        "following": following,
        "out": torch.zeros(3, dtype=I32),
        "start": torch.tensor([0, 2, 1], dtype=I32),
    }


def sparse(rows: int):
    begins = torch.tensor([0, 2, 2, 5, 6, 9], dtype=I32)[: rows + 1]
    return lambda: {
        "values": torch.randn(9),
        "begins": begins.clone(),
        "out": torch.zeros(5),
        "rows": rows,
        "BLOCK": 4,
    }


def in_line(**more: int):
    return lambda: {"x": torch.randn(30), "out": torch.zeros(30), "n": 30, "BLOCK": 16, **more}


ENTRIES = [
    Entry("loop_runs_once_more", sum_with_one_step_more, summed(16), (3,), Bug(OUT, "x", first_axis(2))),
    Entry("loop_runs_as_often_as_needed", sum_in_steps, summed(16), (3,)),
    Entry("tail_of_a_product", matmul_with_tail, product, (3,), Bug(OUT, "b", first_axis(0, 1, 2))),
    Entry("tail_of_a_product_masked", matmul_with_masked_tail, product, (3,)),
    Entry("pointer_moved_before_the_load", pointer_that_walks, walked, (3,), Bug(OUT, "x", first_axis(2))),
    Entry("pointer_moved_after_the_load", pointer_that_walks_after, walked, (3,)),
    Entry(
        "search_ends_behind_the_keys", search, searched(3, 18, 19, 0), (4,), Bug(OUT, "keys", first_axis(2))
    ),
    Entry("search_ends_inside_the_keys", search, searched(3, 18, 17, 0), (4,)),
    Entry("search_looks_only_inside", search_and_look_inside, searched(3, 18, 19, 0), (4,)),
    Entry("list_followed_past_its_end", follow, linked, (3,), Bug(OUT, "following", first_axis(0, 1, 2))),
    Entry("list_followed_to_its_end", follow_to_the_end, linked, (3,)),
    Entry("row_beyond_the_row_pointers", sparse_row, sparse(4), (5,), Bug(OUT, "begins", first_axis(4))),
    Entry("rows_of_a_sparse_matrix", sparse_row, sparse(5), (5,)),
    Entry(
        "function_reads_one_further", pairs, in_line(), (2,), Bug(OUT, "x", first_axis(1)), helper=read_pair
    ),
    Entry("function_reads_inside", pairs_inside, in_line(), (2,)),
    Entry("window_reaches_before_the_first", smooth, in_line(RADIUS=2), (2,), Bug(OUT, "x", first_axis(0))),
    Entry("window_inside", smooth_inside, in_line(RADIUS=2), (2,)),
]
