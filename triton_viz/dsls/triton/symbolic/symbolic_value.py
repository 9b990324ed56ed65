"""A value of a kernel that runs with symbolic program ids: one expression describes all elements of a
block."""

from typing import Any

import triton.language as tl

from triton_viz.dsls.triton.symbolic.expression import (
    Reason,
    as_condition,
    as_number,
    index,
    number,
    unknown,
    unknown_condition,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.integers import IntegerType
from triton_viz.dsls.triton.symbolic.nodes import Cond, Node, Sum
from triton_viz.executor.value import Handle

KINDS: dict[Any, IntegerType] = {
    dtype: IntegerType(dtype.primitive_bitwidth, dtype.is_int_signed())
    for dtype in (tl.int8, tl.uint8, tl.int16, tl.uint16, tl.int32, tl.uint32, tl.int64, tl.uint64)
}
_ADDRESSES = IntegerType(64, True)


class Symbolic(Handle):
    """The value of a tensor of the language: its element at symbolic indices, as an expression."""

    __slots__ = ("node", "origin", "shape")

    def __init__(self, node: "Node | float | None", dtype: Any, shape: tuple[int, ...], origin: Origin):
        super().__init__(dtype)
        self.node = node
        """A sum for integers and pointers, a condition for int1; for floats a constant, or None."""
        self.shape = shape
        self.origin = origin

    @property
    def sum(self) -> Sum:
        """The value as an integer."""
        if isinstance(self.node, Sum):
            return self.node
        if isinstance(self.node, Cond):
            return as_number(self.node)
        raise TypeError(f"a value of type {self.dtype} is not an integer")

    @property
    def condition(self) -> Cond:
        """The value as a condition."""
        if isinstance(self.node, Sum | Cond):
            return as_condition(self.node)
        if isinstance(self.node, float):
            return as_condition(number(int(self.node != 0)))
        return unknown_condition(Reason("a comparison of floats"), indices(self.shape))

    @property
    def data(self) -> str:
        """A short description, for messages."""
        return f"<{self.dtype} {list(self.shape)}>"


def integer_type(dtype: Any) -> IntegerType:
    """The integer type of a dtype, or of pointers."""
    return _ADDRESSES if dtype.is_ptr() else KINDS.get(dtype, _ADDRESSES)


def indices(shape: tuple[int, ...]) -> tuple[Sum, ...]:
    """The index variables of a block, for axes that are longer than one."""
    return tuple(index(axis, size) for axis, size in enumerate(shape) if size > 1)


def unknown_node(dtype: Any, reason: Reason, args: tuple[Sum, ...]) -> "Node | None":
    """The node of an unknown value of a type."""
    dtype = dtype.scalar
    if dtype.is_floating():
        return None
    if dtype.is_bool():
        return unknown_condition(reason, args)
    type_ = integer_type(dtype)
    return unknown(type_.low, type_.high, reason, args)
