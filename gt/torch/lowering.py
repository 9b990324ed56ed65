"""Lowerings of aten ops to rows of the op table.

A row has sharding rules, and every engine runs it. A lowering takes an op's arguments by name and returns the
row, the tensors and the attributes, or None if the row does not take these arguments: then the op is sent
under its PyTorch name.
"""

from collections.abc import Callable
from typing import Any

import torch

from gt.ops.dtypes import ITEMSIZE

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


def _linear(given: dict[str, Any]) -> Lowered | None:
    tensors = [one for one in (given["input"], given["weight"], given["bias"]) if one is not None]
    return ("linear", tuple(tensors), None) if tensors[0].is_floating_point() else None


def _linear_algebra(given: dict[str, Any]) -> Lowered:
    return "matmul", (given["self"], given["tensor"]), None


def _along(row: str, **more: Any) -> Lowering:
    """An op along one dimension."""

    def lower(given: dict[str, Any]) -> Lowered | None:
        x, dim = given["self"], given["dim"]
        if given.get("dtype") is not None or given.get("half_to_float") or not x.dim():
            return None
        return row, (x,), {"dim": dim % x.dim(), **more}

    return lower


def _extreme(row: str) -> Lowering:
    def lower(given: dict[str, Any]) -> Lowered | None:
        x, dim = given["self"], given.get("dim")
        dims = None if not dim or not x.dim() else [d % x.dim() for d in dim]
        return row, (x,), {"dim": dims, "keepdim": given.get("keepdim", False)}

    return lower


def _norm(given: dict[str, Any]) -> Lowered | None:
    x, dim = given["self"], given["dim"]
    if given["dtype"] is not None or not x.is_floating_point():
        return None
    dims = None if not dim or not x.dim() else [d % x.dim() for d in dim]
    return "norm", (x,), {"dim": dims, "keepdim": given["keepdim"], "p": given["ord"]}


def _joined(row: str) -> Lowering:
    def lower(given: dict[str, Any]) -> Lowered | None:
        tensors, dim = given["tensors"], given["dim"]
        if row == "cat":  # PyTorch leaves out tensors of shape [0], whatever the others' ranks are
            tensors = [one for one in tensors if one.shape != (0,)] or tensors
        rank = tensors[0].dim() + (row == "stack")
        if not rank or any(one.dim() != tensors[0].dim() for one in tensors):
            return None
        return row, tuple(tensors), {"dim": dim % rank}

    return lower


def _embedding(given: dict[str, Any]) -> Lowered:
    return "embedding", (given["weight"], given["indices"]), {"padding_idx": given["padding_idx"]}


def _embedding_gradient(given: dict[str, Any]) -> Lowered | None:
    if given["scale_grad_by_freq"]:
        return None
    attrs = {"rows": given["num_weights"], "padding_idx": given["padding_idx"]}
    return "embedding_grad", (given["grad_output"], given["indices"]), attrs


def _triangle(row: str) -> Lowering:
    return lambda given: (row, (given["self"],), {"diagonal": given["diagonal"]})


def _cast(given: dict[str, Any]) -> Lowered | None:
    name = str(given["dtype"]).removeprefix("torch.")
    plain = given["memory_format"] in (None, torch.preserve_format)
    return ("cast", (given["self"],), {"dtype": name}) if plain and name in ITEMSIZE else None


def _filled(size: Any, value: Any, dtype: torch.dtype) -> Lowered | None:
    name = str(dtype).removeprefix("torch.")
    if name not in ITEMSIZE or type(value) not in _NUMBERS:
        return None
    return "full", (), {"shape": list(size), "value": value, "dtype": name}


def _full(given: dict[str, Any]) -> Lowered | None:
    value = given["fill_value"]
    default = torch.bool if type(value) is bool else torch.int64 if type(value) is int else None
    return _filled(given["size"], value, given["dtype"] or default or torch.get_default_dtype())


def _fill(given: dict[str, Any]) -> Lowered | None:
    return _filled(given["self"].shape, given.get("value", 0), given["self"].dtype)


def _arange(given: dict[str, Any]) -> Lowered | None:
    start, step, dtype = given.get("start", 0), given.get("step", 1), given["dtype"] or torch.int64
    numbers = (start, given["end"], step)
    if any(type(one) is not int for one in numbers) or dtype not in (torch.int64, torch.int32):
        return None
    count = len(range(*numbers))
    name = str(dtype).removeprefix("torch.")
    return "arange", (), {"shape": [count], "start": start, "step": step, "dtype": name}


def _reflected(given: dict[str, Any]) -> Lowered | None:
    if given["alpha"] != 1 or type(given["other"]) not in _NUMBERS:
        return None
    return "sub", (given["self"],), {"scalar": given["other"], "reflected": True}


ROW_LOWERINGS: dict[str, Lowering] = {
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
    "aten::linear": _linear,
    "aten::dot": _linear_algebra,
    "aten::_softmax": _along("softmax"),
    "aten::_log_softmax": _along("log_softmax"),
    "aten::cumsum": _along("cumsum", reverse=False),
    "aten::amax": _extreme("amax"),
    "aten::amin": _extreme("amin"),
    "aten::max": _extreme("amax"),
    "aten::min": _extreme("amin"),
    "aten::linalg_vector_norm": _norm,
    "aten::cat": _joined("cat"),
    "aten::stack": _joined("stack"),
    "aten::embedding": _embedding,
    "aten::embedding_dense_backward": _embedding_gradient,
    "aten::tril": _triangle("tril"),
    "aten::triu": _triangle("triu"),
    "aten::_to_copy": _cast,
    "aten::full": _full,
    **dict.fromkeys(("aten::arange", "aten::arange.start", "aten::arange.start_step"), _arange),
    "aten::fill.Scalar": _fill,
    "aten::zero": _fill,
    "aten::rsub.Scalar": _reflected,
}
