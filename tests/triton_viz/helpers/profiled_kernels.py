"""Kernels whose traffic and arithmetic can be computed by hand."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def column_sums(x, out, rows, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    column = tl.program_id(0)
    values = tl.load(x + at * columns + column, mask=at < rows, other=0.0)
    tl.store(out + column, tl.sum(values, axis=0))


@triton.jit
def transposed(x, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + j * N + i, tl.load(x + i * N + j))


@triton.jit
def scale_rows(x, weight, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    mask = at < columns
    w = tl.load(weight + at, mask=mask)
    tl.store(out + row * columns + at, tl.load(x + row * columns + at, mask=mask) * w, mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def softmax_in_passes(x, out, columns, BLOCK: tl.constexpr):
    row = x + tl.program_id(0) * columns
    highest = -float("inf")
    for start in range(0, columns, BLOCK):
        highest = tl.maximum(highest, tl.max(tl.load(row + start + tl.arange(0, BLOCK))))
    total = 0.0
    for start in range(0, columns, BLOCK):
        total += tl.sum(tl.exp(tl.load(row + start + tl.arange(0, BLOCK)) - highest))  # type: ignore[operator]
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out + tl.program_id(0) * columns + at, tl.exp(tl.load(row + at) - highest) / total)


@triton.jit
def matmul(a, b, c, M, N, K, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, K, TILE):
        left = tl.load(a + i * K + k + tl.arange(0, TILE)[None, :])
        right = tl.load(b + (k + tl.arange(0, TILE)[:, None]) * N + j)
        total = tl.dot(left, right, total)
    tl.store(c + i * N + j, total)


@triton.jit
def histogram(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(bins + tl.load(x + at, mask=mask, other=0), 1, mask=mask)


@triton.jit
def triangle(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(row + 1):
        total += tl.load(x + step * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + row * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def same_row_again(x, out, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(5):
        total += tl.load(x + tl.arange(0, BLOCK)) * step
    for step in tl.static_range(3):  # type: ignore[misc]
        total += step
    tl.store(out + tl.arange(0, BLOCK), total)


@triton.jit
def windows(x, out, BLOCK: tl.constexpr):
    """Neighbouring iterations overlap by half a block, and programs by a whole block."""
    first = tl.program_id(0) * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(3):
        total += tl.load(x + first + step * (BLOCK // 2) + tl.arange(0, BLOCK))
    tl.store(out + first + tl.arange(0, BLOCK), total)


@triton.jit
def gather(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + tl.load(index + at, mask=at < n, other=0), mask=at < n), mask=at < n)


@triton.jit
def odd_programs(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) % 2 == 1:
        tl.store(out + at, tl.load(x + at) * 2.0)


@triton.jit
def _mean_combine(mean_a, count_a, mean_b, count_b):
    count = count_a + count_b
    return (mean_a * count_a + mean_b * count_b) / count, count


@triton.jit
def means(x, out, BLOCK: tl.constexpr):
    values = tl.load(x + tl.arange(0, BLOCK))
    mean, _ = tl.reduce((values, tl.full((BLOCK,), 1.0, tl.float32)), 0, _mean_combine)
    tl.store(out, mean)


@triton.jit
def bits_set(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.popc(tl.load(x + at)))
