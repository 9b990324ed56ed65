"""Ops that access memory: each is noted with its address and the condition under which it is executed."""

from typing import Any

import triton.language as tl

from triton_viz.dsls.triton.ops.types import width
from triton_viz.dsls.triton.symbolic.expression import (
    TRUE,
    add,
    all_of,
    index,
    less,
    multiply,
    not_negative,
    scale,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.nodes import Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_ops import Ops
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic


class Descriptor:
    """A tensor descriptor or block pointer: a base, and for each axis a size, a stride and a block size."""

    def __init__(
        self,
        base: Symbolic,
        shape: list[Symbolic],
        strides: list[Symbolic],
        block: list[int],
        offsets: list[Symbolic] | None = None,
    ):
        self.base, self.shape, self.strides = base, shape, strides
        self.block = tuple(int(n) for n in block)
        self.offsets = offsets
        """The offsets of a block pointer; a descriptor receives offsets with each access."""
        self.round_f32_to_tf32 = False

    def pointers(
        self, offsets: list[Symbolic], checked: tuple[int, ...] | None = None
    ) -> tuple[Symbolic, Cond]:
        """The addresses of a block, and which of them are inside along the checked axes (None: all)."""
        positions = [add(offset.sum, index(axis, self.block[axis])) for axis, offset in enumerate(offsets)]
        return self._at(positions, offsets, self.block, checked)

    def rows(self, rows: Symbolic, column: Symbolic) -> tuple[Symbolic, Cond]:
        """The addresses of the rows with these indices, from one column on."""
        block = (rows.shape[0], self.block[-1])
        return self._at([rows.sum, add(column.sum, index(1, block[1]))], [rows, column], block, None)

    def _at(
        self,
        positions: list[Sum],
        offsets: list[Symbolic],
        block: tuple[int, ...],
        checked: tuple[int, ...] | None,
    ) -> tuple[Symbolic, Cond]:
        size = width(self.base.dtype)
        address = self.base.sum
        inside: list[Cond] = []
        for axis, (position, stride) in enumerate(zip(positions, self.strides, strict=True)):
            address = add(address, scale(multiply(position, stride.sum), size))
            if checked is None or axis in checked:
                inside += [not_negative(position), less(position, self.shape[axis].sum)]
        origin = Origin("descriptor", self.base.origin, *(offset.origin for offset in offsets))
        return Symbolic(address, self.base.dtype, block, origin), all_of(inside)


class AccessOps(Ops):
    """The builder's ops on memory."""

    def _loaded(self, pointers: Symbolic, kind: str = "load") -> Symbolic:
        dtype = pointers.dtype.element_ty
        origin = Origin("tl.load" if kind == "load" else kind, pointers.origin)
        what = "a loaded value" if kind == "load" else "the result of an atomic"
        return self.open_value(dtype, pointers.shape, what, origin)

    def create_load(self, pointers: Symbolic, *policy: Any) -> Symbolic:
        """The values at the pointers."""
        self.note("load", pointers, TRUE)
        return self._loaded(pointers)

    def create_store(self, pointers: Symbolic, values: Symbolic, *policy: Any) -> None:
        """Write to all pointers."""
        self.note("store", pointers, TRUE)

    def create_masked_load(
        self, pointers: Symbolic, mask: Symbolic | None, other: Any, *policy: Any
    ) -> Symbolic:
        """The values at the pointers where the mask is true."""
        self.note("load", pointers, _mask(mask), True)
        return self._loaded(pointers)

    def create_masked_store(
        self, pointers: Symbolic, values: Symbolic, mask: Symbolic | None, *policy: Any
    ) -> None:
        """Write to the pointers where the mask is true."""
        self.note("store", pointers, _mask(mask), True)

    # --- atomics ---

    def create_atomic_rmw(
        self, op: Any, pointers: Symbolic, values: Any, mask: Symbolic | None, *order: Any
    ) -> Symbolic:
        """Read, change and write in one step."""
        self.note("atomic", pointers, _mask(mask))
        return self._loaded(pointers, f"atomic_{str(op).rsplit('.', 1)[-1].lower()}")

    def create_atomic_cas(self, pointers: Symbolic, *_: Any) -> Symbolic:
        """Write where memory holds the expected value."""
        self.note("atomic", pointers, TRUE)
        return self._loaded(pointers, "atomic_cas")

    def create_atomic_load(self, pointers: Symbolic, mask: Symbolic | None, *order: Any) -> Symbolic:
        """An atomic load, by which a program may wait for another program's store."""
        self.note("load", pointers, _mask(mask))
        return self._loaded(pointers)

    def create_atomic_store(
        self, pointers: Symbolic, values: Symbolic, mask: Symbolic | None, *order: Any
    ) -> None:
        """An atomic store, for which another program may wait."""
        self.note("store", pointers, _mask(mask))

    def create_atomic_poll(self, pointers: Symbolic, *_: Any) -> Symbolic:
        """Wait for a value."""
        self.note("load", pointers, TRUE)
        return self.open_value(tl.int1, pointers.shape, "the result of atomic_poll", pointers.origin)

    # --- tensor descriptors and block pointers ---

    def create_make_tensor_descriptor(
        self,
        base: Symbolic,
        shape: list[Symbolic],
        strides: list[Symbolic],
        block: list[int],
        is_signed: bool,
        padding: Any = None,
    ) -> Descriptor:
        """A descriptor made in a kernel or on the host. All described elements have to be the tensor's."""
        found = Descriptor(base, shape, strides, block)
        sizes = [size.sum for size in shape]
        if all(size.is_const and size.const > 0 for size in sizes):
            whole = Descriptor(base, shape, strides, [size.const for size in sizes])
            zero = [Symbolic(Sum(0), tl.int32, (), Origin("0")) for _ in sizes]
            self.note("descriptor", whole.pointers(zero, ())[0], TRUE)
        return found

    def create_descriptor_load(
        self, descriptor: Descriptor, offsets: list[Symbolic], *policy: Any
    ) -> Symbolic:
        """A block of the described tensor."""
        pointers, mask = descriptor.pointers(offsets)
        self.note("load", pointers, mask)
        return self._loaded(pointers)

    def create_descriptor_store(
        self, descriptor: Descriptor, value: Symbolic, offsets: list[Symbolic]
    ) -> None:
        """Write a block."""
        self.note("store", *descriptor.pointers(offsets))

    def create_descriptor_reduce(
        self, kind: Any, descriptor: Descriptor, value: Symbolic, offsets: list[Symbolic]
    ) -> None:
        """An atomic on each element of a block."""
        self.note("atomic", *descriptor.pointers(offsets))

    def create_descriptor_gather(
        self, descriptor: Descriptor, rows: Symbolic, column: Symbolic, *_: Any
    ) -> Symbolic:
        """The rows with these indices, from one column on."""
        pointers, mask = descriptor.rows(rows, column)
        self.note("load", pointers, mask)
        return self._loaded(pointers)

    def create_descriptor_scatter(
        self, descriptor: Descriptor, value: Symbolic, rows: Symbolic, column: Symbolic
    ) -> None:
        """Write the rows with these indices, from one column on."""
        self.note("store", *descriptor.rows(rows, column))

    def create_make_block_ptr(
        self,
        base: Symbolic,
        shape: list[Symbolic],
        strides: list[Symbolic],
        offsets: list[Symbolic],
        block: list[int],
        order: Any,
    ) -> Descriptor:
        """A block pointer, in older releases."""
        return Descriptor(base, shape, strides, block, offsets)

    def create_advance(self, pointer: Descriptor, offsets: list[Symbolic]) -> Descriptor:
        """A block pointer moved by offsets."""
        moved = [
            Symbolic(add(a.sum, b.sum), tl.int64, (), Origin("add", a.origin, b.origin))
            for a, b in zip(pointer.offsets or [], offsets, strict=True)
        ]
        return Descriptor(pointer.base, pointer.shape, pointer.strides, list(pointer.block), moved)

    def create_tensor_pointer_load(
        self, pointer: Descriptor, checked: Any, padding: Any, *policy: Any
    ) -> Symbolic:
        """The values of the block that a block pointer points to."""
        pointers, mask = pointer.pointers(pointer.offsets or [], tuple(checked))
        self.note("load", pointers, mask)
        return self._loaded(pointers)

    def create_tensor_pointer_store(
        self, pointer: Descriptor, value: Symbolic, checked: Any, *policy: Any
    ) -> None:
        """Write the block that a block pointer points to."""
        self.note("store", *pointer.pointers(pointer.offsets or [], tuple(checked)))


def _mask(mask: Symbolic | None) -> Cond:
    return TRUE if mask is None else mask.condition
