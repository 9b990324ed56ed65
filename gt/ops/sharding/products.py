"""The sharding rules of matrix products, einsum, convolution and pooling."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from gt.ops.row import Spec
from gt.ops.sharding.split import Attrs, Rule, Split, with_shape

Specs = tuple[Spec, ...]

# --- products ---


def contraction(
    terms: Sequence[Sequence[Any]], output: Sequence[Any], specs: Specs, once: int = -1
) -> list[Split]:
    """A sum of products over named axes: splits along each of them. Axes that the result lacks are summed."""
    names = dict.fromkeys(name for term in terms for name in term)
    splits = []
    for name in names:
        if any(list(term).count(name) > 1 for term in terms) or list(output).count(name) > 1:
            continue
        axes: list[int | str | None] = []
        sizes = set()
        for term, x in zip(terms, specs, strict=True):
            axis = list(term).index(name) if name in term else None
            if axis is not None and x.shape[axis] == 1:
                axis = None  # it is broadcast
            if axis is not None:
                sizes.add(x.shape[axis])
            axes.append(axis)
        if len(sizes) != 1:
            continue
        summed = name not in output
        if summed and once >= 0:
            axes[once] = "once"
        splits.append(Split(tuple(axes), "sum" if summed else list(output).index(name), sizes.pop()))
    return splits


def matmul(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along rows, columns, the contracted axis, and batch axes."""
    a, b = inputs
    rank = max(len(a.shape), len(b.shape))
    left: list[Any] = [f"batch{rank - 2 - n}" for n in range(len(a.shape) - 2, 0, -1)] + ["row", "k"][
        -len(a.shape) :
    ]
    right: list[Any] = [f"batch{rank - 2 - n}" for n in range(len(b.shape) - 2, 0, -1)]
    right += ["k"] if len(b.shape) == 1 else ["k", "column"]
    batch = [f"batch{n}" for n in range(rank - 2)] if rank > 2 else []
    tail = [name for name in ("row", "column") if name in left + right]
    return contraction((left, right), [*batch, *tail], inputs)


def linear_layer(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """As a matrix product; one worker adds the bias."""
    x, weight, *bias = inputs
    lead = [f"row{n}" for n in range(len(x.shape) - 1)]
    tail = ["column"] if len(weight.shape) == 2 else []
    output = [*lead, *tail]
    terms: list[Any] = [[*lead, "k"], [*tail, "k"]]
    for b in bias:
        terms.append(output[len(output) - len(b.shape) :])
    return contraction(terms, output, inputs, once=2 if bias else -1)


def linear_weight_gradient(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along rows, columns, and the batch, over which it sums."""
    lead = [f"row{n}" for n in range(len(inputs[0].shape) - 1)]
    return contraction(([*lead, "row"], [*lead, "column"]), ("row", "column"), inputs)


def einsum(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along every axis of the equation."""
    left, output = attrs["equation"].split("->")
    return contraction(left.split(","), output, inputs)


# --- images ---


def conv2d(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along the batch, the output channels and the input channels."""
    terms = [("image", "in"), ("out", "in"), ("out",)][: len(inputs)]
    splits = contraction(terms, ("image", "out"), inputs, once=2 if len(inputs) == 3 else -1)
    return convolution_splits(splits, attrs)


def convolution_splits(splits: list[Split], attrs: Attrs) -> list[Split]:
    """The splits of a convolution that apply: with groups, only along the batch. No part may be empty."""
    if attrs["groups"] != 1:
        splits = [split for split in splits if split.inputs[0] == 0]
    return [dataclasses.replace(split, nonempty=True) for split in splits]


def image_gradient(terms: Sequence[Sequence[str]], output: Sequence[str]) -> Rule:
    """A gradient of a convolution: also a product, with an attribute for its result's shape."""

    def rule(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
        splits = convolution_splits(contraction(terms, output, inputs), attrs)
        return [with_output_shape(split, out) for split in splits]

    return rule


def with_output_shape(split: Split, out: Spec) -> Split:
    """The split, for an op that has its result's shape as an attribute."""
    if not isinstance(split.output, int):
        return split
    return dataclasses.replace(split, steps=with_shape(out.shape, split.output))


def pooling(inputs: Specs, attrs: Attrs, out: Spec) -> list[Split]:
    """Splits along the batch and the channels."""
    splits = [Split((axis,), axis, n, nonempty=True) for axis, n in enumerate(out.shape[:2]) if n > 1]
    return [with_output_shape(split, out) for split in splits] if "shape" in attrs else splits
