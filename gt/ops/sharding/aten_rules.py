"""The sharding rules of aten ops that differ from those of rows: several results, and PyTorch's signatures.

The tensors among an op's arguments are its inputs, in the order of its schema, without optional ones that are
absent; results that an `output_mask` excludes are absent, too.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from gt.ops.row import Spec
from gt.ops.sharding.elementwise import aligned
from gt.ops.sharding.indexing import _array_axes, _of_picks, by_arrays, put_by_arrays
from gt.ops.sharding.products import contraction, convolution_splits
from gt.ops.sharding.reductions import dims_of
from gt.ops.sharding.split import Attrs, Shard, Split, Step, linear, local, replaced

Specs = tuple[Spec, ...]
AtenRule = Callable[[Specs, Attrs, Specs], list[Split]]
"""A `Rule` that gets the specs of all results."""


def pointwise(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along every axis of the results, which all have one shape."""
    shape = outs[0].shape
    if any(out.shape != shape for out in outs):
        return []
    shapes = [x.shape for x in inputs]
    to = [(axis,) * len(outs) if len(outs) > 1 else axis for axis in range(len(shape))]
    return [Split(aligned(shapes, shape, axis), to[axis], n) for axis, n in enumerate(shape) if n > 1]


def copied(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """A copy: splits along every axis, and linear."""
    return [*pointwise(inputs, attrs, outs), linear(1, 0)]


def _masked(attrs: Attrs, outputs: Sequence[int | str | None]) -> tuple[int | str | None, ...]:
    mask = attrs.get("output_mask") or [True] * len(outputs)
    return tuple([to for to, wanted in zip(outputs, mask, strict=True) if wanted])


# --- products ---


def addmm(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """A matrix product, or a batch of them, and a term, which one worker adds."""
    term, a, _ = inputs
    batch = ["batch"] if len(a.shape) == 3 else []
    output = [*batch, "row", "column"]
    names = output[len(output) - len(term.shape) :]
    return contraction((names, [*batch, "row", "k"], [*batch, "k", "column"]), output, inputs, once=0)


def attention(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along the batch and the heads, forward and backward. A mask is the last input, and may
    broadcast. Grouped queries have several heads for each head of the keys, which stay together."""
    tensors = inputs[:-1] if attrs.get("attn_mask") else inputs
    splits = []
    for axis in (0, 1):
        length = min(x.shape[axis] for x in tensors)
        if length < 2 or any(x.shape[axis] % length for x in tensors):
            continue
        most = max(x.shape[axis] for x in tensors)
        cuts: list[int | str | None] = [axis] * len(tensors)
        for mask in inputs[len(tensors) :]:
            own = axis + len(mask.shape) - 4
            cuts.append(own if own >= 0 and mask.shape[own] == most else None)
        sizes = [
            x.shape[cut] if isinstance(cut, int) else length for x, cut in zip(inputs, cuts, strict=True)
        ]
        units = tuple([n // length for n in (*sizes, *[out.shape[axis] for out in outs])])
        splits.append(Split(tuple(cuts), (axis,) * len(outs), length, nonempty=True, units=units))
    return splits


def convolution(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along the batch; without groups, also along the output and the input channels."""
    terms = [("image", "in"), ("out", "in"), ("out",)][: len(inputs)]
    if attrs.get("transposed"):
        terms[1] = ("in", "out")
    splits = contraction(terms, ("image", "out"), inputs, once=2 if len(inputs) == 3 else -1)
    return convolution_splits(splits, attrs)


def convolution_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """The gradients of the input, the weight and the bias: splits along the same axes."""
    g, x, weight = inputs
    splits = [Split((0, 0, None), _masked(attrs, (0, "sum", "sum")), x.shape[0], nonempty=True)]
    if attrs["groups"] == 1 and not attrs.get("transposed"):

        def bias(given: Attrs, shard: Shard) -> Attrs:
            return {"bias_sizes": [shard.size]} if given.get("bias_sizes") else {}

        out = _masked(attrs, ("sum", 0, 0))
        splits.append(Split((1, None, 0), out, g.shape[1], local(bias), nonempty=True))
        splits.append(Split((None, 1, 1), _masked(attrs, (1, 1, None)), weight.shape[1], nonempty=True))
    return [split for split in splits if split.length > 1]


# --- normalization ---


def layer_norm(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along every axis that is not normalized."""
    x, others = inputs[0], len(inputs) - 1
    return [
        Split((axis, *[None] * others), (axis,) * 3, n, nonempty=True)
        for axis, n in enumerate(x.shape[: len(x.shape) - len(attrs["normalized_shape"])])
        if n > 1
    ]


def layer_norm_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along the same axes; the gradients of weight and bias are added up."""
    x, rest = inputs[1], len(inputs) - 4
    return [
        Split((axis,) * 4 + (None,) * rest, _masked(attrs, (axis, "sum", "sum")), n, nonempty=True)
        for axis, n in enumerate(x.shape[: len(x.shape) - len(attrs["normalized_shape"])])
        if n > 1
    ]


def _images(attrs: Attrs, shard: Shard) -> Attrs:
    return {"N": shard.size}


def group_norm(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along the batch."""
    n = inputs[0].shape[0]
    rest = (None,) * (len(inputs) - 1)
    return [Split((0, *rest), (0, 0, 0), n, local(_images), nonempty=True)] if n > 1 else []


def group_norm_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along the batch; the gradients of weight and bias are added up."""
    n, rest = inputs[0].shape[0], (None,) * (len(inputs) - 4)
    out = _masked(attrs, (0, "sum", "sum"))
    return [Split((0, 0, 0, 0, *rest), out, n, local(_images), nonempty=True)] if n > 1 else []


def by_channels(images: int) -> AtenRule:
    """Batch normalization: splits along channels. The first inputs are images, the others vectors."""

    def rule(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
        channels = inputs[0].shape[1]
        if channels < 2:
            return []
        rank = len(inputs[0].shape)
        own = tuple([1 if index < images else 0 for index in range(len(inputs))])
        out = tuple([1 if len(one.shape) == rank else 0 for one in outs])
        splits = [Split(own, out, channels, nonempty=True)]
        images_too = images == 1 and not attrs.get("training") and outs[1].shape == (0,)
        if images_too and inputs[0].shape[0] > 1:
            alone = (0, *[None] * (len(inputs) - 1))
            splits.append(Split(alone, (0, None, None), inputs[0].shape[0], nonempty=True))
        return [
            split for split in splits if all(0 not in one.shape for one in outs) or split is not splits[0]
        ]

    return rule


# --- pooling and other ops on the last axes of images ---


def of_images(spatial: int) -> AtenRule:
    """Splits along every axis but the last ones."""

    def rule(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
        axes = range(len(outs[0].shape) - spatial)
        return [
            Split((axis,) * len(inputs), (axis,) * len(outs) if len(outs) > 1 else axis, n, nonempty=True)
            for axis in axes
            if (n := outs[0].shape[axis]) > 1 and all(x.shape[axis] == n for x in inputs)
        ]

    return rule


def upsample_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along the batch and the channels: the size of the input is an attribute."""
    shape = outs[0].shape

    def sizes(axis: int) -> Any:
        return local(lambda given, shard: {"input_size": list(replaced(shape, axis, shard.out_size))})

    return [
        Split((axis,), axis, shape[axis], sizes(axis), nonempty=True) for axis in (0, 1) if shape[axis] > 1
    ]


# --- losses ---


def nll_loss(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """A sum over rows; a mean has a lowering."""
    x, rest = inputs[0], (None,) * (len(inputs) - 2)
    if attrs["reduction"] != 2 or len(x.shape) != 2 or x.shape[0] < 2:
        return []
    return [Split((0, 0, *rest), ("sum", "sum"), x.shape[0], nonempty=True)]


def nll_loss_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along rows: every worker gets the total weight of all rows."""
    x, rest = inputs[1], (None,) * (len(inputs) - 3)
    if len(x.shape) != 2 or x.shape[0] < 2:
        return []
    return [Split((None if attrs["reduction"] else 0, 0, 0, *rest), 0, x.shape[0], nonempty=True)]


MEAN, SUM = 1, 2
"""PyTorch's numbers for reductions."""


def _as_share(length: int) -> Callable[[str, Attrs, Shard], list[Step]]:
    """A sum over a part, divided by the number of elements of all parts."""

    def steps(op: str, attrs: Attrs, shard: Shard) -> list[Step]:
        return [(op, {**attrs, "reduction": SUM}), ("mul", {"scalar": 1 / length, "reflected": False})]

    return steps


def loss(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """An elementwise loss, and its sum or mean: splits along every axis."""
    reduction, shape = attrs.get("reduction", MEAN), inputs[0].shape
    if any(x.shape != shape for x in inputs):
        return []
    if not reduction:
        return pointwise(inputs, attrs, outs)
    steps = _as_share(math.prod(shape)) if reduction == MEAN else None
    return [Split((axis,) * len(inputs), "sum", n, steps) for axis, n in enumerate(shape) if n > 1]


def loss_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """The gradient of an elementwise loss; the first input is the gradient of its result."""
    reduction, shape = attrs.get("reduction", MEAN), inputs[1].shape
    if any(x.shape != shape for x in inputs[1:]) or (reduction and inputs[0].shape):
        return []
    if not reduction:
        return pointwise(inputs, attrs, outs)
    steps = _as_share(math.prod(shape)) if reduction == MEAN else None
    own = len(inputs) - 1
    return [Split((None, *[axis] * own), axis, n, steps) for axis, n in enumerate(shape) if n > 1]


# --- along a dimension ---


def along(default: int | None = None) -> AtenRule:
    """Splits along every axis but `dim`, which results may lack."""

    def rule(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
        shape = inputs[0].shape
        given = attrs.get("dim", default)
        dims = dims_of(given if given != [] else None, len(shape))
        splits, shorter = [], len(outs[0].shape) < len(shape)
        for axis, n in enumerate(shape):
            if axis in dims or n < 2 or any(x.shape[axis : axis + 1] != (n,) for x in inputs):
                continue
            place = axis - sum(dim < axis for dim in dims) if shorter else axis
            out = (place,) * len(outs) if len(outs) > 1 else place
            splits.append(Split((axis,) * len(inputs), out, n, nonempty=True))
        return splits

    return rule


def untouched(dims: Callable[[Attrs, int], set[int]]) -> AtenRule:
    """Splits along every axis that the op does not change."""

    def rule(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
        shape = outs[0].shape
        if any(len(x.shape) != len(shape) for x in inputs):
            return []
        touched = dims(attrs, len(shape))
        return [
            Split((axis,) * len(inputs), axis, n)
            for axis, n in enumerate(shape)
            if axis not in touched and n > 1 and all(x.shape[axis] == n for x in inputs)
        ]

    return rule


def padded(attrs: Attrs, rank: int) -> set[int]:
    """The axes that `constant_pad_nd` pads: pairs of numbers, from the last axis on."""
    pad = attrs["pad"]
    return {rank - 1 - n // 2 for n in range(0, len(pad), 2) if pad[n] or pad[n + 1]}


def rolled(attrs: Attrs, rank: int) -> set[int]:
    """The axes that `roll` or `flip` changes."""
    return dims_of(attrs.get("dims") or None, rank)


def slice_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """The gradient of a slice or of one entry: splits along every other axis, and linear."""
    g, shape = inputs[0], outs[0].shape
    dim = attrs["dim"] % max(len(shape), 1)
    shorter = len(g.shape) < len(shape)

    def sizes(axis: int) -> Any:
        return local(lambda given, shard: {"input_sizes": list(replaced(shape, axis, shard.out_size))})

    splits = [
        Split((axis - (shorter and axis > dim),), axis, n, sizes(axis))
        for axis, n in enumerate(shape)
        if axis != dim and n > 1
    ]
    return [*splits, linear(1, 0)]


def index_select(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along every axis that is not indexed, and along the indices."""
    x, index = inputs
    rank = len(x.shape)
    if not rank or len(index.shape) != 1:
        return []
    dim = attrs["dim"] % rank
    splits = [Split((axis, None), axis, n) for axis, n in enumerate(x.shape) if axis != dim and n > 1]
    return [*splits, *([Split((None, 0), dim, index.shape[0])] if index.shape[0] > 1 else [])]


def index(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along every axis that is not indexed, and along the indices."""
    dims = [axis for axis, there in enumerate(attrs["indices"]) if there]
    if not dims or any(pick.dtype in ("bool", "uint8") for pick in inputs[1:]):
        return []
    return by_arrays(inputs, {"dims": dims}, outs[0])


def index_put(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along every axis that is not indexed; along the indices, values that are added up."""
    x, *picks, values = inputs
    dims = [axis for axis, there in enumerate(attrs["indices"]) if there]
    if not dims or any(pick.dtype in ("bool", "uint8") for pick in picks):
        return []
    kept = put_by_arrays((x, values, *picks), {"dims": dims}, outs[0])
    splits = [
        Split((cut[0], *cut[2:], cut[1]), one.output, one.length) for one in kept if (cut := one.inputs)
    ]
    if attrs.get("accumulate"):
        rest, place, picked = _array_axes(len(x.shape), dims, picks)
        rank = len(rest) + picked
        for axis in range(picked):
            n = max(pick.shape[axis - picked] for pick in picks if len(pick.shape) >= picked - axis)
            own = place + axis - (rank - len(values.shape))
            cut = own if own >= 0 and values.shape[own] == n else None
            if n > 1:
                splits.append(Split(("once", *_of_picks(picks, picked, axis, n), cut), "sum", n))
    return splits


def index_add(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along every axis that is not indexed, and along the indices, whose rows are added up."""
    x, index, source = inputs
    rank = len(x.shape)
    if not rank or len(source.shape) != rank or len(index.shape) != 1:
        return []
    dim = attrs["dim"] % rank
    splits = [Split((axis, None, axis), axis, n) for axis, n in enumerate(x.shape) if axis != dim and n > 1]
    return [*splits, *([Split(("once", 0, dim), "sum", index.shape[0])] if index.shape[0] > 1 else [])]


def embedding_bag(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """Splits along the columns of the table. What was largest in a bag is known for each column."""
    columns, whole = inputs[0].shape[1], (None,) * (len(inputs) - 1)
    out = tuple([1 if len(one.shape) == 2 else None for one in outs])
    return [Split((1, *whole), out, columns, nonempty=True)] if columns > 1 else []


def embedding_bag_backward(inputs: Specs, attrs: Attrs, outs: Specs) -> list[Split]:
    """The gradient of the table: splits along its columns."""
    columns = outs[0].shape[1]
    cuts = tuple([1 if len(x.shape) == 2 else None for x in inputs])
    return [Split(cuts, 1, columns, nonempty=True)] if columns > 1 else []
