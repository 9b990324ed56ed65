"""Ops that make a tensor out of nothing.

What a random op gives depends on its seed and on the place of the element, and on nothing else.
"""

from typing import Any

from gt.ops.row import Row, Spec, engines


def _create(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(tuple(attrs["shape"]), attrs["dtype"])


def _row(name: str) -> Row:
    return Row(name, "CreateTensor", _create, engines(f"creation.{name}", f"creation.{name}"))


ROWS = [
    _row("full"),
    _row("arange"),
    _row("linspace"),
    _row("eye"),
    _row("rand"),
    _row("randn"),
    _row("randint"),
    _row("randperm"),
    _row("bernoulli"),
]
