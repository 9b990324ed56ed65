"""Calls of every op in the table, for the tests that compare GT with PyTorch."""

from tests.samples import (
    activations,
    convolution,
    elementwise,
    indexing,
    logic,
    normalization,
    products,
    reductions,
    shaping,
)
from tests.samples.base import Sample

GROUPS = (
    *(elementwise, logic, activations, reductions, shaping, indexing, products, convolution, normalization),
)

SAMPLES: list[Sample] = [sample for group in GROUPS for sample in group.SAMPLES]
"""Ops over tensors. Ops that make a tensor out of nothing, and casts, have tests of their own."""
