"""Samples of reductions."""

from collections.abc import Callable
from typing import Any

from tests.samples.base import Sample, bools, floats, ints, signed


def _reduction(op: str) -> list[Sample]:
    calls: dict[str, Callable[[Any], Any]] = {
        "all": lambda x: getattr(x, op)(),
        "dim=0": lambda x: getattr(x, op)(dim=0),
        "dim=-1,keepdim": lambda x: getattr(x, op)(dim=-1, keepdim=True),
        "dims": lambda x: getattr(x, op)(dim=(0, 2)),
    }
    samples = [Sample(op, call, (signed(2, 3, 4),), note) for note, call in calls.items()]
    return [
        *samples,
        Sample(op, calls["all"], (floats(),)),
        Sample(op, calls["dim=0"], (floats(),), "scalar"),
    ]


SAMPLES: list[Sample] = [
    *_reduction("sum"),
    Sample("sum", lambda x: x.sum(), (ints(3, dtype="int32"),)),
    Sample("sum", lambda x: x.sum(dim=1), (bools(3, 4),)),
    *_reduction("mean"),
    Sample("mean", lambda x: x.mean(), (floats(0),), "empty"),
]
