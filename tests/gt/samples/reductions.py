"""Samples of reductions, besides those that are made from their rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gt.ops import TABLE
from tests.gt.samples.base import BFLOAT16, Sample, bools, floats, ints, signed
from tests.gt.samples.generated import reduction


def _calls(op: str, array: np.ndarray, **calls: Callable[[Any], Any]) -> list[Sample]:
    return [Sample(op, call, (array,), note) for note, call in calls.items()]


TIES = np.array([[1, 3, 3], [2, 2, 2]], "float32")
WITH_ZEROS = np.array([[2, 0, 3], [0, 0, 1], [1, 2, 4]], "float32")
_INFINITE = np.array([[-np.inf, -np.inf], [0, 1], [-np.inf, 3]], "float32")

SAMPLES: list[Sample] = [
    Sample("sum", lambda x: x.sum(), (ints(3, dtype="int32"),)),
    Sample("sum", lambda x: x.sum(dim=1), (bools(3, 4),)),
    Sample("sum", lambda x: x.sum((0, 1)), (floats(3, 4, dtype=BFLOAT16),)),
    Sample("sum", lambda x: x.sum(0, True), (ints(3, dtype="uint8"),)),
    Sample("mean", lambda x: x.mean(), (floats(0),), "empty"),
    Sample("mean", lambda x: x.mean(-1), (floats(3, 4, dtype="float16"),)),
    Sample("ne", lambda x: (x - 2).count_nonzero(), (ints(3, 4),), "count_nonzero"),
    Sample("ne", lambda x: x.count_nonzero(dim=1), (bools(3, 4),), "count_nonzero"),
    *_calls(
        "prod", WITH_ZEROS, all=lambda x: x.prod(), rows=lambda x: x.prod(1), columns=lambda x: x.prod(0)
    ),
    Sample("prod", lambda x: x.prod(), (ints(3, dtype="int32"),)),
    *_calls("amax", TIES, ties=lambda x: x.amax(1), all=lambda x: x.amax(), max=lambda x: x.max()),
    *_calls("amin", TIES, ties=lambda x: x.amin(1), min=lambda x: x.min()),
    Sample("amax", lambda x: x.max(), (bools(3),)),
    Sample("amax", lambda x: x.amax(0), (ints(3, 2, dtype="int8"),)),
    *_calls(
        "take_along",
        TIES,
        max=lambda x: x.max(1).values,
        max_first=lambda x: x.max(0)[0],
        keepdim=lambda x: x.max(dim=1, keepdim=True).values,
        min=lambda x: x.min(-1)[0],
    ),
    *_calls("argmax", TIES, indices=lambda x: x.max(1).indices, keepdim=lambda x: x.min(0, keepdim=True)[1]),
    Sample("argmax", lambda x: x.max(0).indices, (bools(3, 2),), "bools"),
    Sample("take_along", lambda x: x.max(0).values, (bools(3, 2),), "bools"),
    Sample("reshape", lambda x: x.max(0).values, (floats(),), "max of a scalar"),
    Sample("maximum", lambda a, b: a.max(b), (floats(3), signed(2, 3)), "max"),
    Sample("minimum", lambda a, b: a.min(other=b), (floats(3), signed(2, 3)), "min"),
    *(
        Sample(op, call, (array,), note)
        for op in ("argmax", "argmin")
        for array in (signed(3, 4), TIES, ints(3, 4))
        for note, call in {
            f"all {array.dtype}": lambda x, op=op: getattr(x, op)(),
            f"dim=0 {array.dtype}": lambda x, op=op: getattr(x, op)(0),
            f"keepdim {array.dtype}": lambda x, op=op: getattr(x, op)(dim=-1, keepdim=True),
        }.items()
    ),
    # PyTorch warns that one number has no variance.
    *(sample for op in ("var", "std") for sample in reduction(TABLE[op]) if sample.arrays[0].ndim),
    *_calls(
        "var",
        signed(3, 4),
        biased=lambda x: x.var(unbiased=False),
        correction=lambda x: x.var(0, correction=2),
        old=lambda x: x.var(False),
        positional=lambda x: x.var(1, False, True),
    ),
    Sample("std", lambda x: x.std(1, correction=0), (TIES,), "of equals"),
    Sample("std", lambda x: x.std(1), (floats(2, 8, dtype=BFLOAT16),)),
    *_calls(
        "norm",
        np.array([[3, 4, 0], [0, 0, 0], [-1, 2, -2]], "float32"),
        all=lambda x: x.norm(),
        rows=lambda x: x.norm(dim=1),
        keepdim=lambda x: x.norm(2, 0, True),
        one=lambda x: x.norm(1, dim=1),
        three=lambda x: x.norm(3, dim=1),
        inf=lambda x: x.norm(float("inf"), dim=1),
        fro=lambda x: x.norm("fro"),
    ),
    Sample("norm", lambda x: x.norm(0, dim=1), (TIES - 2,), "zero", smooth=False),  # flat
    *_calls(
        "logsumexp",
        signed(3, 4),
        rows=lambda x: x.logsumexp(1),
        keepdim=lambda x: x.logsumexp(0, True),
        dims=lambda x: x.logsumexp((0, 1)),
        large=lambda x: (x * 500).logsumexp(1),
    ),
    Sample("logsumexp", lambda x: x.logsumexp(0), (ints(3),)),
    Sample("logsumexp", lambda x: x.logsumexp(1), (_INFINITE,), "infinite", smooth=False),
    *(
        Sample(op, call, (array,), f"{note} {array.dtype}")
        for op in ("all", "any")
        for array in (bools(3, 4), ints(2, 3, dtype="uint8") - 1, signed(2, 2))
        for note, call in {
            "all": lambda x, op=op: getattr(x, op)(),
            "dim": lambda x, op=op: getattr(x, op)(1),
            "dims": lambda x, op=op: getattr(x, op)(dim=(0, 1), keepdim=True),
        }.items()
    ),
    *_calls("cumsum", signed(3, 4), rows=lambda x: x.cumsum(1), first=lambda x: x.cumsum(dim=0)),
    Sample("cumsum", lambda x: x.cumsum(0), (ints(3, dtype="int8"),)),
    Sample("cumsum", lambda x: x.cumsum(-1), (bools(2, 3),)),
    Sample("cumsum", lambda x: x.cumsum(0), (floats(),), "scalar"),
    *_calls("cumprod", signed(3, 4), rows=lambda x: x.cumprod(1), first=lambda x: x.cumprod(dim=0)),
    *_calls("cumprod", WITH_ZEROS, zeros=lambda x: x.cumprod(1), zeros_first=lambda x: x.cumprod(0)),
]
