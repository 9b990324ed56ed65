"""Ops that make one number of many, and those that run along a dimension."""

import math
from typing import Any

from gt.errors import DimensionError, DTypeError, ShapeError
from gt.ops import dtypes, shapes
from gt.ops.row import Infer, Row, Spec, engines
from gt.ops.rules import only

# --- results: shape and dtype ---


def _reduced(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """The same dtype, over the dimensions of `dim`: several, one, or None for all."""
    x, dim = inputs[0], attrs["dim"]
    dims = (dim,) if isinstance(dim, int) else dim
    return Spec(shapes.reduce(x.shape, dims, attrs["keepdim"]), x.dtype)


def _added(dtype: str) -> str:
    """The dtype of a sum or product: integers are added up in 64 bits."""
    return dtype if dtypes.is_float(dtype) else "int64"


def _sum(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    spec = _reduced(inputs, attrs)
    return Spec(spec.shape, _added(spec.dtype))


def _mean(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    spec = _reduced(inputs, attrs)
    if not dtypes.is_float(spec.dtype):
        raise DTypeError(
            "mean(): could not infer output dtype. Input dtype must be a floating point dtype. "
            f"Got: {spec.dtype}"
        )
    return spec


def _floats(words: str) -> Infer:
    def infer(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        spec = _reduced(inputs, attrs)
        if not dtypes.is_float(spec.dtype):
            raise DTypeError(words.format(dtype=dtypes.TITLE[spec.dtype]))
        return spec

    return infer


def _logsumexp(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    spec = _reduced(inputs, attrs)
    return spec if dtypes.is_float(spec.dtype) else Spec(spec.shape, "float32")


def _truth(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    spec = _reduced(inputs, attrs)
    # PyTorch's oldest bools were bytes, and it keeps them.
    return Spec(spec.shape, "uint8" if spec.dtype == "uint8" else "bool")


def _not_of_nothing(name: str, error: type[Exception], infer: Infer) -> Infer:
    """Nothing has no largest element."""

    def checked(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        shape, dim = inputs[0].shape, attrs["dim"]
        if math.prod(shape) == 0 and dim is None:
            raise error(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        for d in () if dim is None else (dim,) if isinstance(dim, int) else dim:
            if shape[d] == 0:
                raise DimensionError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return infer(inputs, attrs)

    return checked


def _index(name: str) -> Infer:
    checked = _not_of_nothing(name, DimensionError, only(name, "int float", _reduced))
    return lambda inputs, attrs: Spec(checked(inputs, attrs).shape, "int64")


def _scan(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(inputs[0].shape, _added(inputs[0].dtype))


def _take_along(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(inputs[1].shape, inputs[0].dtype)


def _put_along(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(tuple(attrs["shape"]), inputs[0].dtype)


# --- gradients ---


def spread(value: Any, node: Any) -> Any:
    """Give every element the value of what it was reduced to."""
    shape, dim = node.inputs[0].shape, node.attrs["dim"]
    dims = (dim,) if isinstance(dim, int) else dim
    return value.reshape(shapes.reduce(shape, dims, keepdim=True)).expand(shape)


def _mean_gradient(g: Any, node: Any) -> Any:
    return spread(g, node) * (node.output.numel() / max(node.inputs[0].numel(), 1))


def _prod_gradient(g: Any, node: Any) -> Any:
    # The product of the others: by division where nothing is 0. A single 0 leaves its own slope alone.
    (x,), dim = node.inputs, node.attrs["dim"]
    zero = x == 0
    filled = x.masked_fill(zero, 1)
    others = spread(filled.prod(dim), node)
    zeros = spread(zero.sum(dim), node)
    slope = others.where(zeros == 1, 0).where(zero, (others / filled).where(zeros == 0, 0))
    return spread(g, node) * slope


def _extreme_gradient(g: Any, node: Any) -> Any:
    # Equal elements share it.
    (x,) = node.inputs
    chosen = x == spread(node.output, node)
    share = g / chosen.sum(node.attrs["dim"], keepdim=node.attrs["keepdim"])
    return spread(share, node).where(chosen, 0)


def _freedom(node: Any) -> float:
    """By how much a variance divides."""
    count = node.inputs[0].numel() / max(node.output.numel(), 1)
    return count - node.attrs["correction"]


def _var_gradient(g: Any, node: Any) -> Any:
    (x,), dim = node.inputs, node.attrs["dim"]
    freedom = _freedom(node)
    return spread(g, node) * (x - x.mean(dim, keepdim=True)) * (2 / freedom if freedom else math.nan)


def _std_gradient(g: Any, node: Any) -> Any:
    # Where all elements are equal the slope is infinite; PyTorch says 0.
    (x,), dim = node.inputs, node.attrs["dim"]
    freedom = _freedom(node)
    scale = (g / (node.output * freedom)).where(node.output != 0, 0)
    return spread(scale, node) * (x - x.mean(dim, keepdim=True))


def _norm_gradient(g: Any, node: Any) -> Any:
    (x,), p, out = node.inputs, node.attrs["p"], node.output
    if p == 0:
        return x.new_zeros(x.shape)
    if p == 1:
        return spread(g, node) * x.sign()
    if math.isinf(p):
        size = x.abs()
        chosen = size == spread(out, node)
        share = g / chosen.sum(node.attrs["dim"], keepdim=node.attrs["keepdim"])
        return (spread(share, node) * x.sign()).where(chosen, 0)
    # The norm has no slope at 0; PyTorch says 0.
    if p == 2:
        return spread((g / out).where(out != 0, 0), node) * x
    scale = spread((g / out ** (p - 1)).where(out != 0, 0), node)
    return (scale * x.sign() * x.abs() ** (p - 1)).where(x != 0, 0)


def _logsumexp_gradient(g: Any, node: Any) -> Any:
    (x,), out = node.inputs, node.output
    # Where everything is minus infinity, so is the result, and their difference is not a number.
    shift = out.masked_fill(out.isinf(), 0)
    return spread(g, node) * (x - spread(shift, node)).exp()


def _cumprod_gradient(g: Any, node: Any) -> Any:
    # As for a product: up to the first 0 by division; from the first to the second 0 without it.
    (x,), dim = node.inputs, node.attrs["dim"]
    zero = x == 0
    filled = x.masked_fill(zero, 1)
    before_first = (g * node.output)._apply("cumsum", dim=dim, reverse=True) / filled
    zeros = zero.cumsum(dim)
    between = (g * filled.cumprod(dim)).where(zeros == 1, 0)._apply("cumsum", dim=dim, reverse=True)
    return between.where(zero & (zeros == 1), before_first.where(~zero, 0))


# --- rows ---


def _row(name: str, infer: Infer, gradient: Any = None) -> Row:
    grads = () if gradient is None else (gradient,)
    return Row(name, "ReduceOp", infer, engines(f"reductions.{name}", f"reductions.{name}"), grads)


_SPREAD = "std and var only support floating point dtypes, but got {dtype}"
_NORM = "linalg.vector_norm: Expected a floating point tensor as input. Got {dtype}"

ROWS = [
    Row("sum", "ReduceOp", _sum, engines("torch.sum", "reductions.sum"), (spread,)),
    Row("mean", "ReduceOp", _mean, engines("torch.mean", "reductions.mean"), (_mean_gradient,)),
    _row("prod", _sum, _prod_gradient),
    _row("amax", _not_of_nothing("amax", ShapeError, _reduced), _extreme_gradient),
    _row("amin", _not_of_nothing("amin", ShapeError, _reduced), _extreme_gradient),
    _row("argmax", _index("argmax")),
    _row("argmin", _index("argmin")),
    _row("var", _floats(_SPREAD), _var_gradient),
    _row("std", _floats(_SPREAD), _std_gradient),
    _row("norm", _floats(_NORM), _norm_gradient),
    _row("logsumexp", _logsumexp, _logsumexp_gradient),
    _row("all", _truth),
    _row("any", _truth),
    _row(
        "cumsum", _scan, lambda g, n: g._apply("cumsum", dim=n.attrs["dim"], reverse=not n.attrs["reverse"])
    ),
    _row("cumprod", _scan, _cumprod_gradient),
    # What `max(dim)` found: the values at an index along a dimension, and the way back. The index has the
    # shape of the input without that dimension, or with size 1 there.
    Row(
        "take_along",
        "IndexOp",
        _take_along,
        engines("reductions.take_along", "reductions.take_along"),
        (
            lambda g, n: g._apply("put_along", n.inputs[1], dim=n.attrs["dim"], shape=n.inputs[0].shape),
            None,
        ),
    ),
    Row(
        "put_along",
        "IndexOp",
        _put_along,
        engines("reductions.put_along", "reductions.put_along"),
        (lambda g, n: g._apply("take_along", n.inputs[1], dim=n.attrs["dim"]), None),
    ),
]
