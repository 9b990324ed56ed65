"""Ops over lists of tensors, which optimizers and gradient clipping use: `_foreach_add_` and others.

For a device that has no kernels for these, PyTorch calls its dispatcher for each tensor of the list. Here the
kernel of the op for one tensor is called directly.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gt.torch.kernels import operation
from gt.torch.schemas import schema_of

_BINARY = {"List": ".Tensor", "Scalar": ".Scalar", "ScalarList": ".Scalar", "Tensor": ".Tensor"}
_WITHOUT_TENSOR = {"List": ".Tensor", "Scalar": ".Scalar", "ScalarList": ".Scalar"}
_WITH_VALUE = {"Scalar": "", "ScalarList": ""}
_CLAMP = {"List": ".Tensor", "Scalar": "", "ScalarList": ""}
_UNARY = {"": ""}
_OVERLOADS = {
    **dict.fromkeys(("add", "mul", "div"), _BINARY),
    **dict.fromkeys(("sub", "lerp"), _WITHOUT_TENSOR),
    **dict.fromkeys(("addcmul", "addcdiv"), _WITH_VALUE),
    **dict.fromkeys(("clamp_min", "clamp_max"), _CLAMP),
    **dict.fromkeys(("sqrt", "rsqrt", "neg", "reciprocal", "exp", "log", "abs", "sign"), _UNARY),
}
"""By op, for each overload over lists: the overload for one tensor."""

_EXPLICIT_KEY = torch._C.DispatchKey.CompositeExplicitAutograd


def _kernel(name: str, each: str) -> Callable[..., Any]:
    """The kernel of an op over lists; `each` is the op for one tensor of the list."""
    run: Callable[..., Any] | None = None
    has_value = name.startswith("_foreach_addc")  # their last argument, which may be left out
    in_place = name.partition(".")[0].endswith("_")

    def call(*args: Any, **kwargs: Any) -> list[Any] | None:
        nonlocal run
        count = len(args[0])
        if not count or any(type(one) is list and len(one) != count for one in args):
            return schema_of(f"aten::{name}").function._op_dk(_EXPLICIT_KEY, *args, **kwargs)  # raises
        if run is None:
            run = operation(f"aten::{each}").kernel
        columns: list[Sequence[Any]] = [one if type(one) is list else [one] * count for one in args]
        if has_value and len(columns) > 3:
            values = columns.pop()
            made = [run(*row, value=value) for *row, value in zip(*columns, values, strict=True)]
        else:
            made = [run(*row, **kwargs) for row in zip(*columns, strict=True)]
        if not in_place:
            return made
        torch._C._increment_version([one for one in args[0] if not one.is_inference()])
        return None

    return call


KERNELS: dict[str, Callable[..., Any]] = {}
for _op, _overloads in _OVERLOADS.items():
    for _mark in ("", "_"):
        for _overload, _each in _overloads.items():
            _name = f"_foreach_{_op}{_mark}" + (f".{_overload}" if _overload else "")
            KERNELS[_name] = _kernel(_name, f"{_op}{_mark}{_each}")
