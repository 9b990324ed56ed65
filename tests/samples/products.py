"""Samples of matrix products and the like."""

from tests.samples.base import Sample, floats, ints

SAMPLES: list[Sample] = [
    Sample("matmul", lambda a, b: a @ b, (floats(3, 4), floats(4, 2))),
    Sample("matmul", lambda a, b: a @ b, (floats(0, 4), floats(4, 2))),
    Sample("matmul", lambda a, b: a @ b, (ints(2, 2), ints(2, 2))),
]
