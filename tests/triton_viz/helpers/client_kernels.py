"""Kernels for testing clients: loops, atomics, and programs that have to run again."""

import triton
import triton.language as tl


@triton.jit
def counted(x, out, n):
    i = tl.program_id(0)
    total = 0.0
    for k in range(n):
        total += tl.load(x + k)
    tl.store(out + i, total)


@triton.jit
def outside(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at + 1) + tl.load(y + at))  # one element too far


@triton.jit
def nested(x, out):
    i = tl.program_id(0)
    total = 0.0
    for a in range(2):
        for b in range(3):
            total += tl.load(x + a * 3 + b)
    tl.store(out + i, total)


@triton.jit
def until_done(out):
    i = tl.program_id(0)
    k = 0
    while k < i:
        k += 1
    tl.store(out + i, k)


@triton.jit
def as_often_as_its_number(x, out):
    i = tl.program_id(0)
    total = 0.0
    for k in range(i):
        total += tl.load(x + k)
    tl.store(out + i, total)


@triton.jit
def sum_until(x, out, n):
    total = 0.0
    for k in range(n):
        total += tl.load(x + k)
        if total > 5.0:
            return
    tl.store(out, total)


@triton.jit
def update_then_count(x, tickets, total):
    i = tl.program_id(0)
    tl.store(x + i, tl.load(x + i) + 1)
    tl.store(tickets + i, tl.atomic_add(total, 1))


@triton.jit
def update_in_groups(x, sizes, out):
    i = tl.program_id(0)
    tl.store(x + i, tl.load(x + i) + 1)
    values = [tl.load(x + i)] * int(tl.load(sizes + i))  # a length that Python needs: groups run apart
    total = 0.0
    for value in values:
        total += value
    tl.store(out + i, total)


@triton.jit
def softened(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.exp(tl.load(x + at)))


@triton.jit
def one_of_each(x, total, SIDE: tl.constexpr):
    at = tl.arange(0, SIDE)
    tile = tl.load(x + at[:, None] * SIDE + at[None, :])
    tile = tl.cumsum(tl.dot(tile, tile), axis=0)
    tl.store(x + at, tl.sum(tile, axis=0))
    tl.atomic_add(total, 1.0)
