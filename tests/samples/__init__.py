"""Calls of every op in the table, for the tests that compare GT with PyTorch."""

from tests.samples import elementwise, indexing, losses, products, reductions, shaping, training
from tests.samples.base import Sample

SAMPLES: list[Sample] = [
    sample
    for group in (elementwise, reductions, shaping, indexing, products, losses, training)
    for sample in group.SAMPLES
]
"""Ops over tensors. Ops that make a tensor out of nothing, and casts, have tests of their own."""
