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


@triton.jit
def count(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + at, mask=at < n), 1, mask=at < n)


@triton.jit
def first_wins(lock, out):
    tl.store(out + tl.program_id(0), tl.atomic_cas(lock, 0, 1))


@triton.jit
def copy_by_descriptor(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [16, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [16, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    row = tl.program_id(0) * ROWS
    target.store([row, 0], source.load([row, 0]))


@triton.jit
def copy_described(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(out + rows * COLUMNS + columns, source.load([0, 0]))


@triton.jit
def add_pair(pair, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(pair[0] + at) + tl.load(pair[1] + at))


@triton.jit
def shift(x, out, by, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at + by))


@triton.jit
def choose(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(tl.where(at < 2, x + at, y + at)))


@triton.jit
def read_wide(x, out):
    wide = x.to(tl.pointer_type(tl.int64))
    tl.store(out, tl.load(wide + 1).to(tl.float32))


@triton.jit
def tickets(counter, out, total, x):
    pid = tl.program_id(0)
    ticket = tl.atomic_add(counter, 1)
    tl.store(out + pid, ticket)
    tl.atomic_add(total, tl.load(x + pid))


@triton.jit
def late_ticket(counter, out, n):
    pid = tl.program_id(0)
    tl.store(out + pid, pid)
    if pid >= n:
        tl.store(out + pid, tl.atomic_add(counter, 1) + 1000)


@triton.jit
def endless(x, n):
    at = tl.program_id(0)
    total = tl.load(x + at)
    for _ in range(n):
        total += tl.load(x + at)
    tl.store(x + at, total)


@triton.jit
def scale(x, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) * factor)


@triton.jit
def assembly(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    doubled = tl.inline_asm_elementwise(
        "add.f32 $0, $1, $1;", "=f,f", [value], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(x + at, doubled)


@triton.jit
def follow(pointers, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    source = tl.load(pointers + pid).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(out + pid * BLOCK + at, tl.load(source + at))


tuned = triton.autotune(configs=[triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})], key=[])(scale)
derived = triton.heuristics({"BLOCK": lambda args: args["x"].numel()})(scale)
