"""Kernels for the tests of the sanitizer: control flow, values from data, and pointers from anywhere."""

import triton
import triton.language as tl

# ------------------------------------------------------------------------------------------ control flow


@triton.jit
def only_program(x, n, WHICH: tl.constexpr):
    pid = tl.program_id(0)
    if pid == WHICH:
        tl.store(x + n + pid, 1)


@triton.jit
def early_return(x, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    tl.store(x + pid, pid)


@triton.jit
def early_return_too_late(x, n):
    pid = tl.program_id(0)
    if pid > n:
        return
    tl.store(x + pid, pid)


@triton.jit
def while_there_is_more(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    total = 0
    while at < n:
        total += tl.load(x + at)
        at += tl.num_programs(0) * BLOCK
    tl.store(out + tl.program_id(0), total)


@triton.jit
def swizzled(x, rows, columns, GROUP: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), rows, columns, GROUP)
    tl.store(x + i * columns + j, i * 100 + j)


@triton.jit
def grouped(x, rows, columns, GROUP: tl.constexpr):
    """Programs in groups of rows, the order of a matmul."""
    pid = tl.program_id(0)
    per_group = GROUP * columns
    first = pid // per_group * GROUP
    size = min(rows - first, GROUP)
    i = first + pid % per_group % size
    j = pid % per_group // size
    tl.store(x + i * columns + j, pid)


@triton.jit
def clamped(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + tl.maximum(at - 1, 0), mask=at < n)
    right = tl.load(x + tl.minimum(at + 1, n - 1))
    tl.store(out + at, left + right, mask=at < n)


@triton.jit
def at_two(p, q):
    return tl.load(p) + tl.load(q)


@triton.jit
def helper_twice_on_a_line(x, y, out, n):
    pid = tl.program_id(0)
    tl.store(out + pid, at_two(x + pid, y + pid) + at_two(y + pid, x + pid + n))


@triton.jit
def static_range(x, out, COUNT: tl.constexpr, STEP: tl.constexpr):
    total = 0
    for i in tl.static_range(0, COUNT):  # type: ignore[misc]
        total += tl.load(x + tl.program_id(0) * COUNT + i * STEP)
    tl.store(out + tl.program_id(0), total)


@triton.jit
def nested_loops_that_carry_pointers(x, out, rows, columns, row_stride):
    row = x
    total = 0
    for _ in range(rows):
        at = row
        for _ in range(columns):
            total += tl.load(at)
            at += 1
        row += row_stride
    tl.store(out, total)


@triton.jit
def place_in_three_axes(x, ny, nz):
    i, j, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(x + (i * ny + j) * nz + k, 1)


# ---------------------------------------------------------------------------------------- values from data


@triton.jit
def at_argmax(x, y, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    best = tl.argmax(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(out + pid, tl.load(y + best))


@triton.jit
def at_sum(x, y, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.sum(tl.load(x + pid * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(out + pid, tl.load(y + at))


@triton.jit
def at_scan(x, out, BLOCK: tl.constexpr):
    """Store the nonzero elements contiguously."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    keep = v != 0
    tl.store(out + tl.cumsum(keep.to(tl.int32), 0) - 1, v, mask=keep)


@triton.jit
def at_histogram(x, out, table, BLOCK: tl.constexpr, BINS: tl.constexpr):
    counts = tl.histogram(tl.load(x + tl.arange(0, BLOCK)), BINS)
    tl.store(out + tl.arange(0, BINS), tl.load(table + counts))


@triton.jit
def at_random(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = (tl.rand(7, tl.program_id(0) * BLOCK + i) * n).to(tl.int32)
    tl.store(out + tl.program_id(0) * BLOCK + i, tl.load(x + at))


@triton.jit
def gathered(x, index, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


@triton.jit
def remainder_of_data(x, index, out, n):
    pid = tl.program_id(0)
    tl.store(out + pid, tl.load(x + tl.abs(tl.load(index + pid)) % n))


@triton.jit
def ticket(counter, out):
    """Each program takes a number."""
    tl.store(out + tl.atomic_add(counter, 1), tl.program_id(0))


@triton.jit
def count(bins, index, n):
    pid = tl.program_id(0)
    tl.atomic_add(bins + tl.load(index + pid), 1, mask=pid < n)


@triton.jit
def hashed(x, out, n):
    pid = tl.program_id(0)
    seed = pid * 1103515245 + 12345
    seed = seed * 1103515245 + 12345
    tl.store(out + pid, tl.load(x + (seed & 15)) + tl.load(x + tl.abs(seed % n)))


@triton.jit
def hashed_data(x, index, out, n):
    pid = tl.program_id(0)
    seed = tl.load(index + pid) * 1103515245 + 12345
    tl.store(out + pid, tl.load(x + (seed & 15)) + tl.load(x + tl.abs(seed % n)))


@triton.jit
def product_too_large(x, stride):
    pid = tl.program_id(0)
    tl.store(x + pid * stride, 1)


@triton.jit
def product_of_data_too_large(x, rows, stride):
    row = tl.load(rows + tl.program_id(0))
    tl.store(x + row * stride, 1)


# -------------------------------------------------------------------------------------------------- pointers


@triton.jit
def through_table(table, out):
    pid = tl.program_id(0)
    p = tl.load(table + pid).to(tl.pointer_type(tl.float32))
    tl.store(out + pid, tl.load(p))


@triton.jit
def through_table_if_there(table, out):
    pid = tl.program_id(0)
    address = tl.load(table + pid)
    if address != 0:
        tl.store(out + pid, tl.load(address.to(tl.pointer_type(tl.float32))))


@triton.jit
def at_address(address, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(address.to(tl.pointer_type(tl.float32)) + i))


@triton.jit
def at_distance(x, out, distance):
    tl.store(out, tl.load(x + distance))


@triton.jit
def bytes_as_floats(x, out, shift):
    p = (x.to(tl.pointer_type(tl.int8)) + shift).to(tl.pointer_type(tl.float32))
    tl.store(out, tl.load(p))


@triton.jit
def from_one_of_two(x, y, which, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pid = tl.program_id(0)
    p = x if pid % 2 == 0 else y
    tl.store(out + pid * BLOCK + i, tl.load(p + tl.load(which + i), mask=i < n))


@triton.jit
def to_one_of_two(x, y, n):
    pid = tl.program_id(0)
    if pid % 2 == 0:
        p = x
    else:
        p = y
    tl.store(p + pid, pid, mask=pid < n)


@triton.jit
def sum_of_two(pair, out):
    pid = tl.program_id(0)
    tl.store(out + pid, tl.load(pair[0] + pid) + tl.load(pair[1] + pid))


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def copy_without_mask(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at), mask=at < n)


@triton.jit
def copy_by_descriptor(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])  # type: ignore[arg-type]
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [M, N])  # type: ignore[arg-type]
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    target.store([i, j], source.load([i, j]))


@triton.jit
def store_by_strides(x, row_stride, column_stride, columns, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    tl.store(x + tl.program_id(0) * row_stride + j * column_stride, j, mask=j < columns)


@triton.jit
def transpose_in_place(x, out, n):
    i, j = tl.program_id(0), tl.program_id(1)
    tl.store(out + j * n + i, tl.load(x + i * n + j))


@triton.jit
def asserting(x):
    tl.device_assert(tl.program_id(0) < 2, "only two")
    tl.store(x + tl.program_id(0), 1)


@triton.jit
def adds_one(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.jit
def asserting_ones(x):
    tl.device_assert(tl.load(x + tl.program_id(0)) == 1, "only ones")


@triton.jit
def half_from_each(x, y, out, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(tl.where(i < m, x + i, y + i - m)))


@triton.jit
def plus(x, y):
    if x > y:
        return x - y
    return x + y


@triton.jit
def break_either_way(out):
    pid = tl.program_id(0)
    a = 0
    for _ in range(4):
        if plus(0, pid) > 0:
            a += pid
            break
        else:  # noqa: RET508 - that each side leaves is the point
            break
    tl.store(out + pid, a)
