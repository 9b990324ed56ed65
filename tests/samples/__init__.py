"""Calls of every op in the table, for the tests that compare GT with PyTorch."""

from tests.samples import elementwise, indexing, products, reductions, shaping
from tests.samples.base import Sample

SAMPLES: list[Sample] = [
    sample for group in (elementwise, reductions, shaping, indexing, products) for sample in group.SAMPLES
]
"""Ops over tensors. Ops that make a tensor out of nothing, and casts, have tests of their own."""
