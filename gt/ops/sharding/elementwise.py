"""The sharding rules of ops that compute one element at a time, and of ops that create tensors."""

import math
from collections.abc import Callable, Sequence

from gt.ops import dtypes
from gt.ops.row import Spec
from gt.ops.sharding.split import Attrs, Rule, Shard, Split, Step, linear, local, replaced

Specs = tuple[Spec, ...]


def aligned(shapes: Sequence[tuple[int, ...]], out: tuple[int, ...], axis: int) -> tuple[int | None, ...]:
    """The axis of each shape that broadcasting aligns with this one; None where it is broadcast."""
    own = [axis - (len(out) - len(shape)) for shape in shapes]
    return tuple(
        a if a >= 0 and shape[a] == out[axis] else None for a, shape in zip(own, shapes, strict=True)
    )


def pointwise(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis."""
    shapes = [x.shape for x in inputs]
    return [
        Split(aligned(shapes, out.shape, axis), axis, n)
        for axis, n in enumerate(out.shape)
        if n > 1 and inputs
    ]


def additive(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """A sum or difference: splits along every axis; of two tensors of one shape, also linear."""
    terms = [linear(2, 0, 1)] if len(inputs) == 2 and inputs[0].shape == inputs[1].shape else []
    return pointwise(inputs, attrs, out) + terms


def scaled(commutes: bool) -> Rule:
    """A product with, or a quotient by, a finite number other than 0: splits along every axis, and linear.

    Products with 0 or with a tensor are not treated as linear: a term may be infinite, and 0 times infinity
    is NaN.
    """

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        number = attrs.get("scalar")
        usual = number and math.isfinite(number) and (commutes or not attrs["reflected"])
        return pointwise(inputs, attrs, out) + ([linear(1, 0)] if usual else [])

    return rule


def cast(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """A cast: splits along every axis; to a wider dtype, also linear."""
    # In a narrower dtype, partial sums may overflow although their sum does not.
    before, after = inputs[0].dtype, out.dtype
    wider = dtypes.is_float(before) and dtypes.promote(before, after) == after
    return pointwise(inputs, attrs, out) + ([linear(1, 0)] if wider else [])


def negative(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """A negation: splits along every axis, and linear."""
    return [*pointwise(inputs, attrs, out), linear(1, 0)]


def dropout(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis: which elements are dropped depends on their index in the global tensor."""

    def steps(axis: int) -> Callable[[str, Attrs, Shard], list[Step]]:
        start = [0] * len(out.shape)

        def place(_: Attrs, shard: Shard) -> Attrs:
            return {"offset": replaced(tuple(start), axis, shard.start), "global_shape": out.shape}

        return local(place)

    return [Split((axis,), axis, n, steps(axis)) for axis, n in enumerate(out.shape) if n > 1]


def creation(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis: an element's value depends on its index in the global tensor, and on nothing
    else."""

    def steps(axis: int) -> Callable[[str, Attrs, Shard], list[Step]]:
        zeros = (0,) * len(out.shape)

        def create(op: str, given: Attrs, shard: Shard) -> list[Step]:
            part = {**given, "shape": replaced(out.shape, axis, shard.out_size)}
            if op != "full":
                part |= {"offset": replaced(zeros, axis, shard.out_start), "global_shape": out.shape}
            return [(op, part)]

        return create

    return [Split((), axis, n, steps(axis)) for axis, n in enumerate(out.shape)]
