"""Descriptors that promise more than the tensor has."""

import torch
import triton
import triton.language as tl

from tests.triton_viz.catalogue.entry import Bug, Entry, first_axis

OUT = "out of bounds"


@triton.jit
def tiles(x, out, rows, columns, described, row_stride, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [described, columns], [row_stride, 1], [R, C])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [R, C])
    row = tl.program_id(0) * R
    v = source.load([row, 0])  # BUG
    target.store([row, 0], v * 2)


@triton.jit
def tiles_stored(x, out, rows, columns, described, row_stride, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [R, C])
    target = tl.make_tensor_descriptor(out, [described, columns], [row_stride, 1], [R, C])
    row = tl.program_id(0) * R
    v = source.load([row, 0])
    target.store([row, 0], v * 2)  # BUG


def described(described: int, row_stride: int = 8):
    return lambda: {
        "x": torch.randn(6, 8),
        "out": torch.zeros(6, 8),
        "rows": 6,
        "columns": 8,
        "described": described,
        "row_stride": row_stride,
        "R": 4,
        "C": 8,
    }


ENTRIES = [
    Entry("descriptor_of_too_many_rows", tiles, described(8), (2,), Bug(OUT, "x", first_axis(1))),
    Entry("descriptor_with_longer_rows", tiles, described(6, 12), (2,), Bug(OUT, "x", first_axis(1))),
    Entry(
        "descriptor_stores_too_many_rows", tiles_stored, described(8), (2,), Bug(OUT, "out", first_axis(1))
    ),
    Entry("descriptor_cuts_the_last_tile", tiles, described(6), (2,)),
    Entry("descriptor_of_fewer_rows", tiles, described(5), (2,)),
    Entry("descriptor_stores_inside", tiles_stored, described(6), (3,)),
]
