"""Samples of shape ops."""

from tests.samples.base import Sample, floats

SAMPLES: list[Sample] = [
    Sample("transpose", lambda x: x.T, (floats(3, 4),)),
    Sample("transpose", lambda x: x.transpose(0, -1), (floats(2, 3, 4),)),
    Sample("transpose", lambda x: x.transpose(0, 0), (floats(),), "scalar"),
    Sample("reshape", lambda x: x.reshape(2, -1), (floats(3, 4),)),
    Sample("reshape", lambda x: x.reshape((12,)), (floats(3, 4),), "tuple"),
    Sample("reshape", lambda x: x.view(1), (floats(),), "view"),
    Sample("expand", lambda x: x.expand(3, 4), (floats(3, 1),)),
    Sample("expand", lambda x: x.expand((2, -1, 4)), (floats(3, 1),), "tuple"),
]
