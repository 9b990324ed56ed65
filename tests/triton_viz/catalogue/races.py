"""Races: programs that write where others read or write. Every marked line takes part."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.catalogue.entry import Bug, Entry, first_axis

I32 = torch.int32


@triton.jit
def no_program_id(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + at)
    tl.store(out + at, v)  # BUG


@triton.jit
def with_program_id(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@triton.jit
def sum_by_load_and_store(x, out, BLOCK: tl.constexpr):
    mine = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    before = tl.load(out)  # BUG
    tl.store(out, before + mine)  # BUG


@triton.jit
def sum_by_atomics(x, out, BLOCK: tl.constexpr):
    mine = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.atomic_add(out, mine)


@triton.jit
def blocks_overlap(x, out, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, v * (1 + tl.program_id(0)), mask=at < n)  # BUG


@triton.jit
def blocks_overlap_but_masked(x, out, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    at = tl.program_id(0) * STEP + j
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, v * (1 + tl.program_id(0)), mask=(at < n) & (j < STEP))


@triton.jit
def count_by_stores(x, bins, BLOCK: tl.constexpr):
    which = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    count = tl.load(bins + which)  # BUG
    tl.store(bins + which, count + 1)  # BUG


@triton.jit
def count_by_atomics(x, bins, BLOCK: tl.constexpr):
    which = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(bins + which, 1)


@triton.jit
def scatter(x, index, out, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, COLUMNS)
    target = tl.load(index + row)
    tl.store(out + target * COLUMNS + at, tl.load(x + row * COLUMNS + at))  # BUG


@triton.jit
def shift_in_place(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at + 1, mask=at + 1 < n)  # BUG
    tl.store(x + at, v, mask=at + 1 < n)  # BUG


@triton.jit
def double_in_place(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def copy_between_views(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)  # BUG
    tl.store(out + at, v, mask=at < n)  # BUG


@triton.jit
def reset_by_the_first(counter, out):
    """Program 0 sets to zero what the others may have counted already."""
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(counter, 0)  # BUG
    tl.store(out + pid, tl.atomic_add(counter, 1))  # BUG


@triton.jit
def counted_from_what_is_there(counter, out):
    pid = tl.program_id(0)
    tl.store(out + pid, tl.atomic_add(counter, 1))


@triton.jit
def look_at_the_count(counter, out):
    """A plain load of what others add to."""
    tl.atomic_add(counter, 1)  # BUG
    tl.store(out + tl.program_id(0), tl.load(counter))  # BUG


@triton.jit
def counted_in_the_scope_of_a_program(counter, out):
    """Such an atomic is none to other programs."""
    pid = tl.program_id(0)
    tl.store(out + pid, 1)
    tl.atomic_add(counter, 1, scope="cta")  # BUG


@triton.jit
def counted_in_the_scope_of_the_system(counter, out):
    pid = tl.program_id(0)
    tl.store(out + pid, 1)
    tl.atomic_add(counter, 1, scope="sys")


@triton.jit
def counted_in_two_widths(narrow, wide):
    """Program 0 adds 8 bytes at once, each other one 4 bytes of them or beside them."""
    pid = tl.program_id(0)
    if pid == 0:
        tl.atomic_add(wide, 1)  # BUG
    else:
        tl.atomic_add(narrow + pid, 1)  # BUG


@triton.jit
def counted_in_two_widths_side_by_side(narrow, wide):
    pid = tl.program_id(0)
    if pid == 0:
        tl.atomic_add(wide, 1)
    else:
        tl.atomic_add(narrow + pid + 1, 1)


@triton.jit
def split_k(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    """Each program of a row has a part of K, and stores its part of the sum."""
    row, part = tl.program_id(0), tl.program_id(1)
    j = tl.arange(0, N)
    at = part * BK + tl.arange(0, BK)
    left = tl.load(a + row * K + at)
    right = tl.load(b + at[:, None] * N + j[None, :])
    total = tl.sum(left[:, None] * right, 0)
    here = c + row * N + j
    tl.store(here, tl.load(here) + total)  # BUG


@triton.jit
def split_k_by_atomics(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    j = tl.arange(0, N)
    at = part * BK + tl.arange(0, BK)
    left = tl.load(a + row * K + at)
    right = tl.load(b + at[:, None] * N + j[None, :])
    tl.atomic_add(c + row * N + j, tl.sum(left[:, None] * right, 0))


@triton.jit
def loop_over_k(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    """Adds to memory in a loop, but each program to its own row."""
    row = tl.program_id(0)
    j = tl.arange(0, N)
    for start in range(0, K, BK):
        at = start + tl.arange(0, BK)
        left = tl.load(a + row * K + at)
        right = tl.load(b + at[:, None] * N + j[None, :])
        here = c + row * N + j
        tl.store(here, tl.load(here) + tl.sum(left[:, None] * right, 0))


@triton.jit
def transpose_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tile = tl.load(x + i * n + j)  # BUG
    tl.store(x + j * n + i, tile)  # BUG


@triton.jit
def transpose_to_another(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + j * n + i, tl.load(x + i * n + j))


@triton.jit
def transpose_pairs_in_place(x, n, BLOCK: tl.constexpr):
    """Programs above the diagonal swap two tiles."""
    if tl.program_id(0) <= tl.program_id(1):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
        j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
        upper, lower = tl.load(x + i * n + j), tl.load(x + j * n + i)
        tl.store(x + i * n + j, lower)
        tl.store(x + j * n + i, upper)


@triton.jit
def bytes_of_words(words, single):
    """Program 0 writes a word, each other one a byte of it or of the next."""
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(words, 7)  # BUG
    else:
        tl.store(single + pid + 2, pid)  # BUG


@triton.jit
def bytes_beside_words(words, single):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(words, 7)
    else:
        tl.store(single + pid + 3, pid)


@triton.jit
def tiles_persistent(x, out, tiles, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Programs take every n-th tile. With a wrong n two of them take the same."""
    for tile in range(tl.program_id(0), tiles, STRIDE):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at) + tl.program_id(0))  # BUG


@triton.jit
def put(out, at, v):
    tl.store(out + at, v)  # BUG


@triton.jit
def rows_by_a_function(x, out, COLUMNS: tl.constexpr):
    """The second axis of the grid is forgotten."""
    row, column = tl.program_id(0), tl.program_id(1)
    put(out, row, tl.load(x + row * COLUMNS + column))


@triton.jit
def set_a_flag(x, flag, BLOCK: tl.constexpr):
    """Programs that find a negative element store a flag: all of them store the same."""
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    if tl.min(v, 0) < 0:
        tl.store(flag, 1)  # BUG


@triton.jit
def say_who(x, flag, BLOCK: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    if tl.min(v, 0) < 0:
        tl.store(flag, tl.program_id(0))  # BUG


@triton.jit
def move_until_empty(x, out, n):
    """Each program walks from its own end, and they meet."""
    pid = tl.program_id(0)
    at = pid * (n - 1)
    steps = 0
    while steps <= n // 2:
        tl.store(out + at, tl.load(x + at) + pid)  # BUG
        at += 1 - 2 * pid
        steps += 1


@triton.jit
def move_until_they_would_meet(x, out, n):
    pid = tl.program_id(0)
    at = pid * (n - 1)
    steps = 0
    while steps < n // 2:
        tl.store(out + at, tl.load(x + at) + pid)
        at += 1 - 2 * pid
        steps += 1


def line(count: int = 64, out: int = 64, **more: int):
    return lambda: {"x": torch.randn(count), "out": torch.zeros(out), "BLOCK": 16, **more}


def binned():
    x = torch.tensor([0, 1, 2, 3, 3, 4, 5, 6], dtype=I32)
    return {"x": x, "bins": torch.zeros(8, dtype=I32), "BLOCK": 4}


def scattered(*index: int):
    return lambda: {
        "x": torch.randn(len(index), 4),
        "index": torch.tensor(index, dtype=I32),
        "out": torch.zeros(8, 4),
        "COLUMNS": 4,
    }


def views(shift: int):
    def arguments():
        memory = torch.randn(32 + shift)
        return {"x": memory[:32], "out": memory[shift:], "n": 32, "BLOCK": 8, "_memory": memory}

    return arguments


def counter(programs: int = 4):
    return lambda: {"counter": torch.zeros(1, dtype=I32), "out": torch.zeros(programs, dtype=I32)}


def two_widths():
    wide = torch.zeros(4, dtype=torch.int64)
    return {"narrow": wide.view(I32), "wide": wide}


def product():
    return {"a": torch.randn(3, 8), "b": torch.randn(8, 4), "c": torch.zeros(3, 4), "K": 8, "N": 4, "BK": 4}


def square(out: bool = False):
    more = {"out": torch.zeros(8, 8)} if out else {}
    return {"x": torch.randn(8, 8), **more, "n": 8, "BLOCK": 4}


def words():
    words = torch.zeros(4, dtype=I32)
    return {"words": words, "single": words.view(torch.int8)}


def persistent(stride: int):
    return lambda: {
        "x": torch.randn(6, 4),
        "out": torch.zeros(6, 4),
        "tiles": 6,
        "STRIDE": stride,
        "BLOCK": 4,
    }


def signs(*negative: int):
    def arguments():
        x = torch.rand(4, 8)
        x[list(negative), 3] = -1.0
        return {"x": x, "flag": torch.zeros(1, dtype=I32), "BLOCK": 8}

    return arguments


def walked(n: int):
    return lambda: {"x": torch.randn(n), "out": torch.zeros(n), "n": n}


FOUR = first_axis(0, 1, 2, 3)
ALL_ROWS = tuple((row, part, 0) for row in range(3) for part in range(2))

ENTRIES = [
    Entry("store_without_program_id", no_program_id, line(), (4,), Bug("race", "out", FOUR)),
    Entry("store_without_program_id_of_one_program", no_program_id, line(16, 16), (1,)),
    Entry("store_with_program_id", with_program_id, line(), (4,)),
    Entry("sum_by_load_and_store", sum_by_load_and_store, line(64, 1), (4,), Bug("race", "out", FOUR)),
    Entry("sum_by_atomics", sum_by_atomics, line(64, 1), (4,)),
    Entry("blocks_overlap", blocks_overlap, line(60, 60, n=60, STEP=15), (4,), Bug("race", "out", FOUR)),
    Entry("blocks_side_by_side", blocks_overlap, line(60, 60, n=60, STEP=16), (4,)),
    Entry("blocks_overlap_behind_a_mask", blocks_overlap_but_masked, line(60, 60, n=60, STEP=15), (4,)),
    Entry("histogram_by_stores", count_by_stores, binned, (2,), Bug("race", "bins", first_axis(0, 1))),
    Entry("histogram_by_atomics", count_by_atomics, binned, (2,)),
    Entry(
        "scatter_to_one_row_twice", scatter, scattered(3, 1, 3, 0), (4,), Bug("race", "out", first_axis(0, 2))
    ),
    Entry("scatter_to_different_rows", scatter, scattered(3, 1, 2, 0), (4,)),
    Entry(
        "shift_in_place",
        shift_in_place,
        lambda: {"x": torch.randn(32), "n": 32, "BLOCK": 8},
        (4,),
        Bug("race", "x", FOUR),
    ),
    Entry(
        "shift_in_place_by_one_program",
        shift_in_place,
        lambda: {"x": torch.randn(32), "n": 32, "BLOCK": 32},
        (1,),
    ),
    Entry("double_in_place", double_in_place, lambda: {"x": torch.randn(30), "n": 30, "BLOCK": 8}, (4,)),
    Entry("views_that_overlap", copy_between_views, views(3), (4,), Bug("race", "out", FOUR)),
    Entry("views_side_by_side", copy_between_views, views(32), (4,)),
    Entry("view_of_itself", copy_between_views, views(0), (4,)),
    Entry("counter_reset_by_the_first", reset_by_the_first, counter(), (4,), Bug("race", "counter", FOUR)),
    Entry("counter_reset_before", counted_from_what_is_there, counter(), (4,)),
    Entry("counter_read_without_an_atomic", look_at_the_count, counter(), (4,), Bug("race", "counter", FOUR)),
    Entry(
        "counter_in_the_scope_of_a_program",
        counted_in_the_scope_of_a_program,
        counter(),
        (4,),
        Bug("race", "counter", FOUR),
    ),
    Entry("counter_in_the_scope_of_the_system", counted_in_the_scope_of_the_system, counter(), (4,)),
    Entry(
        "counter_in_two_widths",
        counted_in_two_widths,
        two_widths,
        (4,),
        Bug("race", "wide", first_axis(0, 1)),
    ),
    Entry("counters_in_two_widths_side_by_side", counted_in_two_widths_side_by_side, two_widths, (4,)),
    Entry("split_sum_by_stores", split_k, product, (3, 2), Bug("race", "c", ALL_ROWS)),
    Entry("split_sum_by_atomics", split_k_by_atomics, product, (3, 2)),
    Entry("sum_in_a_loop", loop_over_k, product, (3,)),
    Entry("transpose_in_place", transpose_in_place, square, (2, 2), Bug("race", "x", ((0, 1, 0), (1, 0, 0)))),
    Entry("transpose_to_another", transpose_to_another, lambda: square(True), (2, 2)),
    Entry("transpose_pairs_in_place", transpose_pairs_in_place, square, (2, 2)),
    Entry("byte_of_a_word", bytes_of_words, words, (4,), Bug("race", "words", first_axis(0, 1))),
    Entry("bytes_beside_a_word", bytes_beside_words, words, (4,)),
    Entry(
        "persistent_with_wrong_stride",
        tiles_persistent,
        persistent(2),
        (3,),
        Bug("race", "out", first_axis(0, 2)),
    ),
    Entry("persistent_with_right_stride", tiles_persistent, persistent(3), (3,)),
    Entry(
        "function_stores_for_a_whole_row",
        rows_by_a_function,
        lambda: {"x": torch.randn(3, 2), "out": torch.zeros(3), "COLUMNS": 2},
        (3, 2),
        Bug("race", "out", ALL_ROWS),
        helper=put,
    ),
    Entry(
        "function_stores_for_one",
        rows_by_a_function,
        lambda: {"x": torch.randn(3, 1), "out": torch.zeros(3), "COLUMNS": 1},
        (3, 1),
    ),
    Entry("flag_set_by_two", set_a_flag, signs(1, 3), (4,), Bug("benign race", "flag", first_axis(1, 3))),
    Entry("flag_set_by_one", set_a_flag, signs(2), (4,)),
    Entry("name_set_by_two", say_who, signs(1, 3), (4,), Bug("race", "flag", first_axis(1, 3))),
    Entry("walks_that_meet", move_until_empty, walked(9), (2,), Bug("race", "out", first_axis(0, 1))),
    Entry("walks_that_do_not_meet", move_until_they_would_meet, walked(8), (2,)),
]
