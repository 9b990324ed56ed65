"""Ops that make a tensor out of nothing."""

from typing import Any

from gt.ops.row import Row, Spec, engines


def _create(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(tuple(attrs["shape"]), attrs["dtype"])


def _row(name: str) -> Row:
    return Row(name, "CreateTensor", _create, engines(f"creation.{name}", f"creation.{name}"))


ROWS = [_row(name) for name in ("full", "arange", "rand", "randn")]
