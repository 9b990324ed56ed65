"""Samples of optimizer updates and dropout. PyTorch has no such functions: the formula stands in for it."""

from collections.abc import Callable
from typing import Any

import gt
from tests.gt.samples.base import Sample, floats, signed


def _row(op: str, formula: Callable[..., Any], **attrs: float) -> Callable[..., Any]:
    """The row on GT's tensors, the formula on PyTorch's."""

    def call(*tensors: Any) -> Any:
        first, *others = tensors
        return first._apply(op, *others, **attrs) if isinstance(first, gt.Tensor) else formula(*tensors)

    return call


SAMPLES: list[Sample] = [
    Sample(
        "weighted_sum",
        _row("weighted_sum", lambda x, y: x * 0.9 + y * 0.1, x_scale=0.9, y_scale=0.1),
        (floats(3, 2), signed(3, 2)),
    ),
    Sample(
        "weighted_sum",
        _row("weighted_sum", lambda x, y: x - y * 0.5, x_scale=1.0, y_scale=-0.5),
        (floats(0, 2), signed(0, 2)),
    ),
    Sample(
        "average_of_squares",
        _row("average_of_squares", lambda v, g: v * 0.99 + g * g * (1 - 0.99), decay=0.99),
        (floats(4), signed(4)),
    ),
    Sample(
        "adaptive_step",
        _row(
            "adaptive_step",
            lambda x, m, v: x * 0.5 - 0.1 * m / (v.sqrt() / 0.3 + 1e-3),
            rate=0.1,
            shrink=0.5,
            correction=0.3,
            eps=1e-3,
        ),
        (signed(4), signed(4), floats(4)),
    ),
    *(
        Sample(
            "total_norm",
            _row(
                "total_norm",
                lambda *xs, order=order: xs[0].new_tensor([x.norm(order) for x in xs]).norm(order),
                order=order,
            ),
            (signed(4), signed(2, 3), floats(1)),
            str(order),
        )
        for order in (1.0, 2.0, float("inf"))
    ),
    # Which elements are dropped is tested with the layer; here that the others stay.
    Sample("dropout", _row("dropout", lambda x: x * 1, p=0.0, seed=1), (signed(4),)),
    Sample("dropout_mask", _row("dropout_mask", lambda x: x == x, p=0.0, seed=1), (signed(4),)),
]
