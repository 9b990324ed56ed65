# type: ignore - Triton's language is not quite Python's
"""Kernels for the symbolic engine: some are in bounds, the others have violations."""

import triton
import triton.language as tl


@triton.jit
def masked_copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def copy_without_mask(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, value, mask=at < n)


@triton.jit
def mask_off_by_one(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at <= n), mask=at < n)


@triton.jit
def before_the_start(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) - 1
    tl.store(out + at, 1, mask=at < n)


@triton.jit
def shifted_window(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + at - 1, mask=(at >= 1) & (at < n), other=0)
    right = tl.load(x + at + 1, mask=at + 1 < n, other=0)
    tl.store(out + at, left + right, mask=at < n)


@triton.jit
def clamped(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    nearest = tl.minimum(tl.maximum(at - 2, 0), n - 1)
    tl.store(out + at, tl.load(x + nearest), mask=at < n)


@triton.jit
def wrapped_index(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at % n), mask=at < n)


@triton.jit
def wrapped_one_too_far(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at % (n + 1)), mask=at < n)


@triton.jit
def first_program_only(x, out, n, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))


@triton.jit
def wrong_program_only(x, out, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    if program == 7:
        tl.store(out + at, 1)
    else:
        tl.store(out + at, 1, mask=at < n)


@triton.jit
def early_return(x, out, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if start + BLOCK > n:
        return
    tl.store(out + start + tl.arange(0, BLOCK), 1)


@triton.jit
def row_of(program, n, BLOCK: tl.constexpr):
    if program * BLOCK >= n:
        return 0
    return program * BLOCK


@triton.jit
def through_a_call(x, out, n, BLOCK: tl.constexpr):
    at = row_of(tl.program_id(0), n, BLOCK) + tl.arange(0, BLOCK)
    tl.store(out + at, 1, mask=at < n)


@triton.jit
def strided_loop(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pointers = x + at
    for start in range(0, n, BLOCK):
        value = tl.load(pointers, mask=at < n - start)
        tl.store(out + start + at, value, mask=start + at < n)
        pointers += BLOCK


@triton.jit
def loop_without_mask(x, out, n, BLOCK: tl.constexpr):
    pointers = x + tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        value = tl.load(pointers)
        tl.store(out + start + tl.arange(0, BLOCK), value, mask=start + tl.arange(0, BLOCK) < n)
        pointers += BLOCK


@triton.jit
def persistent(x, out, n, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def last_of_a_loop(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0)
    for i in range(n // 2):
        at += 2 - i // n
    tl.store(out + at, i)


@triton.jit
def counting_while(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0)
    while at < n:
        tl.store(out + at, 1)
        at += tl.num_programs(0)


@triton.jit
def while_one_too_far(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0)
    while at <= n:
        tl.store(out + at, 1)
        at += tl.num_programs(0)


@triton.jit
def halving_while(x, out, n, BLOCK: tl.constexpr):
    step = BLOCK
    while step > 0:
        tl.store(out + step - 1, 1)
        step = step // 2


@triton.jit
def break_at_the_end(x, out, n, BLOCK: tl.constexpr):
    for i in range(2 * n):
        if i >= n:
            break
        tl.store(out + i, 1)


@triton.jit
def skipping_loop(x, out, n, BLOCK: tl.constexpr):
    for i in range(2 * n):
        if i >= n:
            continue
        tl.store(out + i, 1)


@triton.jit
def two_steps_in_turn(x, out, n, BLOCK: tl.constexpr):
    at, ahead = 0, 1
    for _ in range(n - 1):
        tl.store(out + at, 1)
        at, ahead = ahead, ahead + 1


@triton.jit
def squares(x, out, n, BLOCK: tl.constexpr):
    at = 0
    for i in range(6):
        at += i
        tl.store(out + at, 1, mask=at < n)
        tl.load(x + at)


@triton.jit
def unrolled(x, out, n, BLOCK: tl.constexpr):
    for i in tl.static_range(8):
        if i < 4:
            tl.store(out + i * BLOCK + tl.arange(0, BLOCK), 1)


@triton.jit
def either_tensor(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(0) % 2 == 0:
        pointers = x + at
    else:
        pointers = out + at
    tl.store(pointers, 1, mask=at < n)


@triton.jit
def gather(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(x + at, mask=at < n, other=0)
    tl.store(out + index, 1, mask=at < n)


@triton.jit
def guarded_gather(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(x + at, mask=at < n, other=0)
    tl.store(out + index, 1, mask=(index >= 0) & (index < n))


@triton.jit
def argmax_index(x, out, n, BLOCK: tl.constexpr):
    best = tl.argmax(tl.load(x + tl.arange(0, BLOCK)), axis=0)
    tl.store(out + best, 1)


@triton.jit
def sum_of_bits(x, out, n, BLOCK: tl.constexpr):
    many = tl.sum((tl.load(x + tl.arange(0, BLOCK)) > 0).to(tl.int32), axis=0)
    tl.store(out + many, 1)


@triton.jit
def float_in_the_way(x, out, n, BLOCK: tl.constexpr):
    at = (tl.program_id(0) * 0.5).to(tl.int32)
    tl.store(out + at, 1)


@triton.jit
def no_single_number(x, out, n, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), 1, mask=tl.program_id(0) < n)
    pair = (x, out)
    tl.store(pair[int(tl.program_id(0)) % 2], 1)


@triton.jit
def raises(x, out, n, BLOCK: tl.constexpr):
    tl.store(out, 1)
    tl.static_assert(BLOCK < 0, "never")


@triton.jit
def transposed(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(tile), mask=tl.trans(mask))


@triton.jit
def transposed_with_the_wrong_mask(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(tile), mask=mask)


@triton.jit
def reshaped(x, out, n, BLOCK: tl.constexpr):
    at = tl.reshape(tl.arange(0, 4 * BLOCK), (4, BLOCK))
    pairs = tl.join(at, at + 4 * BLOCK)
    tl.store(out + tl.reshape(pairs, (8 * BLOCK,)), 1)


@triton.jit
def product(a, b, c, m, n, k, TILE: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    rows, columns = tl.cdiv(m, TILE), tl.cdiv(n, TILE)
    in_group = GROUP * columns
    first_row = program // in_group * GROUP
    height = min(rows - first_row, GROUP)
    row = first_row + program % in_group % height
    column = program % in_group // height
    at_m = row * TILE + tl.arange(0, TILE)
    at_n = column * TILE + tl.arange(0, TILE)
    at_k = tl.arange(0, TILE)
    left = a + (at_m % m)[:, None] * k + at_k[None, :]
    right = b + at_k[:, None] * n + (at_n % n)[None, :]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for step in range(tl.cdiv(k, TILE)):
        inside = at_k < k - step * TILE
        total += tl.dot(
            tl.load(left, mask=inside[None, :], other=0.0), tl.load(right, mask=inside[:, None], other=0.0)
        )
        left += TILE
        right += TILE * n
    tl.store(c + at_m[:, None] * n + at_n[None, :], total, mask=(at_m[:, None] < m) & (at_n[None, :] < n))


@triton.jit
def far_row(x, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(x + row * stride + tl.arange(0, BLOCK), 1)


@triton.jit
def far_row_in_64_bits(x, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tl.store(x + row * stride + tl.arange(0, BLOCK), 1)


@triton.jit
def described(x, out, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    tile = source.load([tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK], tile)


@triton.jit
def three_axes(out, BLOCK: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
    tl.atomic_add(out + at * BLOCK + tl.arange(0, BLOCK), 1)


@triton.jit
def from_a_tuple(both, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(both[1] + at, tl.load(both[0] + at, mask=at < n), mask=at < n)


@triton.jit
def put(pointers, mask):
    tl.store(pointers, 1, mask=mask)


@triton.jit
def store_in_a_call(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    put(out + at, at < n)
