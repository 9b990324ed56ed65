"""Ops that arrange elements anew, and change none."""

from typing import Any

from gt.ops import shapes
from gt.ops.row import Row, Spec, engines
from gt.ops.rules import sum_to


def _transpose(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape = list(inputs[0].shape)
    if shape:  # a number has no dimensions to swap, and PyTorch lets it pass
        i, j = attrs["dim0"], attrs["dim1"]
        shape[i], shape[j] = shape[j], shape[i]
    return Spec(tuple(shape), inputs[0].dtype)


def _reshape(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(shapes.reshape(inputs[0].shape, tuple(attrs["shape"])), inputs[0].dtype)


def _expand(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(shapes.expand(inputs[0].shape, tuple(attrs["shape"])), inputs[0].dtype)


ROWS = [
    Row(
        "transpose",
        "ShapeOp",
        _transpose,
        engines("torch.transpose", "shaping.transpose"),
        (lambda g, n: g.transpose(n.attrs["dim0"], n.attrs["dim1"]),),
    ),
    Row(
        "reshape",
        "ShapeOp",
        _reshape,
        engines("torch.reshape", "numpy.reshape"),
        (lambda g, n: g.reshape(n.inputs[0].shape),),
    ),
    Row(
        "expand",
        "ShapeOp",
        _expand,
        engines("shaping.expand", "shaping.expand"),
        (lambda g, n: sum_to(g, n.inputs[0].shape),),
    ),
]
