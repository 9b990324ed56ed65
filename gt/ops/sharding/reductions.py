"""The sharding rules of reductions, and of ops that run along a dimension."""

import math
from collections.abc import Callable
from typing import Any

from gt.ops.row import Spec
from gt.ops.sharding.split import Attrs, Rule, Shard, Split, Step, linear, with_shape

Specs = tuple[Spec, ...]


def dims_of(dim: Any, rank: int) -> set[int]:
    """The axes that an attribute `dim` names, counted from the front: one, several, or None for all."""
    if dim is None:
        return set(range(rank))
    return {d % max(rank, 1) for d in ((dim,) if isinstance(dim, int) else dim)}


def along(name: str = "dim") -> Rule:
    """Splits along every axis but the one that the op runs along."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        rank = len(inputs[0].shape)
        taken = dims_of(attrs[name], rank)
        return [
            Split((axis,) * len(inputs), axis, n)
            for axis, n in enumerate(inputs[0].shape)
            if axis not in taken and n > 1
        ]

    return rule


def _kept(x: Spec, attrs: Attrs) -> list[tuple[int, int]]:
    """The axes that a reduction keeps, each with its index in the result."""
    rank = len(x.shape)
    reduced = dims_of(attrs["dim"], rank)
    kept = [axis for axis in range(rank) if axis not in reduced]
    return [(axis, axis if attrs["keepdim"] else kept.index(axis)) for axis in kept]


def reduction(combine: str = "", steps: Any = None, is_linear: bool = False) -> Rule:
    """Splits along every axis that is kept; also along reduced axes if partial results can be combined."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        (x,) = inputs
        kept = _kept(x, attrs)
        splits = [Split((axis,), place, x.shape[axis]) for axis, place in kept if x.shape[axis] > 1]
        if combine and math.prod(x.shape):
            reduced = sorted(dims_of(attrs["dim"], len(x.shape)))
            must = combine != "sum" or steps is not None
            splits += [
                Split((axis,), combine, x.shape[axis], steps and steps(x.shape[axis]), nonempty=must)
                for axis in reduced
                if x.shape[axis] > 1
            ]
        return splits + ([linear(1, 0)] if is_linear else [])

    return rule


def weighted(length: int) -> Callable[[str, Attrs, Shard], list[Step]]:
    """The mean of a part, weighted by the part's share of the axis."""

    def steps(op: str, attrs: Attrs, shard: Shard) -> list[Step]:
        return [(op, attrs), ("mul", {"scalar": shard.size / length, "reflected": False})]

    return steps


def _without(axis: int, dim: int, shorter: bool) -> int:
    """The index of an axis in a tensor that may lack the dimension `dim`."""
    return axis - (shorter and axis > dim)


def take_along(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis but the one that elements are taken along."""
    x, index = inputs
    dim, shorter = attrs["dim"] % max(len(x.shape), 1), len(index.shape) < len(x.shape)
    return [
        Split((axis, _without(axis, dim, shorter)), _without(axis, dim, shorter), n)
        for axis, n in enumerate(x.shape)
        if axis != dim and n > 1
    ]


def put_along(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis but the one that elements are put along."""
    _, index = inputs
    dim, shorter = attrs["dim"] % max(len(out.shape), 1), len(index.shape) < len(out.shape)
    return [
        Split((_without(axis, dim, shorter),) * 2, axis, n, with_shape(out.shape, axis))
        for axis, n in enumerate(out.shape)
        if axis != dim and n > 1
    ]
