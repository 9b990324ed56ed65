"""Ops that make one number of many."""

from typing import Any

from gt.errors import DTypeError
from gt.ops import dtypes, shapes
from gt.ops.row import Row, Spec, engines


def _sum(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x = inputs[0]
    total = x.dtype if dtypes.is_float(x.dtype) else "int64"
    return Spec(shapes.reduce(x.shape, attrs["dim"], attrs["keepdim"]), total)


def _mean(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x = inputs[0]
    if not dtypes.is_float(x.dtype):
        raise DTypeError(
            "mean(): could not infer output dtype. Input dtype must be a floating point dtype. "
            f"Got: {x.dtype}"
        )
    return Spec(shapes.reduce(x.shape, attrs["dim"], attrs["keepdim"]), x.dtype)


def spread(g: Any, node: Any) -> Any:
    """Give every element the gradient of what it was reduced to."""
    shape = node.inputs[0].shape
    return g.reshape(shapes.reduce(shape, node.attrs["dim"], keepdim=True)).expand(shape)


def _mean_gradient(g: Any, node: Any) -> Any:
    return spread(g, node) * (node.output.numel() / max(node.inputs[0].numel(), 1))


ROWS = [
    Row("sum", "ReduceOp", _sum, engines("torch.sum", "reductions.sum"), (spread,)),
    Row("mean", "ReduceOp", _mean, engines("torch.mean", "reductions.mean"), (_mean_gradient,)),
]
