"""aten ops that the op table has, as rows of the op table.

Such an op has sharding rules, and every engine runs it. A lowering gets an op's arguments by name and gives
the row, the tensors and the attributes; or None, for arguments that the row does not take: then the op
travels by its own name.
"""

from collections.abc import Callable
from typing import Any

import torch

Lowered = tuple[str, tuple[Any, ...], dict[str, Any] | None]
Lowering = Callable[[dict[str, Any]], Lowered | None]

_NUMBERS = (bool, int, float)


def _unary(row: str) -> Lowering:
    return lambda given: (row, (given["self"],), None)


def _binary(row: str, with_alpha: bool = False) -> Lowering:
    def lower(given: dict[str, Any]) -> Lowered | None:
        if with_alpha and given["alpha"] != 1:
            return None
        a, b = given["self"], given["other"]
        if isinstance(b, torch.Tensor):
            return row, (a, b), None
        if type(b) in _NUMBERS:
            return row, (a,), {"scalar": b, "reflected": False}
        return None

    return lower


def _reduction(row: str) -> Lowering:
    def lower(given: dict[str, Any]) -> Lowered | None:
        if given.get("dtype") is not None:
            return None
        x, dim = given["self"], given.get("dim")
        dims = None if dim is None or dim == [] or not x.dim() else [d % x.dim() for d in dim]
        return row, (x,), {"dim": dims, "keepdim": given.get("keepdim", False)}

    return lower


def _matmul(given: dict[str, Any]) -> Lowered:
    a, b = given["self"], given.get("mat2", given.get("vec"))
    return "matmul", (a, b), None


TABLE: dict[str, Lowering] = {
    **{
        f"aten::{name}": _unary(name)
        for name in (
            *(
                "neg",
                "sqrt",
                "rsqrt",
                "exp",
                "log",
                "sin",
                "cos",
                "tanh",
                "sigmoid",
                "relu",
                "reciprocal",
                "erf",
            ),
            *("floor", "ceil", "trunc", "abs", "logical_not", "isnan"),
        )
    },
    **{
        f"aten::{name}.{overload}": _binary(row, name in ("add", "sub"))
        for name, row in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv"))
        for overload in ("Tensor", "Scalar")
    },
    **{
        f"aten::{name}.{overload}": _binary(name)
        for name in ("gt", "ge", "lt", "le", "eq", "ne")
        for overload in ("Tensor", "Scalar")
    },
    "aten::sum": _reduction("sum"),
    "aten::sum.dim_IntList": _reduction("sum"),
    "aten::mean": _reduction("mean"),
    "aten::mean.dim": _reduction("mean"),
    "aten::mm": _matmul,
    "aten::bmm": _matmul,
    "aten::mv": _matmul,
}
