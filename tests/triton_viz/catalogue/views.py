"""Views: strides that are not the tensor's, transposes, slices, expansions, and pointers of another type."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.catalogue.entry import Bug, Entry, first_axis

OUT = "out of bounds"


@triton.jit
def by_stride(x, out, row_stride, column_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row * row_stride + j * column_stride, mask=j < columns)  # BUG
    tl.store(out + row * columns + j, v, mask=j < columns)


@triton.jit
def as_if_contiguous(x, out, columns, BLOCK: tl.constexpr):
    """Rows one after the other: true of a tensor, not of a view."""
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + j, mask=j < columns)  # BUG
    tl.store(out + row * columns + j, v, mask=j < columns)


@triton.jit
def fill_by_strides(out, row_stride, column_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    tl.store(out + row * row_stride + j * column_stride, row * columns + j, mask=j < columns)  # BUG


@triton.jit
def row_sums_into_view(x, out, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + row * columns + j, mask=j < columns, other=0.0), 0)
    tl.store(out + row * row_stride, total)


@triton.jit
def left_and_right(x, out, n, BLOCK: tl.constexpr):
    """The neighbour of each element: the first has none on its left."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + at - 1, mask=at < n)  # BUG
    tl.store(out + at, left, mask=at < n)


@triton.jit
def left_if_there(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + at - 1, mask=(at < n) & (at > 0), other=0.0)
    tl.store(out + at, left, mask=at < n)


@triton.jit
def one_byte_off(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    skipped = x.to(tl.pointer_type(tl.uint8)) + 2
    v = tl.load(skipped.to(tl.pointer_type(tl.float32)) + at)  # BUG
    tl.store(out + at, v)


@triton.jit
def one_element_off(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    skipped = x.to(tl.pointer_type(tl.uint8)) + 4
    v = tl.load(skipped.to(tl.pointer_type(tl.float32)) + at)
    tl.store(out + at, v)


@triton.jit
def words_from_bytes(x, out, BLOCK: tl.constexpr):
    """Four bytes at once: a quarter as many elements as the tensor has."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x.to(tl.pointer_type(tl.int32)) + at)  # BUG
    tl.store(out + at, v)


@triton.jit
def copy_half(x, out, n, BLOCK: tl.constexpr):
    """Both halves of one memory: past the end of the first one lies the second."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)  # BUG
    tl.store(out + at, v, mask=at < n)


@triton.jit
def copy_half_masked(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


def strided(x: torch.Tensor, row_stride: int, column_stride: int):
    rows, columns = x.shape
    return {
        "x": x,
        "out": torch.zeros(rows, columns),
        "row_stride": row_stride,
        "column_stride": column_stride,
        "columns": columns,
        "BLOCK": 16,
    }


def swapped():
    x = torch.randn(6, 10)
    return strided(x, x.stride(1) * 12, x.stride(0) // 10)


def right():
    x = torch.randn(6, 10)
    return strided(x, x.stride(0), x.stride(1))


def transposed_wrong():
    x = torch.randn(4, 12).T
    return strided(x, x.stride(1), x.stride(0))


def transposed_right():
    x = torch.randn(4, 12).T
    return strided(x, x.stride(0), x.stride(1))


def sliced(contiguous: bool):
    x = torch.randn(5, 12)[:, 3:11]
    x = x.contiguous() if contiguous else x
    return {"x": x, "out": torch.zeros(5, 8), "columns": 8, "BLOCK": 8}


def expanded(expand: bool):
    out = torch.zeros(4, 1).expand(4, 8) if expand else torch.zeros(4, 8)
    row, column = out.stride()
    return {"out": out, "row_stride": row, "column_stride": column, "columns": 8, "BLOCK": 8}


def stepped(step: int):
    out = torch.zeros(4, 16)[:, ::2]
    return {"out": out, "row_stride": 16, "column_stride": step, "columns": 8, "BLOCK": 8}


def halves():
    memory = torch.randn(40)
    return {"x": memory[:20], "out": memory[20:], "n": 20, "BLOCK": 8, "_memory": memory}


ENTRIES = [
    Entry("row_stride_too_long", by_stride, swapped, (6,), Bug(OUT, "x", first_axis(5))),
    Entry("row_stride_right", by_stride, right, (6,)),
    Entry(
        "transpose_with_swapped_strides",
        by_stride,
        transposed_wrong,
        (12,),
        Bug(OUT, "x", first_axis(*range(4, 12))),
    ),
    Entry("transpose_with_its_strides", by_stride, transposed_right, (12,)),
    Entry(
        "slice_taken_for_contiguous",
        as_if_contiguous,
        lambda: sliced(False),
        (5,),
        Bug(OUT, "x", first_axis(1, 2, 4)),
    ),
    Entry("slice_made_contiguous", as_if_contiguous, lambda: sliced(True), (5,)),
    Entry(
        "expanded_row_taken_for_contiguous",
        as_if_contiguous,
        lambda: {"x": torch.randn(1, 8).expand(3, 8), "out": torch.zeros(3, 8), "columns": 8, "BLOCK": 8},
        (3,),
        Bug(OUT, "x", first_axis(1, 2)),
    ),
    Entry(
        "expanded_row_by_its_strides", by_stride, lambda: strided(torch.randn(1, 8).expand(3, 8), 0, 1), (3,)
    ),
    Entry(
        "store_through_an_expanded_view",
        fill_by_strides,
        lambda: expanded(True),
        (4,),
        Bug("broadcast store", "out", first_axis(0, 1, 2, 3)),
    ),
    Entry("store_through_a_whole_tensor", fill_by_strides, lambda: expanded(False), (4,)),
    Entry(
        "one_store_per_row_of_a_column",
        row_sums_into_view,
        lambda: {
            "x": torch.randn(4, 8),
            "out": torch.zeros(4, 3)[:, 1:2],
            "row_stride": 3,
            "columns": 8,
            "BLOCK": 8,
        },
        (4,),
    ),
    Entry(
        "step_of_a_view_forgotten",
        fill_by_strides,
        lambda: stepped(1),
        (4,),
        Bug(OUT, "out", first_axis(0, 1, 2, 3)),
    ),
    Entry("step_of_a_view_kept", fill_by_strides, lambda: stepped(2), (4,)),
    Entry(
        "index_before_the_first",
        left_and_right,
        lambda: {"x": torch.randn(30), "out": torch.zeros(30), "n": 30, "BLOCK": 16},
        (2,),
        Bug(OUT, "x", first_axis(0)),
    ),
    Entry(
        "index_before_a_view",
        left_and_right,
        lambda: {"x": torch.randn(31)[1:], "out": torch.zeros(30), "n": 30, "BLOCK": 16},
        (2,),
        Bug(OUT, "x", first_axis(0)),
    ),
    Entry(
        "left_neighbour_if_there",
        left_if_there,
        lambda: {"x": torch.randn(30), "out": torch.zeros(30), "n": 30, "BLOCK": 16},
        (2,),
    ),
    Entry(
        "half_an_element_off",
        one_byte_off,
        lambda: {"x": torch.randn(33), "out": torch.zeros(32), "BLOCK": 16},
        (2,),
        Bug("misaligned", "x", first_axis(0, 1)),
    ),
    Entry(
        "an_element_off",
        one_element_off,
        lambda: {"x": torch.randn(33), "out": torch.zeros(32), "BLOCK": 16},
        (2,),
    ),
    Entry(
        "words_beyond_bytes",
        words_from_bytes,
        lambda: {
            "x": torch.zeros(64, dtype=torch.uint8),
            "out": torch.zeros(64, dtype=torch.int32),
            "BLOCK": 8,
        },
        (4,),
        Bug(OUT, "x", first_axis(2, 3)),
    ),
    Entry(
        "words_of_bytes",
        words_from_bytes,
        lambda: {
            "x": torch.zeros(64, dtype=torch.uint8),
            "out": torch.zeros(16, dtype=torch.int32),
            "BLOCK": 8,
        },
        (2,),
    ),
    Entry("into_the_other_half", copy_half, halves, (3,), Bug(OUT, "x", first_axis(2))),
    Entry("each_half_for_itself", copy_half_masked, halves, (3,)),
]
