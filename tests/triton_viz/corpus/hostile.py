"""Kernels for `test_hostile_kernels.py`: wild pointers, endless loops, odd ways to be called."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """Adds."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def doubled(v):
    return v * 2


@triton.jit
def with_everything(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    if tl.program_id(0) > 0:
        v = v + tl.sum(v)
    for _ in range(2):
        v += tl.load(x + at)
    tl.store(out + at, doubled(v))


@triton.jit
def any_number_of_tensors(out, *xs, BLOCK: tl.constexpr = 4):
    at = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(len(xs)):
        acc += tl.load(xs[i] + at)
    tl.store(out + at, acc)


@triton.jit
def by_position_only(x, out, /, factor, *, BLOCK: tl.constexpr = 4):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * factor)


@triton.jit
def load_from(x, offset, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + offset + at))


@triton.jit
def load_one(x, offset, out, BLOCK: tl.constexpr):
    tl.store(out, tl.load(x + offset))


@triton.jit
def load_some(x, offset, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + offset + at, mask=at % 2 == 1))


@triton.jit
def store_to(x, offset, out, BLOCK: tl.constexpr):
    tl.store(x + offset + tl.arange(0, BLOCK), 1.0)


@triton.jit
def add_atomically(x, offset, out, BLOCK: tl.constexpr):
    tl.atomic_add(x + offset + tl.arange(0, BLOCK), 1.0)


@triton.jit
def load_described(x, offset, out, BLOCK: tl.constexpr):
    described = tl.make_tensor_descriptor(x + offset, [4, 4], [4, 1], [4, 4])
    row = tl.arange(0, 4)
    tl.store(out + row[:, None] * 4 + row[None, :], described.load([0, 0]))


@triton.jit
def far_apart(x, offset, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at.to(tl.int64) * offset))


@triton.jit
def follow(table, out, BLOCK: tl.constexpr):
    x = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + at, tl.load(x + at))


@triton.jit
def count_then_part(x, count, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)
    if int(pid % 3) == 1:  # programs part here
        old = tl.atomic_add(count, 1)
        tl.store(x + at, tl.load(x + at) + old * 10)


@triton.jit
def wrong_in_one(out, WRONG: tl.constexpr):
    pid = tl.program_id(0)
    if pid == WRONG:
        tl.arange(0, 5)
    tl.store(out + pid, 1.0)


@triton.jit
def two_ways(a, b):
    if a > b:
        return a
    tl.arange(0, 3)
    return b


@triton.jit
def wrong_in_a_combination(x, out, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), tl.reduce(tl.load(x + tl.arange(0, BLOCK)), 0, two_ways))


@triton.jit
def endless(x, out):
    while tl.load(x) > 0:
        pass
    tl.store(out, 1.0)


@triton.jit
def wait_for_each_other(flags):
    pid = tl.program_id(0)
    while tl.atomic_cas(flags + 1 - pid, 1, 1) != 1:
        pass
    tl.atomic_xchg(flags + pid, 1)
