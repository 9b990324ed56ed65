"""Python's operators on tensors of a kernel, and assignment to parts of them.

In the classic `neuronxcc.nki`, which has no destinations, `tile[...] = nisa.op(...)` is one instruction that
writes the tile. So a result without other references is written directly to the part that it is assigned to,
without a copy.
"""

import sys
from typing import Any

import numpy as np

from triton_viz.dsls.nki import nki_machine, nki_ops
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


def assign(part: Tensor, value: Any, temporary: bool = False) -> None:
    """Assign a tile or a scalar to a part of a tensor. `temporary` values have no other references."""
    if part.memory == "HBM":
        nki_ops.store(part, value)
        return
    if isinstance(value, Tensor) and value.memory == "HBM":
        nki_ops.load(value, dst=part)
        return
    op = nki_ops.operand(value)
    here = nki_machine.current()
    values, undefined = op.values, op.undefined
    if values.size != part.size:
        values = np.broadcast_to(nki_ops.aligned(values, part.shape), part.shape)
        if undefined is not None:
            undefined = np.broadcast_to(nki_ops.aligned(undefined, part.shape), part.shape)
    copied = not (temporary and here.writes_directly(value, part))
    if copied:
        reads = (value,) if isinstance(value, Tensor) else ()
        here.instruction("tensor_copy", None, reads, (part,), elements=nki_ops.free_elements(part.shape))
    else:
        here.redirect(value, part)
    # The mask of the instruction that made this value also applies to the assignment.
    mask = None
    if isinstance(value, Tensor):
        if value.whole and value.storage.masked is not None and value.shape == part.shape:
            mask = value.storage.masked
            undefined = None if undefined is None else undefined & mask
        if copied:
            here.builder.transfer(
                nki_ops.as_value(values, value.dtype), value.memory, part.memory, value.name
            )
            here.moved(value.memory, part.memory, value.size * value.itemsize)
    nki_ops.finish(part, values, undefined, part.dtype, mask)


def _set_item(self: Tensor, key: Any, value: Any) -> None:
    temporary = sys.getrefcount(value) <= _References.in_assignment
    part = self[key]
    if isinstance(value, Tensor) and value.storage is self.storage and _same(value, part):
        return  # `tile[i] += x` has already written it
    assign(part, value, temporary)


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


class _References:
    """How many references a value has in a method if only the calling statement refers to it.

    The number differs between releases of Python, so it is measured once, on methods that are called alike.
    """

    in_assignment = 0
    in_accumulation = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        type(self).in_assignment = sys.getrefcount(value)

    def __iadd__(self, other: Any) -> "_References":
        type(self).in_accumulation = sys.getrefcount(other)
        return self

    @classmethod
    def measure(cls) -> None:
        probe = cls()
        probe[0] = object()
        probe += object()


_References.measure()


def _add_product(total: Tensor, product: Tensor) -> None:
    """`total += nisa.nc_matmul(...)`: the tensor engine accumulates in PSUM, without another engine."""
    values, before = nki_ops.operand(product), nki_ops.operand(total)
    added = before.values.astype(np.float32) + values.values.reshape(total.shape)
    missing = None if values.undefined is None else values.undefined.reshape(total.shape)
    nki_machine.current().redirect(product, total)
    nki_ops.finish(total, added, nki_ops.either(before.undefined, missing), total.dtype, None)


def _accumulate(name: str) -> Any:
    def operator(self: Tensor, other: Any) -> Tensor:
        temporary = sys.getrefcount(other) <= _References.in_accumulation
        if name == "add" and temporary and nki_machine.current().is_new_product(other, self):
            _add_product(self, other)
        else:
            assign(self, nki_ops.elementwise(name, self, other, dtype=self.dtype), temporary=True)
        return self

    return operator


def _operator(name: str, reverse: bool) -> Any:
    def operator(self: Tensor, other: Any) -> Tensor:
        sides = (other, self) if reverse else (self, other)
        return nki_ops.elementwise(name, *sides)

    return operator


def _unary(name: str) -> Any:
    return lambda self: nki_ops.elementwise(name, self)


def install() -> None:
    """Define the operators of tensors."""
    made: dict[str, Any] = {"__setitem__": _set_item}
    for short, name in _BINARY.items():
        made[f"__{short}__"] = _operator(name, reverse=False)
        made[f"__r{short}__"] = _operator(name, reverse=True)
        made[f"__i{short}__"] = _accumulate(name)
    made |= {f"__{short}__": _operator(name, reverse=False) for short, name in _COMPARED.items()}
    made |= {f"__{short}__": _unary(name) for short, name in _UNARY.items()}
    made["astype"] = lambda self, dtype: nki_ops.copy(self, None, dtype)
    for name, function in made.items():
        setattr(Tensor, name, function)
