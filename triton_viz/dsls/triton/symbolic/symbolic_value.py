"""A value of a kernel that runs with symbolic program ids: one expression that stands for each element."""

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
    """The value of a tensor of the language: the element at the block's indices, as an expression."""

    __slots__ = ("node", "origin", "shape")

    def __init__(self, node: "Node | float | None", dtype: Any, shape: tuple[int, ...], origin: Origin):
        super().__init__(dtype)
        self.node = node
        """A sum for integers and pointers, a condition for int1; of floats only constants are known."""
        self.shape = shape
        self.origin = origin

    @property
    def sum(self) -> Sum:
        """As an integer."""
        if isinstance(self.node, Sum):
            return self.node
        if isinstance(self.node, Cond):
            return as_number(self.node)
        raise TypeError(f"a value of type {self.dtype} is no integer")

    @property
    def condition(self) -> Cond:
        """As a condition."""
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
    """The range of a type of integers, or of addresses."""
    return _ADDRESSES if dtype.is_ptr() else KINDS.get(dtype, _ADDRESSES)


def indices(shape: tuple[int, ...]) -> tuple[Sum, ...]:
    """A block's indices, those that are not always zero."""
    return tuple(index(axis, size) for axis, size in enumerate(shape) if size > 1)


def unknown_node(dtype: Any, reason: Reason, args: tuple[Sum, ...]) -> "Node | None":
    """The node of an element of which only the type is known."""
    dtype = dtype.scalar
    if dtype.is_floating():
        return None
    if dtype.is_bool():
        return unknown_condition(reason, args)
    kind = integer_type(dtype)
    return unknown(kind.low, kind.high, reason, args)
