"""Ops that arrange elements anew, and change none."""

import functools
from typing import Any

from gt.errors import ShapeError
from gt.ops import dtypes, shapes
from gt.ops.row import Infer, Row, Spec, engines
from gt.ops.rules import sum_to

# --- results ---


def _transpose(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape = list(inputs[0].shape)
    if shape:  # a number has no dimensions to swap, and PyTorch lets it pass
        i, j = attrs["dim0"], attrs["dim1"]
        shape[i], shape[j] = shape[j], shape[i]
    return Spec(tuple(shape), inputs[0].dtype)


def _permute(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape = inputs[0].shape
    return Spec(tuple(shape[dim] for dim in attrs["dims"]), inputs[0].dtype)


def _reshape(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(shapes.reshape(inputs[0].shape, tuple(attrs["shape"])), inputs[0].dtype)


def _expand(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(shapes.expand(inputs[0].shape, tuple(attrs["shape"])), inputs[0].dtype)


def _repeat(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape, repeats = inputs[0].shape, attrs["repeats"]
    if len(repeats) < len(shape):
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    if min(repeats, default=0) < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {min(repeats)}: {list(repeats)}")
    return Spec(tuple(n * r for n, r in zip(_padded(shape, repeats), repeats, strict=True)), inputs[0].dtype)


def _padded(shape: tuple[int, ...], repeats: Any) -> tuple[int, ...]:
    return (1,) * (len(repeats) - len(shape)) + shape


def _same(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return inputs[0]


def _pad(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x = inputs[0]
    sizes = zip(x.shape, attrs["pads"], strict=True)
    return Spec(tuple(before + n + after for n, (before, after) in sizes), x.dtype)


def _cat(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    dim, first = attrs["dim"], inputs[0].shape
    for number, x in enumerate(inputs):
        if not x.shape:
            raise ShapeError(f"zero-dimensional tensor (at position {number}) cannot be concatenated")
        if len(x.shape) != len(first):
            raise ShapeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(x.shape)}"
            )
        for axis, (m, n) in enumerate(zip(first, x.shape, strict=True)):
            if m != n and axis != dim:
                raise ShapeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {m} but got size "
                    f"{n} for tensor number {number} in the list."
                )
    total = sum(x.shape[dim] for x in inputs)
    return Spec((*first[:dim], total, *first[dim + 1 :]), _promoted(inputs))


def _stack(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    dim, first = attrs["dim"], inputs[0].shape
    for number, x in enumerate(inputs):
        if x.shape != first:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(x.shape)} at entry {number}"
            )
    return Spec((*first[:dim], len(inputs), *first[dim:]), _promoted(inputs))


def _promoted(inputs: tuple[Spec, ...]) -> str:
    return functools.reduce(dtypes.promote, (x.dtype for x in inputs))


def _triangle(name: str) -> Infer:
    def infer(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        if len(inputs[0].shape) < 2:
            raise ShapeError(f"{name}: input tensor must have at least 2 dimensions")
        return inputs[0]

    return infer


# --- gradients ---


def _permute_gradient(g: Any, node: Any) -> Any:
    dims = node.attrs["dims"]
    return g.permute(tuple(sorted(range(len(dims)), key=dims.__getitem__)))


def _repeat_gradient(g: Any, node: Any) -> Any:
    # Number and element side by side, so that the copies of an element can be added up.
    shape, repeats = node.inputs[0].shape, node.attrs["repeats"]
    pairs = zip(repeats, _padded(shape, repeats), strict=True)
    apart = g.reshape(tuple(n for pair in pairs for n in pair))
    return apart.sum(dim=tuple(range(0, 2 * len(repeats), 2))).reshape(shape) if repeats else g


def _pad_gradient(g: Any, node: Any) -> Any:
    pads = zip(node.attrs["pads"], g.shape, strict=True)
    return g[tuple(slice(before, n - after) for (before, after), n in pads)]


def _cat_gradient(g: Any, node: Any, index: int) -> Any:
    dim = node.attrs["dim"]
    sizes = [value.spec.shape[dim] for value in node.values[: index + 1]]
    return g.narrow(dim, sum(sizes[:index]), sizes[index])


ROWS = [
    Row(
        "transpose",
        "ShapeOp",
        _transpose,
        engines("torch.transpose", "shaping.transpose"),
        (lambda g, n: g.transpose(n.attrs["dim0"], n.attrs["dim1"]),),
    ),
    Row(
        "permute",
        "ShapeOp",
        _permute,
        engines("torch.permute", "shaping.permute"),
        (_permute_gradient,),
    ),
    Row(
        "reshape",
        "ShapeOp",
        _reshape,
        engines("torch.reshape", "shaping.reshape"),
        (lambda g, n: g.reshape(n.inputs[0].shape),),
    ),
    Row(
        "expand",
        "ShapeOp",
        _expand,
        engines("shaping.expand", "shaping.expand"),
        (lambda g, n: sum_to(g, n.inputs[0].shape),),
    ),
    Row("repeat", "ShapeOp", _repeat, engines("shaping.repeat", "shaping.repeat"), (_repeat_gradient,)),
    Row(
        "flip",
        "ShapeOp",
        _same,
        engines("torch.flip", "shaping.flip"),
        (lambda g, n: g.flip(n.attrs["dims"]),),
    ),
    Row(
        "roll",
        "ShapeOp",
        _same,
        engines("torch.roll", "shaping.roll"),
        (lambda g, n: g.roll(tuple(-shift for shift in n.attrs["shifts"]), n.attrs["dims"]),),
    ),
    Row("pad", "ShapeOp", _pad, engines("shaping.pad", "shaping.pad"), (_pad_gradient,)),
    Row("cat", "ShapeOp", _cat, engines("shaping.cat", "shaping.cat"), grad_of_each=_cat_gradient),
    Row(
        "stack",
        "ShapeOp",
        _stack,
        engines("shaping.stack", "shaping.stack"),
        grad_of_each=lambda g, n, index: g.select(n.attrs["dim"], index),
    ),
    Row(
        "tril",
        "ShapeOp",
        _triangle("tril"),
        engines("torch.tril", "shaping.tril"),
        (lambda g, n: g.tril(n.attrs["diagonal"]),),
    ),
    Row(
        "triu",
        "ShapeOp",
        _triangle("triu"),
        engines("torch.triu", "shaping.triu"),
        (lambda g, n: g.triu(n.attrs["diagonal"]),),
    ),
]
