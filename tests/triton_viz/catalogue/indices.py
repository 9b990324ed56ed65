"""Indices that come from memory, from reductions or from arithmetic that wraps."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.catalogue.entry import Bug, Entry, first_axis

OUT = "out of bounds"
I32 = torch.int32


@triton.jit
def gather_rows(table, index, out, COLUMNS: tl.constexpr):
    at = tl.arange(0, COLUMNS)
    row = tl.load(index + tl.program_id(0))
    v = tl.load(table + row * COLUMNS + at)  # BUG
    tl.store(out + tl.program_id(0) * COLUMNS + at, v)


@triton.jit
def gather_rows_that_count(table, index, out, COLUMNS: tl.constexpr):
    """A negative index stands for no row."""
    at = tl.arange(0, COLUMNS)
    row = tl.load(index + tl.program_id(0))
    v = tl.load(table + row * COLUMNS + at, mask=row >= 0, other=0.0)
    tl.store(out + tl.program_id(0) * COLUMNS + at, v)


@triton.jit
def element_beside_the_largest(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    best = tl.argmax(v, 0)
    tl.store(out + row, tl.load(x + row * BLOCK + best + 1))  # BUG


@triton.jit
def the_largest_element(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    best = tl.argmax(v, 0)
    tl.store(out + row, tl.load(x + row * BLOCK + best))


@triton.jit
def compact(x, out, BLOCK: tl.constexpr):
    """Positive numbers moved to the front: a running count says where to, and it counts from one."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * BLOCK + at)
    place = tl.cumsum((v > 0).to(tl.int32), 0)
    tl.store(out + row * BLOCK + place, v, mask=v > 0)  # BUG


@triton.jit
def compact_from_zero(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * BLOCK + at)
    place = tl.cumsum((v > 0).to(tl.int32), 0) - 1
    tl.store(out + row * BLOCK + place, v, mask=v > 0)


@triton.jit
def count_bins(x, bins, low, high, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """The largest value falls into a bin behind the last one."""
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    which = ((v - low) / (high - low) * BINS).to(tl.int32)
    tl.atomic_add(bins + which, 1)  # BUG


@triton.jit
def count_bins_to_the_end(x, bins, low, high, BINS: tl.constexpr, BLOCK: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    which = ((v - low) / (high - low) * BINS).to(tl.int32)
    tl.atomic_add(bins + tl.minimum(which, BINS - 1), 1)


@triton.jit
def clamp_to_the_size(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + tl.minimum(at + 3, n))  # BUG
    tl.store(out + at, v, mask=at < n)


@triton.jit
def clamp_to_the_last(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + tl.minimum(at + 3, n - 1))
    tl.store(out + at, v, mask=at < n)


@triton.jit
def resize(x, out, scale, n, BLOCK: tl.constexpr):
    """Nearest neighbours with 16 bits behind the point: 32768 times 65536 is too much for 32 bits."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    source = (at * scale) >> 16
    tl.store(out + at, tl.load(x + source, mask=at < n), mask=at < n)  # BUG


@triton.jit
def resize_with_more_bits(x, out, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    source = (at.to(tl.int64) * scale) >> 16
    tl.store(out + at, tl.load(x + source, mask=at < n), mask=at < n)


@triton.jit
def short_numbers(x, rows, widths, out):
    """Both are 16 bits wide, and so is their product."""
    pid = tl.program_id(0)
    start = tl.load(rows + pid) * tl.load(widths + pid)
    tl.store(out + pid, tl.load(x + start))  # BUG


@triton.jit
def short_numbers_widened(x, rows, widths, out):
    pid = tl.program_id(0)
    start = tl.load(rows + pid).to(tl.int32) * tl.load(widths + pid)
    tl.store(out + pid, tl.load(x + start))


@triton.jit
def from_pointers(table, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    source = tl.load(table + pid).to(tl.pointer_type(tl.float32))
    v = tl.load(source + at)  # BUG
    tl.store(out + pid * BLOCK + at, v)


@triton.jit
def from_pointers_that_are(table, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    address = tl.load(table + pid)
    v = tl.load(address.to(tl.pointer_type(tl.float32)) + at, mask=address != 0, other=0.0)
    tl.store(out + pid * BLOCK + at, v)


@triton.jit
def swizzled_copy(
    x, out, TILES_M: tl.constexpr, TILES_N: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    """Tiles in groups of rows. The last group may have fewer rows, which is forgotten."""
    pid = tl.program_id(0)
    in_group = GROUP * TILES_N
    first = pid // in_group * GROUP
    m = first + pid % in_group % GROUP
    n = pid % in_group // GROUP
    at = (m * TILES_N + n) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + pid * BLOCK + tl.arange(0, BLOCK), tl.load(x + at))  # BUG


@triton.jit
def swizzled_copy_to_the_end(
    x, out, TILES_M: tl.constexpr, TILES_N: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    pid = tl.program_id(0)
    in_group = GROUP * TILES_N
    first = pid // in_group * GROUP
    rows = min(TILES_M - first, GROUP)
    m = first + pid % in_group % rows
    n = pid % in_group // rows
    at = (m * TILES_N + n) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))


@triton.jit
def last_of_each_row(x, lengths, out, BLOCK: tl.constexpr):
    """How long a row is comes from a sum; the last element of an empty row is before the row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    length = tl.sum(tl.load(lengths + row * BLOCK + at), 0)
    tl.store(out + row, tl.load(x + row * BLOCK + length))  # BUG


@triton.jit
def last_of_each_row_counted_from_zero(x, lengths, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    length = tl.sum(tl.load(lengths + row * BLOCK + at), 0)
    tl.store(out + row, tl.load(x + row * BLOCK + tl.maximum(length - 1, 0)))


def rows_at(*index: int):
    return lambda: {
        "table": torch.randn(5, 8),
        "index": torch.tensor(index, dtype=I32),
        "out": torch.zeros(len(index), 8),
        "COLUMNS": 8,
    }


def peaks(*places: int):
    def arguments():
        x = torch.rand(len(places), 8)
        x[torch.arange(len(places)), torch.tensor(places)] = 2.0
        return {"x": x, "out": torch.zeros(len(places)), "BLOCK": 8}

    return arguments


def positives(*counts: int):
    def arguments():
        x = torch.where(torch.arange(8) >= 8 - torch.tensor(counts)[:, None], 1.0, -1.0)
        return {"x": x, "out": torch.zeros(len(counts), 8), "BLOCK": 8}

    return arguments


def binned():
    x = torch.linspace(0, 0.99, 32).reshape(2, 16)
    x[1, 5] = 1.0
    return {"x": x, "bins": torch.zeros(10, dtype=I32), "low": 0.0, "high": 1.0, "BINS": 10, "BLOCK": 16}


def clamped():
    return {"x": torch.randn(32), "out": torch.zeros(32), "n": 32, "BLOCK": 16}


def resized(n: int):
    return lambda: {"x": torch.randn(n), "out": torch.zeros(n), "scale": 65536, "n": n, "BLOCK": 1024}


def shorts():
    return {
        "x": torch.randn(40001),
        "rows": torch.tensor([3, 180, 200, 1], dtype=torch.int16),
        "widths": torch.tensor([200, 180, 200, 7], dtype=torch.int16),
        "out": torch.zeros(4),
    }


def pointers():
    rows = [torch.randn(8) for _ in range(3)]
    table = torch.tensor([rows[0].data_ptr(), 0, rows[2].data_ptr()], dtype=torch.int64)
    return {"table": table, "out": torch.zeros(3, 8), "BLOCK": 8, "_rows": rows}


def tiled():
    return {
        "x": torch.randn(5 * 3, 4),
        "out": torch.zeros(5 * 3, 4),
        "TILES_M": 5,
        "TILES_N": 3,
        "GROUP": 2,
        "BLOCK": 4,
    }


def counted():
    lengths = (torch.arange(8) < torch.tensor([[3], [8], [0], [8]])).int()
    return {"x": torch.randn(4, 8), "lengths": lengths, "out": torch.zeros(4), "BLOCK": 8}


ENTRIES = [
    Entry(
        "gather_beyond_the_table", gather_rows, rows_at(0, 4, 5, 2), (4,), Bug(OUT, "table", first_axis(2))
    ),
    Entry(
        "gather_with_ignored_index",
        gather_rows,
        rows_at(0, -1, 3, -100),
        (4,),
        Bug(OUT, "table", first_axis(1, 3)),
    ),
    Entry("gather_inside_the_table", gather_rows, rows_at(0, 4, 4, 2), (4,)),
    Entry("gather_with_ignored_index_masked", gather_rows_that_count, rows_at(0, -1, 3, -100), (4,)),
    Entry(
        "beside_the_argmax", element_beside_the_largest, peaks(0, 3, 5, 7), (4,), Bug(OUT, "x", first_axis(3))
    ),
    Entry("beside_an_argmax_that_is_not_last", element_beside_the_largest, peaks(0, 3, 5, 6), (4,)),
    Entry("at_the_argmax", the_largest_element, peaks(0, 3, 5, 7), (4,)),
    Entry("compaction_counts_from_one", compact, positives(2, 3, 8), (3,), Bug(OUT, "out", first_axis(2))),
    Entry("compaction_counts_from_zero", compact_from_zero, positives(2, 3, 8), (3,)),
    Entry("largest_value_in_no_bin", count_bins, binned, (2,), Bug(OUT, "bins", first_axis(1))),
    Entry("largest_value_in_the_last_bin", count_bins_to_the_end, binned, (2,)),
    Entry("clamped_to_the_size", clamp_to_the_size, clamped, (2,), Bug(OUT, "x", first_axis(1))),
    Entry("clamped_to_the_last", clamp_to_the_last, clamped, (2,)),
    Entry("fixed_point_wraps", resize, resized(34000), (34,), Bug("overflow", "x", first_axis(32, 33))),
    Entry("fixed_point_fits", resize, resized(32000), (32,)),
    Entry("fixed_point_with_more_bits", resize_with_more_bits, resized(34000), (34,)),
    Entry("short_numbers_wrap", short_numbers, shorts, (4,), Bug("overflow", "x", first_axis(2))),
    Entry("short_numbers_widened", short_numbers_widened, shorts, (4,)),
    Entry(
        "null_in_a_table_of_pointers", from_pointers, pointers, (3,), Bug("null pointer", "", first_axis(1))
    ),
    Entry("null_in_a_table_left_out", from_pointers_that_are, pointers, (3,)),
    Entry("swizzle_forgets_the_last_group", swizzled_copy, tiled, (15,), Bug(OUT, "x", first_axis(13))),
    Entry("swizzle_to_the_end", swizzled_copy_to_the_end, tiled, (15,)),
    Entry("length_taken_for_an_index", last_of_each_row, counted, (4,), Bug(OUT, "x", first_axis(3))),
    Entry("length_less_one", last_of_each_row_counted_from_zero, counted, (4,)),
]
