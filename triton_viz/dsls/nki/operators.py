"""Python's operators on tensors of a kernel, and assignment to parts of them."""

from typing import Any

import numpy as np

from triton_viz.dsls.nki import machine, ops
from triton_viz.dsls.nki.tensor import Tensor

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_COMPARED = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "abs": "abs", "invert": "invert"}


def assign(part: Tensor, value: Any) -> None:
    """Put a tile or a number into a part of a tensor."""
    if part.memory == "HBM":
        ops.store(part, value)
        return
    if isinstance(value, Tensor) and value.memory == "HBM":
        ops.load(value, dst=part)
        return
    op = ops.operand(value)
    here = machine.current()
    values, undefined = op.values, op.undefined
    if values.size != part.size:
        values = np.broadcast_to(ops.aligned(values, part.shape), part.shape)
        if undefined is not None:
            undefined = np.broadcast_to(ops.aligned(undefined, part.shape), part.shape)
    reads = (value,) if isinstance(value, Tensor) else ()
    here.instruction("tensor_copy", None, reads, (part,), elements=ops.free_elements(part.shape))
    # The mask of the instruction that made this value is one of this assignment, too.
    mask = None
    if isinstance(value, Tensor):
        if value.whole and value.storage.masked is not None and value.shape == part.shape:
            mask = value.storage.masked
            undefined = None if undefined is None else undefined & mask
        here.builder.transfer(ops.as_value(values, value.dtype), value.memory, part.memory, value.name)
        here.moved(value.memory, part.memory, value.size * value.itemsize)
    ops.finish(part, values, undefined, part.dtype, mask)


def _set_item(self: Tensor, key: Any, value: Any) -> None:
    part = self[key]
    if isinstance(value, Tensor) and value.storage is self.storage and _same(value, part):
        return  # `tile[i] += x` has already written it
    assign(part, value)


def _same(one: Tensor, other: Tensor) -> bool:
    if one.picked is not None or other.picked is not None:
        return (
            one.picked is not None
            and other.picked is not None
            and one.picked.shape == other.picked.shape
            and all(
                np.array_equal(a, b)
                for a, b in zip(one.picked.coordinates, other.picked.coordinates, strict=True)
            )
        )
    return (
        all(getattr(one.array, name) == getattr(other.array, name) for name in ("shape", "strides"))
        and one.array.__array_interface__["data"] == other.array.__array_interface__["data"]
    )


def _accumulate(name: str) -> Any:
    def operator(self: Tensor, other: Any) -> Tensor:
        # The product of tiles accumulates in PSUM; elsewhere the result is written back.
        assign(self, ops.elementwise(name, self, other, dtype=self.dtype))
        return self

    return operator


def _operator(name: str, reverse: bool) -> Any:
    def operator(self: Tensor, other: Any) -> Tensor:
        sides = (other, self) if reverse else (self, other)
        return ops.elementwise(name, *sides)

    return operator


def _unary(name: str) -> Any:
    return lambda self: ops.elementwise(name, self)


def install() -> None:
    """Give tensors their operators."""
    made: dict[str, Any] = {"__setitem__": _set_item}
    for short, name in _BINARY.items():
        made[f"__{short}__"] = _operator(name, reverse=False)
        made[f"__r{short}__"] = _operator(name, reverse=True)
        made[f"__i{short}__"] = _accumulate(name)
    made |= {f"__{short}__": _operator(name, reverse=False) for short, name in _COMPARED.items()}
    made |= {f"__{short}__": _unary(name) for short, name in _UNARY.items()}
    made["astype"] = lambda self, dtype: ops.copy(self, None, dtype)
    for name, function in made.items():
        setattr(Tensor, name, function)
