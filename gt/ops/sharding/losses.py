"""The sharding rules of losses and normalizations."""

from gt.ops.row import Spec
from gt.ops.sharding.elementwise import pointwise
from gt.ops.sharding.reductions import weighted
from gt.ops.sharding.split import Attrs, Split

Specs = tuple[Spec, ...]


def loss(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """An elementwise loss: splits along every axis."""
    shape, how = inputs[0].shape, attrs["reduction"]
    if how == "none":
        return pointwise(inputs, attrs, out)
    return [
        Split((axis,) * len(inputs), "sum", n, weighted(n) if how == "mean" else None, nonempty=how == "mean")
        for axis, n in enumerate(shape)
        if n > 1
    ]


def class_loss(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """A loss over classes: splits along rows. A mean has none: its divisor depends on the targets' values."""
    _, target, *weight = inputs
    if attrs["reduction"] == "mean" or not target.shape:
        return []
    splits = []
    for axis, n in enumerate(target.shape):
        own = axis if axis == 0 else axis + 1  # dimension 1 is that of the classes
        output = axis if attrs["reduction"] == "none" else "sum"
        splits += [Split((own, axis, *[None] * len(weight)), output, n)] if n > 1 else []
    return splits


def class_loss_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """The gradient of a loss over classes: the same splits."""
    g, _, target, *weight = inputs
    if attrs["reduction"] == "mean" or not target.shape:
        return []
    splits = []
    for axis, n in enumerate(target.shape):
        own = axis if axis == 0 else axis + 1
        given = axis if g.shape else None
        splits += [Split((given, own, axis, *[None] * len(weight)), own, n)] if n > 1 else []
    return splits


def layer_norm(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis that is not normalized."""
    rank = len(out.shape) - len(attrs["normalized_shape"])
    return [
        Split(tuple(axis if len(x.shape) == len(out.shape) else None for x in inputs), axis, n)
        for axis, n in enumerate(out.shape[:rank])
        if n > 1
    ]
