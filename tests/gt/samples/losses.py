"""Samples of losses, through both libraries' `nn.functional`."""

from typing import Any

import numpy as np
import torch

import gt
from tests.gt.samples.base import Sample, floats, ints, signed


def of(x: Any) -> Any:
    """The `nn.functional` that belongs to a tensor."""
    return torch.nn.functional if isinstance(x, torch.Tensor) else gt.nn.functional


def share(*shape: int) -> np.ndarray:
    return (floats(*shape) / 2.1).astype("float32")


def slope(name: str, **attrs: Any) -> Any:
    """The gradient by the input: on GT's tensors the row that computes it, on PyTorch's its own tape."""

    def call(g: Any, x: Any, y: Any) -> Any:
        if isinstance(x, gt.Tensor):
            return g._apply(f"{name}_grad", x, y, **attrs)
        x = x.clone().requires_grad_()
        return torch.autograd.grad(getattr(of(x), name)(x, y, **attrs), x, g)[0]

    return call


def bce_slope(p: Any, y: Any) -> Any:
    if isinstance(p, gt.Tensor):
        return p._apply("binary_cross_entropy_grad", y)
    return slope("binary_cross_entropy", reduction="sum")(torch.tensor(1.0), p, y)


CLASSES = [((4, 8), (4,)), ((8,), ()), ((2, 8, 3), (2, 3)), ((2, 8, 3, 2), (2, 3, 2))]

SAMPLES: list[Sample] = [
    *(
        Sample(
            name,
            lambda x, y, name=name, reduction=reduction: getattr(of(x), name)(x, y, reduction=reduction),
            (signed(*shape), ints(*labels)),
            reduction,
        )
        for name in ("cross_entropy", "nll_loss")
        for shape, labels in CLASSES
        for reduction in ("mean", "sum", "none")
    ),
    *(
        Sample(
            name,
            lambda x, y, w, name=name: getattr(of(x), name)(x, y, w.detach(), ignore_index=3),
            (signed(*shape), ints(*labels), floats(8)),
            "weighted",
        )
        for name in ("cross_entropy", "nll_loss")
        for shape, labels in CLASSES[::2]
    ),
    *(
        Sample(
            "cross_entropy",
            lambda x, y, w, reduction=reduction: of(x).cross_entropy(
                x, y, w.detach(), label_smoothing=0.2, ignore_index=3, reduction=reduction
            ),
            (signed(2, 8, 3), ints(2, 3), floats(8)),
            f"smooth-{reduction}",
        )
        for reduction in ("mean", "sum", "none")
    ),
    *(
        Sample(
            name,
            lambda x, y, name=name, reduction=reduction: getattr(of(x), name)(x, y, reduction=reduction),
            (share(3, 2), share(3, 2)[::-1].copy()),
            reduction,
        )
        for name in ("mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")
        for reduction in ("mean", "sum", "none")
    ),
    Sample(
        "cross_entropy_grad",
        slope("cross_entropy", reduction="mean", ignore_index=-1, label_smoothing=0.1),
        (floats(), signed(4, 8), ints(4)),
    ),
    Sample(
        "nll_loss_grad",
        slope("nll_loss", reduction="mean", ignore_index=-1),
        (floats(), signed(4, 8), ints(4)),
    ),
    Sample("binary_cross_entropy_grad", bce_slope, (share(5), share(5)[::-1].copy())),
]
