"""Masks that are missing, too long, or along the wrong axis; grids that are too large."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.catalogue.entry import Bug, Entry, first_axis

OUT = "out of bounds"


@triton.jit
def load_without_mask(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)  # BUG
    tl.store(out + at, v * 2, mask=at < n)


@triton.jit
def store_without_mask(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, v * 2)  # BUG


@triton.jit
def both_masked(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, v * 2, mask=at < n)


@triton.jit
def one_too_many(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at <= n)  # BUG
    tl.store(out + at, v, mask=at < n)


@triton.jit
def up_to_the_last(x, out, last, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at <= last), mask=at <= last)


@triton.jit
def rows_masked_only(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    at = i * columns + j
    inside = (i < rows) & (j < columns)
    v = tl.load(x + at, mask=i < rows)  # BUG
    tl.store(out + at, v, mask=inside)


@triton.jit
def rows_and_columns_masked(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    at = i * columns + j
    inside = (i < rows) & (j < columns)
    tl.store(out + at, tl.load(x + at, mask=inside), mask=inside)


@triton.jit
def other_axis_masked(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + j, mask=j < rows)  # BUG
    tl.store(out + row * columns + j, v, mask=j < columns)


@triton.jit
def own_axis_masked(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + j, mask=j < columns)
    tl.store(out + row * columns + j, v, mask=j < columns)


@triton.jit
def row_for_each_program(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + j, mask=j < columns)  # BUG
    tl.store(out + row * columns + j, v, mask=j < columns)


@triton.jit
def returns_one_late(x, out, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if row > rows:
        return
    at = row * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))  # BUG


@triton.jit
def returns_in_time(x, out, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if row >= rows:
        return
    at = row * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@triton.jit
def guarded_wrongly(x, out, n, BLOCK: tl.constexpr):
    """The last program goes without a mask, all others with one that they do not need."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    if pid == tl.num_programs(0) - 1:
        tl.store(out + at, tl.load(x + at), mask=at < n)  # BUG
    else:
        tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def guarded_rightly(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    if pid != tl.num_programs(0) - 1:
        tl.store(out + at, tl.load(x + at))
    else:
        tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def add_without_mask(x, out, n, BLOCK: tl.constexpr):
    """An atomic reaches too far as well."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(out + at, v)  # BUG


@triton.jit
def add_with_mask(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(out + at, v, mask=at < n)


def line(n: int = 50):
    return lambda: {"x": torch.randn(n), "out": torch.zeros(n), "n": n, "BLOCK": 16}


def table(rows: int, columns: int, **more: int):
    return lambda: {
        "x": torch.randn(rows, columns),
        "out": torch.zeros(rows, columns),
        "rows": rows,
        "columns": columns,
        **more,
    }


def single(rows: int):
    return lambda: {"x": torch.randn(rows, 8), "out": torch.zeros(rows + 1, 8), "rows": rows, "BLOCK": 8}


def short(columns: int):
    return lambda: {
        "x": torch.randn(4, columns),
        "out": torch.zeros(6, columns),
        "columns": columns,
        "BLOCK": 8,
    }


ENTRIES = [
    Entry("load_without_mask", load_without_mask, line(), (4,), Bug(OUT, "x", first_axis(3))),
    Entry("load_without_mask_but_whole_blocks", load_without_mask, line(64), (4,)),
    Entry("store_without_mask", store_without_mask, line(), (4,), Bug(OUT, "out", first_axis(3))),
    Entry("both_masked", both_masked, line(), (4,)),
    Entry("both_masked_and_grid_too_large", both_masked, line(), (9,)),
    Entry("mask_one_too_long", one_too_many, line(), (4,), Bug(OUT, "x", first_axis(3))),
    Entry(
        "mask_up_to_the_last",
        up_to_the_last,
        lambda: {"x": torch.randn(50), "out": torch.zeros(50), "last": 49, "BLOCK": 16},
        (4,),
    ),
    Entry(
        "rows_masked_only",
        rows_masked_only,
        table(6, 5, ROWS=4, COLUMNS=8),
        (2,),
        Bug(OUT, "x", first_axis(1)),
    ),
    Entry("rows_and_columns_masked", rows_and_columns_masked, table(6, 5, ROWS=4, COLUMNS=8), (2,)),
    Entry("other_axis_masked", other_axis_masked, table(7, 5, BLOCK=8), (7,), Bug(OUT, "x", first_axis(6))),
    Entry("own_axis_masked", own_axis_masked, table(7, 5, BLOCK=8), (7,)),
    Entry("grid_too_large", row_for_each_program, short(6), (6,), Bug(OUT, "x", first_axis(4, 5))),
    Entry("grid_just_right", row_for_each_program, short(6), (4,)),
    Entry("returns_one_late", returns_one_late, single(5), (8,), Bug(OUT, "x", first_axis(5))),
    Entry("returns_in_time", returns_in_time, single(5), (8,)),
    Entry("guarded_wrongly", guarded_wrongly, line(), (4,), Bug(OUT, "x", first_axis(3))),
    Entry("guarded_rightly", guarded_rightly, line(), (4,)),
    Entry("atomic_without_mask", add_without_mask, line(), (4,), Bug(OUT, "out", first_axis(3))),
    Entry("atomic_with_mask", add_with_mask, line(), (4,)),
]
