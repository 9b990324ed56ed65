"""Small Triton kernels that several tests trace."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def add_unmasked(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))


@triton.jit
def square(x):
    return x * x


@triton.jit
def load_row(x, row, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    return tl.load(x + row * columns + at, mask=at < columns, other=0.0)


@triton.jit
def row_norm(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    values = load_row(x, row, columns, BLOCK)
    tl.store(out + row, tl.sqrt(tl.sum(square(values), axis=0)))


@triton.jit
def copy_strided(x, out, stride_row, stride_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(out + rows * COLUMNS + columns, tl.load(x + rows * stride_row + columns * stride_column))


@triton.jit
def raises(x, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    tl.static_assert(BLOCK == 3, "BLOCK is three")
    tl.store(x + tl.arange(0, BLOCK), value)
