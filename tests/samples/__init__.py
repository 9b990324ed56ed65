"""Calls of every op in the table, for the tests that compare GT with PyTorch."""

from tests.samples import (
    activations,
    convolution,
    elementwise,
    indexing,
    logic,
    losses,
    normalization,
    products,
    reductions,
    shaping,
    training,
)
from tests.samples.base import Sample

GROUPS = (
    *(elementwise, logic, activations, reductions, shaping, indexing, products),
    *(convolution, normalization, losses, training),
)

SAMPLES: list[Sample] = [sample for group in GROUPS for sample in group.SAMPLES]
"""Ops over tensors. Ops that make a tensor out of nothing, and casts, have tests of their own."""
