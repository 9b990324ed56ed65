"""Samples of activations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import gt
from tests.gt.samples.base import BFLOAT16, Sample, floats, ints, signed


def _f(name: str, **options: Any) -> Callable[[Any], Any]:
    """PyTorch has most activations as functions only; GT has them as methods too."""

    def call(x: Any) -> Any:
        if isinstance(x, gt.Tensor):
            return getattr(x, name)(**options)
        return getattr(torch.nn.functional, name)(x, **options)

    return call


_CALLS: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("relu", "", _f("relu")),
    ("sigmoid", "", _f("sigmoid")),
    ("hardtanh", "", _f("hardtanh")),
    ("hardtanh", "bounds", _f("hardtanh", min_val=-0.5, max_val=0.25)),
    ("hardtanh", "relu6", _f("relu6")),
    ("hardtanh", "hardsigmoid", _f("hardsigmoid")),
    ("hardtanh", "hardswish", _f("hardswish")),
    ("leaky_relu", "", _f("leaky_relu")),
    ("leaky_relu", "slope", _f("leaky_relu", negative_slope=0.2)),
    ("elu", "", _f("elu")),
    ("elu", "alpha", _f("elu", alpha=0.5)),
    ("elu", "selu", _f("selu")),
    ("gelu", "", _f("gelu")),
    ("gelu", "tanh", _f("gelu", approximate="tanh")),
    ("silu", "", _f("silu")),
    ("softplus", "", _f("softplus")),
    ("softplus", "beta", _f("softplus", beta=2.0, threshold=1.0)),
    ("softplus", "logsigmoid", _f("logsigmoid")),
    ("softplus", "mish", _f("mish")),
    ("abs", "softsign", _f("softsign")),
    ("softmax", "dim=0", _f("softmax", dim=0)),
    ("softmax", "dim=-1", _f("softmax", dim=-1)),
    ("softmax", "softmin", _f("softmin", dim=1)),
    ("log_softmax", "dim=0", _f("log_softmax", dim=0)),
    ("log_softmax", "dim=-1", _f("log_softmax", dim=-1)),
]

_ONCE = {op: (note, call) for op, note, call in _CALLS}
_WIDE = np.array([-60, -20, 0, 20, 60], "float32")

SAMPLES: list[Sample] = [
    *(Sample(op, call, (signed(3, 4),), note) for op, note, call in _CALLS),
    *(
        Sample(op, call, (_WIDE.reshape(1, 5),), f"far out {note}", op not in ("hardtanh", "abs"))
        for op, note, call in _CALLS
    ),
    *(
        Sample(op, call, (signed(2, 3, dtype=BFLOAT16),), f"bfloat16 {note}")
        for op, (note, call) in _ONCE.items()
        if op != "abs"
    ),
    Sample("relu", _f("relu"), (ints(3) - 3,)),
    Sample("sigmoid", _f("sigmoid"), (ints(3),)),
    Sample("hardtanh", _f("hardtanh", min_val=0, max_val=2), (ints(3),)),
    Sample("hardtanh", _f("hardtanh"), (np.array([-1, 0, 1], "float32"),), "at its bounds"),
    Sample("relu", _f("relu"), (np.array([-1, 0, 1], "float32"),), "at 0"),
    Sample("softmax", _f("softmax", dim=0), (floats(),), "scalar"),
    Sample("softmax", _f("softmax", dim=1), (floats(0, 3),), "empty"),
    Sample("log_softmax", _f("log_softmax", dim=0), (floats(),), "scalar"),
    Sample("softmax", lambda x: x.softmax(0).float(), (floats(3),), "method"),
]
