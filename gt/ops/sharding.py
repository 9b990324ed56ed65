"""The sharding rules: for each kind of op, the ways it can be carried out in parts."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from gt.ops import dtypes
from gt.ops.row import Row, Spec
from gt.ops.sharding_index import (
    by_arrays,
    by_arrays_gradient,
    getitem,
    getitem_gradient,
    put_by_arrays,
    setitem,
)
from gt.ops.sharding_products import (
    conv2d,
    einsum,
    image_gradient,
    linear_layer,
    matmul,
    pooling,
    told_shape,
)
from gt.ops.split import Attrs, Rule, Shard, Split, Step, linear, local, replaced, with_shape

Specs = tuple[Spec, ...]

# --- one element at a time ---


def aligned(shapes: Sequence[tuple[int, ...]], out: tuple[int, ...], axis: int) -> tuple[int | None, ...]:
    """The axis of each shape that broadcasting brings to this one; None where it is stretched."""
    own = [axis - (len(out) - len(shape)) for shape in shapes]
    return tuple(
        a if a >= 0 and shape[a] == out[axis] else None for a, shape in zip(own, shapes, strict=True)
    )


def pointwise(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Along every axis."""
    shapes = [x.shape for x in inputs]
    return [
        Split(aligned(shapes, out.shape, axis), axis, n)
        for axis, n in enumerate(out.shape)
        if n > 1 and inputs
    ]


def _additive(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    terms = [linear(2, 0, 1)] if len(inputs) == 2 and inputs[0].shape == inputs[1].shape else []
    return pointwise(inputs, attrs, out) + terms


def _scaled(commutes: bool) -> Rule:
    """A product with, or a quotient by, a number is linear; but 0 times infinity is no term of anything.

    For the same reason a product with another tensor is not taken for linear: its values are not known.
    """

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        number = attrs.get("scalar")
        usual = number and math.isfinite(number) and (commutes or not attrs["reflected"])
        return pointwise(inputs, attrs, out) + ([linear(1, 0)] if usual else [])

    return rule


def _cast(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    # To a wider dtype only: terms may be too large for a narrow one though their sum is not.
    before, after = inputs[0].dtype, out.dtype
    wider = dtypes.is_float(before) and dtypes.promote(before, after) == after
    return pointwise(inputs, attrs, out) + ([linear(1, 0)] if wider else [])


def _negative(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    return [*pointwise(inputs, attrs, out), linear(1, 0)]


def dropout(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Along every axis: what is dropped depends on an element's place in the whole."""

    def steps(axis: int) -> Callable[[str, Attrs, Shard], list[Step]]:
        start = [0] * len(out.shape)

        def place(_: Attrs, shard: Shard) -> Attrs:
            return {"at": replaced(tuple(start), axis, shard.start), "of": out.shape}

        return local(place)

    return [Split((axis,), axis, n, steps(axis)) for axis, n in enumerate(out.shape) if n > 1]


def creation(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Along every axis: an element's value depends on its place in the whole, and on nothing else."""

    def steps(axis: int) -> Callable[[str, Attrs, Shard], list[Step]]:
        zeros = (0,) * len(out.shape)

        def create(op: str, given: Attrs, shard: Shard) -> list[Step]:
            part = {**given, "shape": replaced(out.shape, axis, shard.out_size)}
            if op != "full":
                part |= {"at": replaced(zeros, axis, shard.out_start), "of": out.shape}
            return [(op, part)]

        return create

    return [Split((), axis, n, steps(axis)) for axis, n in enumerate(out.shape)]


# --- along a dimension ---


def _dims(dim: Any, rank: int) -> set[int]:
    if dim is None:
        return set(range(rank))
    return {d % max(rank, 1) for d in ((dim,) if isinstance(dim, int) else dim)}


def along(name: str = "dim") -> Rule:
    """Along every axis but the one that the op runs along."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        rank = len(inputs[0].shape)
        taken = _dims(attrs[name], rank)
        return [
            Split((axis,) * len(inputs), axis, n)
            for axis, n in enumerate(inputs[0].shape)
            if axis not in taken and n > 1
        ]

    return rule


def _kept(x: Spec, attrs: Attrs) -> list[tuple[int, int]]:
    """The axes that a reduction keeps, and where they are in its result."""
    rank = len(x.shape)
    gone = _dims(attrs["dim"], rank)
    kept = [axis for axis in range(rank) if axis not in gone]
    return [(axis, axis if attrs["keepdim"] else kept.index(axis)) for axis in kept]


def reduction(combine: str = "", steps: Any = None, is_linear: bool = False) -> Rule:
    """Along every axis that is kept; along the others too, if parts can be combined."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        (x,) = inputs
        kept = _kept(x, attrs)
        splits = [Split((axis,), place, x.shape[axis]) for axis, place in kept if x.shape[axis] > 1]
        if combine and math.prod(x.shape):
            gone = sorted(_dims(attrs["dim"], len(x.shape)))
            must = combine != "sum" or steps is not None
            splits += [
                Split((axis,), combine, x.shape[axis], steps and steps(x.shape[axis]), nonempty=must)
                for axis in gone
                if x.shape[axis] > 1
            ]
        return splits + ([linear(1, 0)] if is_linear else [])

    return rule


def _weighted(length: int) -> Callable[[str, Attrs, Shard], list[Step]]:
    """A mean over a part counts for as much as the part is of the whole."""

    def steps(op: str, attrs: Attrs, shard: Shard) -> list[Step]:
        return [(op, attrs), ("mul", {"scalar": shard.size / length, "reflected": False})]

    return steps


def loss(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """A loss over pairs of elements: in parts along every axis."""
    shape, how = inputs[0].shape, attrs["reduction"]
    if how == "none":
        return pointwise(inputs, attrs, out)
    return [
        Split(
            (axis,) * len(inputs), "sum", n, _weighted(n) if how == "mean" else None, nonempty=how == "mean"
        )
        for axis, n in enumerate(shape)
        if n > 1
    ]


def class_loss(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """A loss over classes, by rows, unless it is a mean: over how many rows, only the targets know."""
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
    """The gradient of such a loss."""
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
    """Along every axis that is not normalized."""
    rank = len(out.shape) - len(attrs["normalized_shape"])
    return [
        Split(tuple(axis if len(x.shape) == len(out.shape) else None for x in inputs), axis, n)
        for axis, n in enumerate(out.shape[:rank])
        if n > 1
    ]


# --- shapes ---


def surviving(shape: tuple[int, ...], to: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """The axes of a shape that a reshape leaves in place, in whole or cut or merged with what follows.

    Each with the axis it becomes, and how many elements one step along it is, before and after.

    >>> surviving((6, 4), (2, 3, 4)), surviving((2, 3, 4), (6, 4))
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
    """Along every axis that survives."""
    splits = [linear(1, 0)]
    for axis, place, unit, out_unit in surviving(inputs[0].shape, out.shape):

        def sizes(parts: tuple[int, ...], unit: int = unit, out_unit: int = out_unit) -> tuple[int, ...]:
            return tuple(n * unit // out_unit for n in parts)

        granule = out_unit // math.gcd(out_unit, unit)
        steps = with_shape(out.shape, place)
        splits.append(Split((axis,), place, inputs[0].shape[axis], steps, sizes, granule))
    return splits


def _moved(order: Callable[[int, Attrs], Sequence[int]]) -> Rule:
    """An op that puts axes into another order."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        dims = order(len(out.shape), attrs)
        moves = [Split((axis,), place, out.shape[place]) for place, axis in enumerate(dims)]
        return [*(split for split in moves if split.length > 1), linear(1, 0)]

    return rule


def _swapped(rank: int, attrs: Attrs) -> list[int]:
    dims = list(range(rank))
    if rank:
        i, j = attrs["dim0"], attrs["dim1"]
        dims[i], dims[j] = dims[j], dims[i]
    return dims


def expand(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Along every axis that is there already; along a new one nobody needs more than the whole input."""
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
    """Along every axis that the op leaves alone."""

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


def _pad_shapes(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    return untouched(_is_padded, not attrs["value"])(inputs, attrs, out)


def stack(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Along every axis but the new one."""
    new = attrs["dim"] % len(out.shape)
    splits = [
        Split((axis - (axis > new),) * len(inputs), axis, n)
        for axis, n in enumerate(out.shape)
        if axis != new and n > 1
    ]
    return [*splits, linear(len(inputs), *range(len(inputs)))]


def triangle(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Along every axis: in a part, the diagonal is elsewhere."""
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


# --- picking and putting ---


def embedding(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """By indices, and by columns of the table."""
    weight, index = inputs
    splits = [Split((None, axis), axis, n) for axis, n in enumerate(index.shape) if n > 1]
    columns = weight.shape[1]
    return [*splits, *([Split((1, None), len(out.shape) - 1, columns)] if columns > 1 else [])]


def embedding_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """By columns; by indices, the parts are added up."""
    g, index = inputs
    columns = [Split((len(g.shape) - 1, None), 1, out.shape[1])] if out.shape[1] > 1 else []
    return columns + [Split((axis, axis), "sum", n) for axis, n in enumerate(index.shape) if n > 1]


def _beside(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Ops along `dim` over tensors of one rank: along every other axis where all are equally long."""
    dim = attrs["dim"] % max(len(out.shape), 1)
    shapes = [x.shape for x in inputs] + [out.shape]
    return [
        Split((axis,) * len(inputs), axis, n)
        for axis, n in enumerate(out.shape)
        if axis != dim and n > 1 and all(shape[axis] == n for shape in shapes)
    ]


def _gather(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    dim = attrs["dim"] % max(len(out.shape), 1)
    splits = _beside(inputs, attrs, out)
    return splits + ([Split((None, dim), dim, out.shape[dim])] if out.shape and out.shape[dim] > 1 else [])


def _gather_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    dim, g = attrs["dim"] % max(len(out.shape), 1), inputs[0]
    splits = [told_shape(split, out) for split in _beside(inputs, attrs, out)]
    return splits + ([Split((dim, dim), "sum", g.shape[dim])] if g.shape and g.shape[dim] > 1 else [])


def _without(axis: int, dim: int, shorter: bool) -> int:
    """Where an axis is in a tensor that may lack the dimension `dim`."""
    return axis - (shorter and axis > dim)


def _take_along(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    x, index = inputs
    dim, shorter = attrs["dim"] % max(len(x.shape), 1), len(index.shape) < len(x.shape)
    return [
        Split((axis, _without(axis, dim, shorter)), _without(axis, dim, shorter), n)
        for axis, n in enumerate(x.shape)
        if axis != dim and n > 1
    ]


def _put_along(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    _, index = inputs
    dim, shorter = attrs["dim"] % max(len(out.shape), 1), len(index.shape) < len(out.shape)
    return [
        Split((_without(axis, dim, shorter),) * 2, axis, n, with_shape(out.shape, axis))
        for axis, n in enumerate(out.shape)
        if axis != dim and n > 1
    ]


def gathers(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """No clever rule: whoever does it needs all of its inputs."""
    return []


KINDS: dict[str, Rule] = {
    "UnaryOp": pointwise,
    "BinaryOp": pointwise,
    "TernaryOp": pointwise,
    "CreateTensor": creation,
}
"""By kind of op."""

RULES: dict[str, Rule] = {
    "add": _additive,
    "sub": _additive,
    "mul": _scaled(commutes=True),
    "truediv": _scaled(commutes=False),
    "neg": _negative,
    "cast": _cast,
    "softmax": along(),
    "log_softmax": along(),
    "sum": reduction("sum", is_linear=True),
    "mean": reduction("sum", _weighted, is_linear=True),
    "amax": reduction("max"),
    "amin": reduction("min"),
    "all": reduction("min"),
    "any": reduction("max"),
    **{name: reduction() for name in ("prod", "argmax", "argmin", "var", "std", "norm", "logsumexp")},
    "cumsum": along(),
    "cumprod": along(),
    "take_along": _take_along,
    "put_along": _put_along,
    "transpose": _moved(_swapped),
    "permute": _moved(lambda rank, attrs: [dim % rank for dim in attrs["dims"]]),
    "reshape": reshape,
    "expand": expand,
    "repeat": untouched(lambda attrs, axis, rank: attrs["repeats"][axis] != 1),
    "flip": untouched(lambda attrs, axis, rank: axis in _dims(attrs["dims"], rank)),
    "roll": untouched(lambda attrs, axis, rank: not attrs["dims"] or axis in _dims(attrs["dims"], rank)),
    "pad": _pad_shapes,
    "cat": untouched(lambda attrs, axis, rank: axis == attrs["dim"] % rank),
    "stack": stack,
    "tril": triangle,
    "triu": triangle,
    "getitem": getitem,
    "getitem_grad": getitem_gradient,
    "setitem": setitem,
    "index": by_arrays,
    "index_grad": by_arrays_gradient,
    "index_put": put_by_arrays,
    "gather": _gather,
    "gather_grad": _gather_gradient,
    "scatter": _beside,
    "scatter_add": _beside,
    "embedding": embedding,
    "embedding_grad": embedding_gradient,
    "argsort": along(),
    "topk": along(),
    "one_hot": lambda inputs, attrs, out: pointwise(inputs, attrs, inputs[0]),
    "matmul": matmul,
    "linear": linear_layer,
    "einsum": einsum,
    "conv2d": conv2d,
    "conv2d_input_grad": image_gradient((("image", "out"), ("out", "in")), ("image", "in")),
    "conv2d_weight_grad": image_gradient((("image", "out"), ("image", "in")), ("out", "in")),
    **dict.fromkeys(("max_pool2d", "max_pool2d_indices", "avg_pool2d", "avg_pool2d_grad"), pooling),
    "layer_norm": layer_norm,
    "layer_norm_grad": layer_norm,
    **dict.fromkeys(("cross_entropy", "nll_loss"), class_loss),
    **dict.fromkeys(("cross_entropy_grad", "nll_loss_grad"), class_loss_gradient),
    **dict.fromkeys(("mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"), loss),
    "binary_cross_entropy_grad": pointwise,
    "dropout": dropout,
    **dict.fromkeys(("weighted_sum", "average_of_squares", "adaptive_step"), pointwise),
    "total_norm": gathers,
}
"""By op, where its kind is not enough."""


def rule_of(row: Row) -> Rule:
    """An op's rule."""
    return RULES.get(row.name) or KINDS.get(row.kind) or gathers
