"""Reductions, and ops that run along a dimension."""

import math
from typing import Any

from gt.errors import DimensionError, DTypeError, ShapeError
from gt.ops import dtypes, shapes
from gt.ops.engines import Functions
from gt.ops.method import Method, Samples
from gt.ops.row import Infer, Row, Spec
from gt.ops.rules import given_shape, only
from gt.ops.sharding import reductions as sharding

# --- results: shape and dtype ---


def _reduced(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    """The input's dtype, and its shape without the dimensions of `dim`: several, one, or None for all."""
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
    # In PyTorch, `all` and `any` of uint8 are uint8, for compatibility with its first bools.
    return Spec(spec.shape, "uint8" if spec.dtype == "uint8" else "bool")


def _not_of_nothing(name: str, error: type[Exception], infer: Infer) -> Infer:
    """As `infer`, but an empty tensor is refused: it has no largest element."""

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


# --- gradients ---


def spread(value: Any, node: Any) -> Any:
    """Expand a reduction's result to its input's shape: each element gets the value it was reduced to."""
    shape, dim = node.inputs[0].shape, node.attrs["dim"]
    dims = (dim,) if isinstance(dim, int) else dim
    return value.reshape(shapes.reduce(shape, dims, keepdim=True)).expand(shape)


def _mean_gradient(g: Any, node: Any) -> Any:
    return spread(g, node) * (node.output.numel() / max(node.inputs[0].numel(), 1))


def _prod_gradient(g: Any, node: Any) -> Any:
    # The product of the other elements: by division if none is 0. If one is 0, only its derivative is not 0.
    (x,), dim = node.inputs, node.attrs["dim"]
    zero = x == 0
    filled = x.masked_fill(zero, 1)
    others = spread(filled.prod(dim), node)
    zeros = spread(zero.sum(dim), node)
    slope = others.where(zeros == 1, 0).where(zero, (others / filled).where(zeros == 0, 0))
    return spread(g, node) * slope


def _extreme_gradient(g: Any, node: Any) -> Any:
    # Equal elements share the gradient.
    (x,) = node.inputs
    chosen = x == spread(node.output, node)
    share = g / chosen.sum(node.attrs["dim"], keepdim=node.attrs["keepdim"])
    return spread(share, node).where(chosen, 0)


def _freedom(node: Any) -> float:
    """The divisor of a variance: the number of elements less the correction."""
    count = node.inputs[0].numel() / max(node.output.numel(), 1)
    return count - node.attrs["correction"]


def _var_gradient(g: Any, node: Any) -> Any:
    (x,), dim = node.inputs, node.attrs["dim"]
    freedom = _freedom(node)
    return spread(g, node) * (x - x.mean(dim, keepdim=True)) * (2 / freedom if freedom else math.nan)


def _std_gradient(g: Any, node: Any) -> Any:
    # Where all elements are equal, the slope is infinite; PyTorch defines it as 0.
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
    # The norm has no slope at 0; PyTorch defines it as 0.
    if p == 2:
        return spread((g / out).where(out != 0, 0), node) * x
    scale = spread((g / out ** (p - 1)).where(out != 0, 0), node)
    return (scale * x.sign() * x.abs() ** (p - 1)).where(x != 0, 0)


def _logsumexp_gradient(g: Any, node: Any) -> Any:
    (x,), out = node.inputs, node.output
    # Where everything is minus infinity, so is the result, and their difference is NaN.
    shift = out.masked_fill(out.isinf(), 0)
    return spread(g, node) * (x - spread(shift, node)).exp()


def _cumprod_gradient(g: Any, node: Any) -> Any:
    # As in `_prod_gradient`: by division up to the first 0, and without division up to the second 0.
    (x,), dim = node.inputs, node.attrs["dim"]
    zero = x == 0
    filled = x.masked_fill(zero, 1)
    before_first = (g * node.output)._apply("cumsum", dim=dim, reverse=True) / filled
    zeros = zero.cumsum(dim)
    between = (g * filled.cumprod(dim)).where(zeros == 1, 0)._apply("cumsum", dim=dim, reverse=True)
    return between.where(zero & (zeros == 1), before_first.where(~zero, 0))


# --- methods with arguments ---


def _cumsum_method(x: Any, dim: int | None = None, dtype: Any = None) -> Any:
    return x._scan("cumsum", dim, dtype, reverse=False)


def _cumprod_method(x: Any, dim: int | None = None, dtype: Any = None) -> Any:
    return x._scan("cumprod", dim, dtype)


# --- rows ---


_KEPT = sharding.reduction()
"""Splits along the axes that a reduction keeps."""


def _row(
    name: str,
    infer: Infer,
    gradient: Any = None,
    method: Method | None = None,
    sharding: Any = _KEPT,
    torch: str = "",
    **more: Any,
) -> Row:
    return Row(
        name,
        "ReduceOp",
        infer,
        Functions(torch or f"reductions.{name}", f"reductions.{name}"),
        () if gradient is None else (gradient,),
        sharding=sharding,
        methods=() if method is None else (method,),
        **more,
    )


_SPREAD = "std and var only support floating point dtypes, but got {dtype}"
_NORM = "linalg.vector_norm: Expected a floating point tensor as input. Got {dtype}"
_SEVERAL = Samples("reduction")
_ONE = Samples("reduction over one dimension")

ROWS = [
    _row(
        "sum",
        _sum,
        spread,
        Method("sum", "The sum over some dimensions, or over all.", "reduce with dtype"),
        sharding.reduction("sum", is_linear=True),
        "torch.sum",
        half_lowering="wide_sum",
        samples=_SEVERAL,
    ),
    _row(
        "mean",
        _mean,
        _mean_gradient,
        sharding=sharding.reduction("sum", sharding.weighted, is_linear=True),
        torch="torch.mean",
        half_lowering="wide_sum",
        samples=_SEVERAL,
    ),
    _row(
        "prod",
        _sum,
        _prod_gradient,
        Method("prod", "The product along a dimension, or of all elements.", "reduce one with dtype"),
        samples=_ONE,
    ),
    _row(
        "amax",
        _not_of_nothing("amax", ShapeError, _reduced),
        _extreme_gradient,
        Method("amax", "The largest element; equal ones share its gradient."),
        sharding.reduction("max"),
        samples=_SEVERAL,
    ),
    _row(
        "amin",
        _not_of_nothing("amin", ShapeError, _reduced),
        _extreme_gradient,
        Method("amin", "The smallest element; equal ones share its gradient."),
        sharding.reduction("min"),
        samples=_SEVERAL,
    ),
    _row(
        "argmax",
        _index("argmax"),
        method=Method(
            "argmax",
            "The index of the largest element: along a dimension, or in the flattened tensor.",
            "reduce one",
        ),
        samples=_ONE,
    ),
    _row(
        "argmin",
        _index("argmin"),
        method=Method(
            "argmin",
            "The index of the smallest element: along a dimension, or in the flattened tensor.",
            "reduce one",
        ),
        samples=_ONE,
    ),
    _row("var", _floats(_SPREAD), _var_gradient, lowering="variance"),
    _row("std", _floats(_SPREAD), _std_gradient, lowering="variance"),
    _row("norm", _floats(_NORM), _norm_gradient, lowering="norm"),
    _row(
        "logsumexp",
        _logsumexp,
        _logsumexp_gradient,
        Method("logsumexp", "log(sum(exp(x))), without overflow.", "reduce some"),
        lowering="logsumexp",
    ),
    _row(
        "all",
        _truth,
        method=Method("all", "Whether every element is true, or not 0."),
        sharding=sharding.reduction("min"),
    ),
    _row(
        "any",
        _truth,
        method=Method("any", "Whether any element is true, or not 0."),
        sharding=sharding.reduction("max"),
    ),
    _row(
        "cumsum",
        _scan,
        lambda g, n: g._apply("cumsum", dim=n.attrs["dim"], reverse=not n.attrs["reverse"]),
        Method(
            "cumsum",
            "The sum of each element and those before it along a dimension.",
            _cumsum_method,
            in_place=True,
        ),
        sharding.along(),
    ),
    _row(
        "cumprod",
        _scan,
        _cumprod_gradient,
        Method(
            "cumprod",
            "The product of each element and those before it along a dimension.",
            _cumprod_method,
            in_place=True,
        ),
        sharding.along(),
    ),
    # The values at an index along a dimension, as `max(dim)` returns them, and the op that puts gradients
    # back. The index has the shape of the input without that dimension, or with size 1 there.
    Row(
        "take_along",
        "IndexOp",
        _take_along,
        Functions("reductions.take_along", "reductions.take_along"),
        (
            lambda g, n: g._apply("put_along", n.inputs[1], dim=n.attrs["dim"], shape=n.inputs[0].shape),
            None,
        ),
        sharding=sharding.take_along,
    ),
    Row(
        "put_along",
        "IndexOp",
        given_shape,
        Functions("reductions.put_along", "reductions.put_along"),
        (lambda g, n: g._apply("take_along", n.inputs[1], dim=n.attrs["dim"]), None),
        sharding=sharding.put_along,
    ),
]
