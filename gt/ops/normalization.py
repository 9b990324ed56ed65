"""Normalization."""

from typing import Any

from gt.errors import DTypeError, ShapeError
from gt.ops import dtypes
from gt.ops.engines import Functions
from gt.ops.products import one_dtype
from gt.ops.row import Row, Spec
from gt.ops.sharding.losses import layer_norm as sharding


def _layer_norm(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x, *affine = inputs
    shape = tuple(attrs["normalized_shape"])
    if not shape or x.shape[-len(shape) :] != shape:
        sizes = ", ".join(["*", *map(str, shape)])
        raise ShapeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{sizes}], but got input of "
            f"size{list(x.shape)}"
        )
    for name, parameter in zip(("weight", "bias"), affine, strict=False):
        if parameter.shape != shape:
            raise ShapeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(parameter.shape)} and normalized_shape = {list(shape)}"
            )
    if not dtypes.is_float(x.dtype):
        raise DTypeError(f"layer_norm is not implemented for {x.dtype}. Convert it first: x.float()")
    return Spec(x.shape, one_dtype(inputs))


def _layer_norm_gradient(g: Any, node: Any, which: int) -> Any:
    x, *affine = node.inputs
    attrs = node.attrs
    if which == 0:
        return g._apply("layer_norm_grad", x, *affine[:1], **attrs)
    rows = tuple(range(x.ndim - len(attrs["normalized_shape"])))
    if which == 1:
        g = g * x._apply("layer_norm", **attrs)
    return g.sum(dim=rows) if rows else g


ROWS = [
    Row(
        "layer_norm",
        "NormOp",
        _layer_norm,
        Functions("normalization.layer_norm", "normalization.layer_norm"),
        grad_of_each=_layer_norm_gradient,
        sharding=sharding,
    ),
    Row(
        "layer_norm_grad",
        "NormOp",
        lambda inputs, attrs: inputs[1],
        Functions("normalization.layer_norm_grad", "normalization.layer_norm_grad"),
        sharding=sharding,
    ),
]
