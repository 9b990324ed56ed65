"""Reductions, scans, products and histograms. Of most results, only bounds are known."""

import math
from typing import Any

import triton.language as tl

from triton_viz.dsls.triton.symbolic.evaluate import atoms_of
from triton_viz.dsls.triton.symbolic.expression import index, number, scale
from triton_viz.dsls.triton.symbolic.expression_origin import Origin
from triton_viz.dsls.triton.symbolic.integers import wrap
from triton_viz.dsls.triton.symbolic.nodes import Sum
from triton_viz.dsls.triton.symbolic.symbolic_ops import Stopped
from triton_viz.dsls.triton.symbolic.symbolic_shapes import ShapeOps, reindexed
from triton_viz.dsls.triton.symbolic.symbolic_value import Symbolic, integer_type

_COMBINES = {
    getattr(tl.standard, name): operation
    for name, operation in {
        "_sum_combine": "sum",
        "_elementwise_max": "max",
        "_elementwise_min": "min",
        "_argmax_combine_tie_break_left": "pick",
        "_argmax_combine_tie_break_fast": "pick",
        "_argmin_combine_tie_break_left": "pick",
        "_argmin_combine_tie_break_fast": "pick",
    }.items()
    if hasattr(tl.standard, name)
}


class CombiningOps(ShapeOps):
    """The builder's ops that combine elements."""

    def create_reduce(
        self, inputs: tuple[Symbolic, ...], axis: int | None, combine: Any
    ) -> tuple[Symbolic, ...]:
        """Blocks with one axis (None: all) combined away."""
        operation = _operation(combine)
        if axis is None:
            inputs = tuple(self.create_reshape(x, (math.prod(x.shape),)) for x in inputs)
            axis = 0
        return tuple(self._reduced(x, axis, operation, combine) for x in inputs)

    def _reduced(self, x: Symbolic, axis: int, operation: str, combine: Any) -> Symbolic:
        size = x.shape[axis]
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        origin = Origin(f"tl.{operation}" if operation in ("sum", "max", "min") else _name(combine), x.origin)
        moved = {k: index(k - 1, x.shape[k]) for k in range(axis + 1, len(x.shape))}
        node = x.node
        if isinstance(node, Sum):
            along = index(axis, size)
            exact = None
            if not along.terms or along.terms[0][0] not in set(atoms_of(node, inside_unknowns=True)):
                exact = wrap(scale(node, size), integer_type(x.dtype)) if operation == "sum" else node
            elif operation in ("max", "min") and (by := _linear(node, along)):
                moved[axis] = number(size - 1 if (by > 0) == (operation == "max") else 0)
                exact = node
            if exact is not None and operation in ("sum", "max", "min", "pick"):
                return reindexed(Symbolic(exact, x.dtype, x.shape, origin), moved, shape)
            if operation in ("max", "min", "pick"):
                bounds = node.low, node.high
            else:
                bounds = (size * node.low, size * node.high) if operation == "sum" else None
            return self.open_value(x.dtype, shape, f"the result of {origin.op}", origin, bounds)
        return self.open_value(x.dtype, shape, f"the result of {origin.op}", origin)

    def create_scan(
        self, inputs: tuple[Symbolic, ...], axis: int, combine: Any, reverse: bool
    ) -> tuple[Symbolic, ...]:
        """Running combinations along an axis."""
        operation = _operation(combine)
        results = []
        for x in inputs:
            bounds = None
            if isinstance(x.node, Sum):
                size, low, high = x.shape[axis], x.node.low, x.node.high
                if operation == "sum":
                    bounds = min(low, size * low), max(high, size * high)
                elif operation:
                    bounds = low, high
            origin = Origin("a scan", x.origin)
            results.append(self.open_value(x.dtype, x.shape, "the result of a scan", origin, bounds))
        return tuple(results)

    def create_map_elementwise(
        self, inputs: tuple[Symbolic, ...], function: Any, pack: int
    ) -> list[Symbolic]:
        """Apply a function of scalars: symbolic values already describe one element."""
        if pack != 1:
            raise Stopped("tl.map_elementwise of several elements at a time is not followed")
        shape = inputs[0].shape
        scalars = [tl.tensor(Symbolic(x.node, x.dtype, (), x.origin), x.dtype) for x in inputs]
        found = self.inline(function, shape, *scalars)
        results = tuple(found) if isinstance(found, tuple | list | tl.tuple) else (found,)
        handles = [result.handle for result in results]
        return [Symbolic(h.node, h.dtype, shape, h.origin) for h in handles]

    def create_histogram(self, data: Symbolic, bins: int, mask: Symbolic | None = None) -> Symbolic:
        """The number of occurrences of each integer."""
        origin = Origin("tl.histogram", data.origin)
        return self.open_value(
            tl.int32, (bins,), "the result of tl.histogram", origin, (0, math.prod(data.shape))
        )

    def create_dot(self, a: Symbolic, b: Symbolic, accumulator: Symbolic, *_: Any) -> Symbolic:
        """A product of tiles."""
        origin = Origin("tl.dot", a.origin, b.origin)
        return self.open_value(accumulator.dtype, accumulator.shape, "the result of tl.dot", origin)

    def create_dot_scaled(self, a: Symbolic, *rest: Any) -> Symbolic:
        """A product of tiles with scales."""
        accumulator = rest[-1]
        origin = Origin("tl.dot_scaled", a.origin)
        return self.open_value(accumulator.dtype, accumulator.shape, "the result of tl.dot_scaled", origin)


def _operation(combine: Any) -> str:
    return next((operation for known, operation in _COMBINES.items() if known is combine), "")


def _name(combine: Any) -> str:
    return getattr(combine, "__name__", "a reduction").strip("_").removesuffix("_combine")


def _linear(node: Sum, along: Sum) -> int:
    """The constant step of a value along an axis; 0 if the step varies."""
    one = along.terms[0][0]
    rest = Sum(node.const, tuple(term for term in node.terms if term[0] is not one))
    nested = one in set(atoms_of(rest, inside_unknowns=True))
    return 0 if nested else node.coefficient(one)
