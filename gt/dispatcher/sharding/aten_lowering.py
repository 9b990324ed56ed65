"""Lowerings of aten ops with several results, which become several tensors: see `lowering.py`.

Batch normalization over a sharded batch needs the mean and the variance of all images; the mean of a loss
over sharded rows needs the number of all rows that are not ignored.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gt.dispatcher.sharding.lowering import LOWERINGS, WIDE, Program, _split
from gt.dispatcher.tensor_handle import TensorHandle
from gt.stream.instructions import Op


class Several(NamedTuple):
    """The instructions that replace one that has several results."""

    ops: Sequence[Any]
    results: Sequence[int]
    """The tensor of each result."""


def lower_several(cmd: Op, inputs: list[TensorHandle]) -> Several | None:
    """The instructions that replace an op whose inputs are in parts; None if the op itself is computed."""
    lowering = _ATEN_LOWERINGS.get(cmd.op)
    if lowering is None or inputs[0].spec.dtype not in WIDE:
        return None
    return lowering(cmd, inputs)


def _finished(program: Program, *results: int) -> Several:
    temporary = [number for number in program.temporary if number not in results]
    return Several([*program.ops, *temporary], results)


def nll_loss(cmd: Op, inputs: list[TensorHandle]) -> Several | None:
    """The mean of a loss over rows: their sum, divided by their total weight."""
    attrs: Any = dict(cmd.attrs or {})
    x, target = inputs[:2]
    in_parts = _split(x) == 0 or _split(target) == 0
    if attrs["reduction"] != 1 or len(x.spec.shape) != 2 or not in_parts:
        return None
    program = Program(cmd)
    both = program.add(cmd.op, *cmd.inputs, **{**attrs, "reduction": 2})
    total = program.add("item", both, index=0)
    # Adding a number is not linear, so this reduces the weight, once for the loss and its gradient.
    weight = program.number("add", program.add("item", both, index=1), 0.0)
    return _finished(program, program.add("truediv", total, weight), weight)


def _by_images(x: TensorHandle) -> bool:
    return _split(x) not in (None, 1) and len(x.spec.shape) > 1


def _channels(x: TensorHandle) -> tuple[list[int], list[int], float]:
    """The shape of one number a channel; the other axes; the number of elements of a channel."""
    shape = x.spec.shape
    dims = [axis for axis in range(len(shape)) if axis != 1]
    return [n if axis == 1 else 1 for axis, n in enumerate(shape)], dims, math.prod(shape) / max(shape[1], 1)


def batch_norm(cmd: Op, inputs: list[TensorHandle]) -> Several | None:
    """Batch normalization in training: a mean, a mean of squares, and elementwise ops."""
    attrs: Any = cmd.attrs or {}
    if not attrs.get("training") or not _by_images(inputs[0]):
        return None
    program, rest = Program(cmd), list(cmd.inputs)
    x = rest.pop(0)
    shape, dims, count = _channels(inputs[0])
    mean = program.add("mean", x, dim=dims, keepdim=True)
    centered = program.add("sub", x, mean)
    variance = program.add("mean", program.add("square", centered), dim=dims, keepdim=True)
    inverse = program.add("rsqrt", program.number("add", variance, float(attrs["eps"])))
    out = program.add("mul", centered, inverse)
    if attrs.get("weight"):
        out = program.add("mul", out, program.add("reshape", rest.pop(0), shape=shape))
    if attrs.get("bias"):
        out = program.add("add", out, program.add("reshape", rest.pop(0), shape=shape))
    per_channel = [shape[1]]
    own = program.add("reshape", mean, shape=per_channel)
    results = [out, own, program.add("reshape", inverse, shape=per_channel)]
    if rest:
        share = float(attrs["momentum"])
        unbiased = share * count / max(count - 1, 1)
        variance = program.add("reshape", variance, shape=per_channel)
        for running, new, weight in zip(rest, (own, variance), (share, unbiased), strict=True):
            kept = program.number("mul", running, 1 - share)
            results.append(program.add("add", kept, program.number("mul", new, weight)))
    return _finished(program, *results)


def batch_norm_backward(cmd: Op, inputs: list[TensorHandle]) -> Several | None:
    """The gradients of such a batch normalization."""
    attrs: Any = cmd.attrs or {}
    present = [
        name
        for name in ("weight", "running_mean", "running_var", "save_mean", "save_invstd")
        if attrs.get(name)
    ]
    if not attrs.get("train") or not _by_images(inputs[1]) or present[-2:] != ["save_mean", "save_invstd"]:
        return None
    program, given = Program(cmd), dict(zip(present, cmd.inputs[2:], strict=True))
    g, x = cmd.inputs[:2]
    shape, dims, count = _channels(inputs[1])
    mean = program.add("reshape", given["save_mean"], shape=shape)
    inverse = program.add("reshape", given["save_invstd"], shape=shape)
    normal = program.add("mul", program.add("sub", x, mean), inverse)
    total = program.add("sum", g, dim=dims, keepdim=True)
    projection = program.add("sum", program.add("mul", g, normal), dim=dims, keepdim=True)
    results = []
    mask = attrs["output_mask"]
    if mask[0]:
        correction = program.add("mul", normal, program.number("truediv", projection, count))
        difference = program.add(
            "sub", program.add("sub", g, program.number("truediv", total, count)), correction
        )
        scale = inverse
        if "weight" in given:
            scale = program.add("mul", inverse, program.add("reshape", given["weight"], shape=shape))
        results.append(program.add("mul", difference, scale))
    results += [
        program.add("reshape", one, shape=[shape[1]])
        for one, wanted in zip((projection, total), mask[1:], strict=True)
        if wanted
    ]
    return _finished(program, *results)


_ATEN_LOWERINGS: dict[str, Callable[[Op, list[TensorHandle]], Several | None]] = {
    "aten::nll_loss_forward": nll_loss,
    "aten::_native_batch_norm_legit_functional": batch_norm,
    "aten::_native_batch_norm_legit.no_stats": batch_norm,
    "aten::native_batch_norm_backward": batch_norm_backward,
}
LOWERINGS.update(_ATEN_LOWERINGS)
