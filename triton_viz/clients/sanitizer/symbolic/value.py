"""A value of a kernel that runs with open program ids: one expression that stands for each element."""

from typing import Any

import triton.language as tl

from triton_viz.clients.sanitizer.symbolic.expression import (
    Cond,
    Node,
    Reason,
    Sum,
    as_condition,
    as_number,
    index,
    number,
    unknown,
    unknown_condition,
)
from triton_viz.clients.sanitizer.symbolic.integers import Kind
from triton_viz.clients.sanitizer.symbolic.origin import Origin

KINDS: dict[Any, Kind] = {
    dtype: Kind(dtype.primitive_bitwidth, dtype.is_int_signed())
    for dtype in (tl.int8, tl.uint8, tl.int16, tl.uint16, tl.int32, tl.uint32, tl.int64, tl.uint64)
}
_ADDRESSES = Kind(64, True)


class Symbolic:
    """What a tensor of the language holds: the element at the block's indices, as an expression."""

    __slots__ = ("attr", "dtype", "node", "origin", "shape")

    def __init__(self, node: "Node | float | None", dtype: Any, shape: tuple[int, ...], origin: Origin):
        self.node = node
        """A sum for whole numbers and pointers, a condition for int1; of floats only constants are known."""
        self.dtype = dtype
        self.shape = shape
        self.origin = origin
        self.attr: dict[str, Any] | None = None

    @property
    def sum(self) -> Sum:
        """As a whole number."""
        if isinstance(self.node, Sum):
            return self.node
        if isinstance(self.node, Cond):
            return as_number(self.node)
        raise TypeError(f"a value of type {self.dtype} is no whole number")

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
        """For whoever prints it."""
        return f"<{self.dtype} {list(self.shape)}>"

    def set_attr(self, name: str, value: Any) -> None:
        """A hint to the compiler."""

    def get_element_ty(self) -> Any:
        """The type at the end of a pointer, or the element's own."""
        dtype = self.dtype
        while hasattr(dtype, "element_ty"):
            dtype = dtype.element_ty
        return dtype

    def clone(self) -> "Symbolic":
        """Itself: nobody writes to it."""
        return self


def kind_of(dtype: Any) -> Kind:
    """The range of a type of whole numbers, or of addresses."""
    return _ADDRESSES if dtype.is_ptr() else KINDS.get(dtype, _ADDRESSES)


def indices(shape: tuple[int, ...]) -> tuple[Sum, ...]:
    """A block's indices, those that are not always zero."""
    return tuple(index(axis, size) for axis, size in enumerate(shape) if size > 1)


def unknown_node(dtype: Any, reason: Reason, args: tuple[Sum, ...]) -> "Node | None":
    """What is known of an element of which nothing is known but its type."""
    dtype = dtype.scalar
    if dtype.is_floating():
        return None
    if dtype.is_bool():
        return unknown_condition(reason, args)
    kind = kind_of(dtype)
    return unknown(kind.low, kind.high, reason, args)
