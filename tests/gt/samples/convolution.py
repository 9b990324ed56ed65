"""Samples of convolution and pooling."""

from typing import Any

from tests.gt.samples.base import Sample, floats, signed
from tests.gt.samples.libraries import F, gradient


def _conv(
    note: str, x: tuple[int, ...], weight: tuple[int, ...], bias: bool = False, **settings: Any
) -> Sample:
    arrays = (signed(*x), floats(*weight), *([floats(weight[0])] if bias else []))
    name = "conv2d" if len(weight) == 4 else "conv1d"
    return Sample("conv2d", lambda *inputs: getattr(F(inputs[0]), name)(*inputs, **settings), arrays, note)


def _pool(name: str, note: str, x: tuple[int, ...], *settings: Any) -> Sample:
    return Sample(name, lambda x: getattr(F(x), name)(x, *settings), (signed(*x),), note)


SAMPLES: list[Sample] = [
    _conv("plain", (2, 2, 5, 6), (3, 2, 2, 3)),
    _conv("bias", (2, 2, 5, 6), (3, 2, 2, 3), bias=True),
    _conv("strided", (1, 2, 6, 6), (3, 2, 2, 2), stride=(2, 3), padding=1),
    _conv("dilated", (1, 1, 6, 6), (1, 1, 2, 2), dilation=2, padding=(0, 1)),
    _conv("grouped", (1, 4, 4, 4), (6, 2, 2, 2), bias=True, groups=2),
    _conv("depthwise", (1, 3, 4, 4), (3, 1, 3, 3), groups=3, padding=1),
    _conv("same", (1, 1, 4, 4), (1, 1, 3, 3), padding="same"),
    _conv("valid", (1, 1, 4, 4), (1, 1, 3, 3), padding="valid"),
    _conv("one image", (2, 4, 4), (3, 2, 2, 2), bias=True),
    _conv("sequence", (2, 2, 6), (3, 2, 3), bias=True, padding=1, stride=2),
    Sample(
        "conv2d_input_grad",
        gradient(lambda x, w: F(x).conv2d(x, w, stride=2)),
        (signed(1, 1, 4, 5), floats(2, 1, 2, 2)),
    ),
    Sample(
        "conv2d_weight_grad",
        gradient(lambda x, w: F(x).conv2d(x, w, stride=2), 1),
        (signed(1, 1, 4, 5), floats(2, 1, 2, 2)),
    ),
    _pool("max_pool2d", "plain", (2, 3, 4, 6), 2),
    _pool("max_pool2d", "overlapping", (1, 1, 5, 5), 3, 1, 1),
    _pool("max_pool2d", "dilated", (1, 1, 6, 6), 2, (2, 1), 1, 2),
    _pool("max_pool2d", "one image", (2, 4, 4), (2, 3)),
    Sample("max_pool2d_indices", gradient(lambda x: F(x).max_pool2d(x, 3, 2, 1)), (signed(1, 2, 5, 5),)),
    _pool("avg_pool2d", "plain", (2, 3, 4, 6), 2),
    _pool("avg_pool2d", "overlapping", (1, 1, 5, 5), 3, 2, 1),
    Sample("avg_pool2d_grad", gradient(lambda x: F(x).avg_pool2d(x, 3, 2, 1)), (signed(1, 2, 5, 5),)),
    _pool("adaptive_avg_pool2d", "even", (1, 2, 4, 6), (2, 3))._replace(op="avg_pool2d"),
    _pool("adaptive_avg_pool2d", "one", (1, 2, 4, 6), 1)._replace(op="avg_pool2d"),
    _pool("adaptive_avg_pool2d", "uneven", (1, 2, 5, 7), (2, 3))._replace(op="avg_pool2d"),
]
