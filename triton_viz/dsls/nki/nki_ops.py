"""The functions with which `nki.language` and `nki.isa` implement instructions."""

from triton_viz.dsls.nki.moves import atomic, copy, define, load, load_transposed, store, undefined_of
from triton_viz.dsls.nki.products import matmul, transpose
from triton_viz.dsls.nki.tensor import as_value
from triton_viz.dsls.nki.tile_arithmetic import apply, dropout, elementwise, reduce_tile, reduced, select
from triton_viz.dsls.nki.tiles import (
    Operand,
    PartitionDim,
    aligned,
    allocate,
    as_mask,
    computing,
    either,
    finish,
    free_elements,
    masked,
    new_tile,
    operand,
    result_dtype,
    whole_or_none,
)

__all__ = [
    "Operand",
    "PartitionDim",
    "aligned",
    "allocate",
    "apply",
    "as_mask",
    "as_value",
    "atomic",
    "computing",
    "copy",
    "define",
    "dropout",
    "either",
    "elementwise",
    "finish",
    "free_elements",
    "load",
    "load_transposed",
    "masked",
    "matmul",
    "new_tile",
    "operand",
    "reduce_tile",
    "reduced",
    "result_dtype",
    "select",
    "store",
    "transpose",
    "undefined_of",
    "whole_or_none",
]
