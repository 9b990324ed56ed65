"""Samples of normalization."""

from tests.gt.samples.base import Sample, floats, signed
from tests.gt.samples.libraries import F, gradient

SAMPLES: list[Sample] = [
    Sample("layer_norm", lambda x: F(x).layer_norm(x, (4,)), (signed(2, 3, 4),)),
    Sample("layer_norm", lambda x, w: F(x).layer_norm(x, (4,), w, eps=1e-3), (signed(3, 4), floats(4))),
    Sample(
        "layer_norm",
        lambda x, w, b: F(x).layer_norm(x, (3, 4), w, b),
        (signed(2, 3, 4), floats(3, 4), signed(3, 4)),
    ),
    Sample("layer_norm", lambda x, b: F(x).layer_norm(x, (4,), bias=b), (signed(4), floats(4)), "bias only"),
    Sample("layer_norm_grad", gradient(lambda x: F(x).layer_norm(x, (4,))), (signed(3, 4),)),
    Sample("layer_norm", lambda x, w: F(x).rms_norm(x, (4,), w), (signed(3, 4), floats(4)), "rms_norm"),
    Sample("layer_norm", lambda x: F(x).rms_norm(x, (3, 4), eps=1e-3), (signed(2, 3, 4),), "rms_norm"),
]
