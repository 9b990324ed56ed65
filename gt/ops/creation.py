"""Ops that create a tensor without inputs.

An element of a random op's result depends only on the seed and on the element's index.
"""

from typing import Any

from gt.ops.engines import Functions
from gt.ops.row import Row, Spec
from gt.ops.run_time import SEEDED


def _create(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(tuple(attrs["shape"]), attrs["dtype"])


def _row(name: str, run_time: tuple[str, ...] = ()) -> Row:
    functions = Functions(f"creation.{name}", f"creation.{name}")
    return Row(name, "CreateTensor", _create, functions, run_time=run_time)


ROWS = [
    _row("full"),
    _row("arange"),
    _row("linspace"),
    _row("eye"),
    _row("rand", SEEDED),
    _row("randn", SEEDED),
    _row("randint", SEEDED),
    _row("randperm", SEEDED),
    _row("bernoulli", SEEDED),
]
