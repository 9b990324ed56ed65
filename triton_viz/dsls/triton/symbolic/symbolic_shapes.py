"""Ops that make and reshape blocks: they map the indices of elements."""

import math
from typing import Any

import triton.language as tl

from triton_viz.dsls.triton.ops.types import plain
from triton_viz.dsls.triton.symbolic import integers
from triton_viz.dsls.triton.symbolic.evaluate import Substitution
from triton_viz.dsls.triton.symbolic.expression import (
    add,
    any_of,
    both,
    choose,
    equal,
    index,
    less,
    number,
    opposite,
    scale,
)
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.nodes import Atom, Cond, Sum
from triton_viz.dsls.triton.symbolic.symbolic_ops import Ops
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic


class ShapeOps(Ops):
    """The builder's ops that move elements."""

    def create_make_range(self, type: Any, start: int, stop: int) -> Symbolic:
        """start, start + 1, ... stop - 1."""
        node = add(index(0, stop - start), number(start))
        return Symbolic(node, tl.int32, (stop - start,), Origin(f"tl.arange({start}, {stop})"))

    def create_splat(self, type: Any, arg: Symbolic) -> Symbolic:
        """A block that repeats one value."""
        return Symbolic(arg.node, arg.dtype.scalar, tuple(int(plain(n)) for n in type.shape), arg.origin)

    def create_unsplat(self, arg: Symbolic) -> Symbolic:
        """The only element of a block."""
        return Symbolic(arg.node, arg.dtype, (), arg.origin)

    def create_expand_dims(self, arg: Symbolic, axis: int) -> Symbolic:
        """A block with a new axis of length one."""
        shape = arg.shape
        moved = {k: index(k + 1, shape[k]) for k in range(axis, len(shape))}
        return reindexed(arg, moved, (*shape[:axis], 1, *shape[axis:]))

    def create_broadcast(self, arg: Symbolic, shape: Any) -> Symbolic:
        """A block repeated along axes of length one."""
        return Symbolic(arg.node, arg.dtype, tuple(int(plain(n)) for n in shape), arg.origin)

    def create_trans(self, arg: Symbolic, order: Any) -> Symbolic:
        """A block with its axes in another order."""
        order = tuple(int(plain(axis)) for axis in order)
        moved = {old: index(new, arg.shape[old]) for new, old in enumerate(order)}
        return reindexed(arg, moved, tuple(arg.shape[axis] for axis in order))

    def create_reshape(self, arg: Symbolic, shape: Any, allow_reorder: bool = False) -> Symbolic:
        """The same elements in another shape."""
        shape = tuple(int(plain(n)) for n in shape)
        position = number(0)
        for axis, size in enumerate(shape):
            position = add(position, scale(index(axis, size), math.prod(shape[axis + 1 :])))
        moved = {}
        for axis, size in enumerate(arg.shape):
            above = integers.divide(position, number(math.prod(arg.shape[axis + 1 :])))
            moved[axis] = integers.remainder(above, number(size)) if axis else above
        return reindexed(arg, moved, shape)

    def create_cat(self, left: Symbolic, right: Symbolic, *_: Any) -> Symbolic:
        """Two blocks, one after the other along the first axis."""
        n, m = left.shape[0], right.shape[0]
        shape = (n + m, *left.shape[1:])
        here = index(0, n + m)
        a, b = reindexed(left, {0: here}, shape), reindexed(right, {0: add(here, number(-n))}, shape)
        return _either(less(here, number(n)), a, b, "cat")

    def create_join(self, left: Symbolic, right: Symbolic) -> Symbolic:
        """Two blocks joined along a new last axis."""
        shape = (*left.shape, 2)
        a, b = (Symbolic(x.node, x.dtype, shape, x.origin) for x in (left, right))
        return _either(equal(index(len(shape) - 1, 2), number(0)), a, b, "join")

    def create_split(self, arg: Symbolic) -> tuple[Symbolic, Symbolic]:
        """The two halves of the last axis."""
        last, shape = len(arg.shape) - 1, arg.shape[:-1]
        return reindexed(arg, {last: number(0)}, shape), reindexed(arg, {last: number(1)}, shape)

    def create_gather(self, source: Symbolic, positions: Symbolic, axis: int) -> Symbolic:
        """Elements picked along an axis."""
        origin = Origin("tl.gather", source.origin, positions.origin)
        if positions.sum.within(0, source.shape[axis] - 1):
            found = reindexed(source, {axis: positions.sum}, positions.shape)
            return Symbolic(found.node, found.dtype, found.shape, origin)
        return self.open_value(source.dtype, positions.shape, "the result of tl.gather", origin)


def reindexed(value: Symbolic, moved: dict[int, Sum], shape: tuple[int, ...]) -> Symbolic:
    """A block of another shape. `moved` has for axes of the old block the index that an element comes
    from."""
    node = value.node
    if isinstance(node, Sum | Cond):
        replaced: dict[Atom, Sum] = {}
        for axis, new in moved.items():
            old = index(axis, value.shape[axis])
            if old.terms and old != new:
                replaced[old.terms[0][0]] = new
        if replaced:
            node = Substitution(replaced)(node)
    return Symbolic(node, value.dtype, shape, value.origin)


def _either(condition: Cond, a: Symbolic, b: Symbolic, op: str) -> Symbolic:
    node: Any = None
    if isinstance(a.node, Cond) and isinstance(b.node, Cond):
        node = any_of((both(condition, a.node), both(opposite(condition), b.node)))
    elif isinstance(a.node, Sum) and isinstance(b.node, Sum):
        node = choose(condition, a.node, b.node)
    return Symbolic(node, a.dtype, a.shape, Origin(op, a.origin, b.origin))
