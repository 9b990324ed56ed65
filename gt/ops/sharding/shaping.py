"""The sharding rules of ops that rearrange elements."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from gt.ops.row import Spec
from gt.ops.sharding.split import Attrs, Rule, Split, linear, local, with_shape

Specs = tuple[Spec, ...]


def reshaped_axes(shape: tuple[int, ...], to: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """The axes of a shape that a reshape keeps, splits, or merges with the axes that follow.

    Each with the axis that it becomes, and its stride relative to the merged axes, before and after.

    >>> reshaped_axes((6, 4), (2, 3, 4)), reshaped_axes((2, 3, 4), (6, 4))
    ([(0, 0, 1, 3), (1, 2, 1, 1)], [(0, 0, 3, 1), (2, 1, 1, 1)])
    """
    if not math.prod(shape):
        return []
    found, i, j = [], 0, 0
    while i < len(shape) and j < len(to):
        first, other = i, j
        here, there, i, j = shape[i], to[j], i + 1, j + 1
        while here != there:
            if here < there:
                here, i = here * shape[i], i + 1
            else:
                there, j = there * to[j], j + 1
        if here > 1:
            a = next(axis for axis in range(first, i) if shape[axis] > 1)
            b = next(axis for axis in range(other, j) if to[axis] > 1)
            found.append((a, b, here // shape[a], there // to[b]))
    return found


def reshape(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis that the reshape keeps, splits or merges as the first one."""
    splits = [linear(1, 0)]
    for axis, place, unit, out_unit in reshaped_axes(inputs[0].shape, out.shape):

        def sizes(parts: tuple[int, ...], unit: int = unit, out_unit: int = out_unit) -> tuple[int, ...]:
            return tuple(n * unit // out_unit for n in parts)

        granularity = out_unit // math.gcd(out_unit, unit)
        steps = with_shape(out.shape, place)
        splits.append(Split((axis,), place, inputs[0].shape[axis], steps, sizes, granularity))
    return splits


def moved(order: Callable[[int, Attrs], Sequence[int]]) -> Rule:
    """An op that permutes axes: splits along every axis, and linear."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        dims = order(len(out.shape), attrs)
        moves = [Split((axis,), place, out.shape[place]) for place, axis in enumerate(dims)]
        return [*(split for split in moves if split.length > 1), linear(1, 0)]

    return rule


def swapped(rank: int, attrs: Attrs) -> list[int]:
    """The order of axes that a transpose makes."""
    dims = list(range(rank))
    if rank:
        i, j = attrs["dim0"], attrs["dim1"]
        dims[i], dims[j] = dims[j], dims[i]
    return dims


def expand(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis; a new or broadcast one needs the whole input."""
    (x,) = inputs
    new = len(out.shape) - len(x.shape)
    splits = [linear(1, 0)]
    for axis, n in enumerate(out.shape):
        own = axis - new
        steps = with_shape(out.shape, axis)
        if own >= 0 and x.shape[own] == n > 1:
            splits.append(Split((own,), axis, n, steps))
        elif n > 1:
            splits.append(Split((None,), axis, n, steps))
    return splits


def untouched(touched: Callable[[Attrs, int, int], bool], is_linear: bool = True) -> Rule:
    """Splits along every axis that the op does not change."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        new = len(out.shape) - len(inputs[0].shape)
        splits = [
            Split((axis - new,) * len(inputs), axis, n)
            for axis, n in enumerate(out.shape)
            if axis >= new and n > 1 and not touched(attrs, axis, len(out.shape))
        ]
        return splits + ([linear(len(inputs), *range(len(inputs)))] if is_linear else [])

    return rule


def _is_padded(attrs: Attrs, axis: int, rank: int) -> bool:
    return tuple(attrs["pads"][axis]) != (0, 0)


def pad(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis that is not padded; padding with zeros is linear."""
    return untouched(_is_padded, not attrs["value"])(inputs, attrs, out)


def stack(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis but the new one."""
    new = attrs["dim"] % len(out.shape)
    splits = [
        Split((axis - (axis > new),) * len(inputs), axis, n)
        for axis, n in enumerate(out.shape)
        if axis != new and n > 1
    ]
    return [*splits, linear(len(inputs), *range(len(inputs)))]


def triangle(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis; the index of the diagonal is adjusted for each part."""
    rank = len(out.shape)
    signs = {rank - 2: 1, rank - 1: -1}

    def steps(sign: int) -> Any:
        return local(lambda attrs, shard: {"diagonal": attrs["diagonal"] + sign * shard.start})

    splits = [
        Split((axis,), axis, n, steps(signs[axis]) if axis in signs else None)
        for axis, n in enumerate(out.shape)
        if n > 1
    ]
    return [*splits, linear(1, 0)]
