"""Ops that rearrange elements."""

import functools
from typing import Any

from gt.errors import ShapeError
from gt.ops import dtypes, shapes
from gt.ops.engines import Functions
from gt.ops.method import Method
from gt.ops.row import Infer, PutBack, Row, Spec
from gt.ops.rules import same, sum_to
from gt.ops.sharding import shaping as sharding
from gt.ops.sharding.reductions import dims_of

# --- results ---


def _transpose(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape = list(inputs[0].shape)
    if shape:  # a tensor without dimensions has none to swap, and PyTorch accepts that
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
    # A dimension for the copies of each dimension, over which they are added up.
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


# --- views: how an in-place change of the result changes the input ---


def _reshape_back(attrs: dict[str, Any], before: Any, changed: Any) -> tuple[str, Any, Any]:
    return "reshape", (changed,), {"shape": before.shape}


def _permute_back(attrs: dict[str, Any], before: Any, changed: Any) -> tuple[str, Any, Any]:
    dims = attrs["dims"]
    return "permute", (changed,), {"dims": tuple(dims.index(dim) for dim in range(len(dims)))}


# --- methods with arguments ---


def _tril_method(x: Any, diagonal: int = 0) -> Any:
    return x._apply("tril", diagonal=diagonal)


def _triu_method(x: Any, diagonal: int = 0) -> Any:
    return x._apply("triu", diagonal=diagonal)


# --- rows ---


def _row(name: str, infer: Infer, gradient: Any, sharding: Any, torch: str = "", **more: Any) -> Row:
    functions = Functions(torch or f"shaping.{name}", f"shaping.{name}")
    return Row(name, "ShapeOp", infer, functions, (gradient,), sharding=sharding, **more)


def _view(name: str, infer: Infer, gradient: Any, sharding: Any, put_back: PutBack) -> Row:
    return _row(name, infer, gradient, sharding, f"torch.{name}", view=True, put_back=put_back)


def _joined(name: str, infer: Infer, gradient: Any, sharding: Any) -> Row:
    """An op over any number of tensors."""
    functions = Functions(f"shaping.{name}", f"shaping.{name}")
    return Row(name, "ShapeOp", infer, functions, grad_of_each=gradient, sharding=sharding)


ROWS = [
    _view(
        "transpose",
        _transpose,
        lambda g, n: g.transpose(n.attrs["dim0"], n.attrs["dim1"]),
        sharding.moved(sharding.swapped),
        lambda attrs, before, changed: ("transpose", (changed,), attrs),
    ),
    _view(
        "permute",
        _permute,
        _permute_gradient,
        sharding.moved(lambda rank, attrs: [dim % rank for dim in attrs["dims"]]),
        _permute_back,
    ),
    _view(
        "reshape",
        _reshape,
        lambda g, n: g.reshape(n.inputs[0].shape),
        sharding.reshape,
        _reshape_back,
    ),
    # Not a view that can be written in place: several elements of the result are one of the input.
    _row("expand", _expand, lambda g, n: sum_to(g, n.inputs[0].shape), sharding.expand, view=True),
    _row(
        "repeat",
        _repeat,
        _repeat_gradient,
        sharding.untouched(lambda attrs, axis, rank: attrs["repeats"][axis] != 1),
    ),
    _row(
        "flip",
        same,
        lambda g, n: g.flip(n.attrs["dims"]),
        sharding.untouched(lambda attrs, axis, rank: axis in dims_of(attrs["dims"], rank)),
        "torch.flip",
    ),
    _row(
        "roll",
        same,
        lambda g, n: g.roll(tuple(-shift for shift in n.attrs["shifts"]), n.attrs["dims"]),
        sharding.untouched(
            lambda attrs, axis, rank: not attrs["dims"] or axis in dims_of(attrs["dims"], rank)
        ),
        "torch.roll",
    ),
    _row("pad", _pad, _pad_gradient, sharding.pad),
    _joined(
        "cat",
        _cat,
        _cat_gradient,
        sharding.untouched(lambda attrs, axis, rank: axis == attrs["dim"] % rank),
    ),
    _joined("stack", _stack, lambda g, n, index: g.select(n.attrs["dim"], index), sharding.stack),
    _row(
        "tril",
        _triangle("tril"),
        lambda g, n: g.tril(n.attrs["diagonal"]),
        sharding.triangle,
        "torch.tril",
        methods=(
            Method("tril", "The lower triangle of each matrix, zeros above.", _tril_method, in_place=True),
        ),
    ),
    _row(
        "triu",
        _triangle("triu"),
        lambda g, n: g.triu(n.attrs["diagonal"]),
        sharding.triangle,
        "torch.triu",
        methods=(
            Method("triu", "The upper triangle of each matrix, zeros below.", _triu_method, in_place=True),
        ),
    ),
]
