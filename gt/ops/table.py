"""The rows. Read one, and you know an op."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gt.errors import DTypeError
from gt.ops import dtypes, shapes


class Spec(NamedTuple):
    """What is known of a tensor without its data."""

    shape: tuple[int, ...]
    dtype: str


class Node(Protocol):
    """What a gradient rule may look at: the op as it was applied. Its tensors are GT tensors."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The tensors the op was applied to."""
        ...

    @property
    def output(self) -> Any:
        """What it gave."""
        ...

    @property
    def attrs(self) -> dict[str, Any]:
        """Its arguments that are not tensors."""
        ...


Infer = Callable[[tuple[Spec, ...], dict[str, Any]], Spec]
Gradient = Callable[[Any, Node], tuple[Any, ...]]


@dataclass(frozen=True)
class Row:
    """One op."""

    name: str
    kind: str
    """What the instruction log calls it: BinaryOp, UnaryOp, ShapeOp or CreateTensor."""
    infer: Infer
    """The result's shape and dtype from the inputs', or the error a PyTorch user expects."""
    engines: dict[str, str]
    """The function that computes it, by engine: an importable name, called with inputs and attributes."""
    grad: Gradient | None = None
    """The inputs' gradients from the output's, in GT ops; None where there is no gradient."""


# --- results: shape and dtype ---


def _same(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return inputs[0]


def _floating(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape, dtype = inputs[0]
    return Spec(shape, dtype if dtypes.is_float(dtype) else "float32")


def _broadcast(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    if len(inputs) == 1:
        return Spec(inputs[0].shape, dtypes.promote_scalar(inputs[0].dtype, attrs["scalar"]))
    a, b = inputs
    return Spec(
        shapes.broadcast(a.shape, b.shape), dtypes.promote(a.dtype, b.dtype, len(a.shape), len(b.shape))
    )


def _divide(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return _floating((_broadcast(inputs, attrs),), attrs)


def _compare(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(_broadcast(inputs, attrs).shape, "bool")


def _no_bool(what: str, infer: Infer) -> Infer:
    """The same result, but bools are refused, as PyTorch refuses them."""

    def checked(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
        if any(x.dtype == "bool" for x in inputs) or isinstance(attrs.get("scalar"), bool):
            raise DTypeError(f"{what} with a bool tensor is not supported. Convert it first: x.to('int64')")
        return infer(inputs, attrs)

    return checked


def _power(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    spec = _broadcast(inputs, attrs)
    if spec.dtype == "bool":
        raise DTypeError("A power of two bool tensors is not supported. Convert one first: x.to('int64')")
    negative = len(inputs) == 1 and not attrs["reflected"] and attrs["scalar"] < 0
    if negative and not dtypes.is_float(spec.dtype):
        raise DTypeError("Integers to negative integer powers are not allowed.")
    return spec


def _sum(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape, dtype = inputs[0]
    total = dtype if dtypes.is_float(dtype) else "int64"
    return Spec(shapes.reduce(shape, attrs["dim"], attrs["keepdim"]), total)


def _mean(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape, dtype = inputs[0]
    if not dtypes.is_float(dtype):
        raise DTypeError(
            f"mean(): could not infer output dtype. Input dtype must be a floating point dtype. Got: {dtype}"
        )
    return Spec(shapes.reduce(shape, attrs["dim"], attrs["keepdim"]), dtype)


def _matmul(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    a, b = inputs
    if a.dtype != b.dtype:
        raise DTypeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    return Spec(shapes.matmul(a.shape, b.shape), a.dtype)


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


def _cast(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(inputs[0].shape, attrs["dtype"])


def _create(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(tuple(attrs["shape"]), attrs["dtype"])


# --- gradients: from the output's gradient g, one for each input ---


def _sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast: add up the gradients of an element's copies."""
    if g.shape == shape:
        return g
    new = g.ndim - len(shape)
    copied = tuple(axis for axis, n in enumerate(g.shape) if axis < new or shape[axis - new] != n)
    return g.sum(dim=copied, keepdim=True).reshape(shape)


def _partials(left: Callable, right: Callable) -> Gradient:
    """The gradient of `a op b` from its two partial derivatives; a or b may be a number, which has none."""

    def gradient(g: Any, node: Node) -> tuple[Any, ...]:
        if len(node.inputs) == 2:
            a, b = node.inputs
            return _sum_to(left(g, a, b), a.shape), _sum_to(right(g, a, b), b.shape)
        (x,), number = node.inputs, node.attrs["scalar"]
        return (right(g, number, x) if node.attrs["reflected"] else left(g, x, number),)

    return gradient


def _power_by_base(g: Any, a: Any, b: Any) -> Any:
    # A power of 0 is constant, also at 0, where the formula would be 0 times infinity.
    return g * 0 if isinstance(b, int | float) and b == 0 else g * b * a ** (b - 1)


def _power_by_exponent(g: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, int | float):
        return g * a**b * a.log()
    if a == 0:
        return g * 0
    return g * a**b * (math.log(a) if a > 0 else math.nan)


def _sum_gradient(g: Any, node: Node) -> tuple[Any, ...]:
    shape = node.inputs[0].shape
    return (g.reshape(shapes.reduce(shape, node.attrs["dim"], keepdim=True)).expand(shape),)


def _mean_gradient(g: Any, node: Node) -> tuple[Any, ...]:
    (spread,) = _sum_gradient(g, node)
    return (spread * (node.output.numel() / max(node.inputs[0].numel(), 1)),)


# --- rows ---


def _unary(name: str, pytorch: str, numpy: str, grad: Gradient | None, infer: Infer = _floating) -> Row:
    return Row(name, "UnaryOp", infer, _engines(pytorch, numpy), grad)


def _binary(name: str, infer: Infer, grad: Gradient | None = None) -> Row:
    # Python's own operators: torch and NumPy both overload them, with numbers on either side.
    return Row(name, "BinaryOp", infer, _engines(f"operator.{name}", f"operator.{name}"), grad)


def _engines(pytorch: str, numpy: str) -> dict[str, str]:
    # A name without a dot is one of the engine's own functions.
    named = {"pytorch": pytorch, "numpy": numpy}
    return {e: f if "." in f else f"gt.worker.engine.{e}.{f}" for e, f in named.items()}


_ROWS = [
    _binary("add", _broadcast, _partials(lambda g, a, b: g, lambda g, a, b: g)),
    _binary(
        "sub",
        _no_bool("Subtraction, the `-` operator,", _broadcast),
        _partials(lambda g, a, b: g, lambda g, a, b: -g),
    ),
    _binary("mul", _broadcast, _partials(lambda g, a, b: g * b, lambda g, a, b: g * a)),
    _binary("truediv", _divide, _partials(lambda g, a, b: g / b, lambda g, a, b: -g * a / (b * b))),
    _binary("pow", _power, _partials(_power_by_base, _power_by_exponent)),
    _binary("gt", _compare),
    _binary("ge", _compare),
    _binary("lt", _compare),
    _binary("le", _compare),
    _binary("eq", _compare),
    _binary("ne", _compare),
    _unary("neg", "torch.neg", "numpy.negative", lambda g, n: (-g,), _no_bool("Negation", _same)),
    _unary("exp", "torch.exp", "numpy.exp", lambda g, n: (g * n.output,)),
    _unary("log", "torch.log", "numpy.log", lambda g, n: (g / n.inputs[0],)),
    _unary("sqrt", "torch.sqrt", "numpy.sqrt", lambda g, n: (g / (2 * n.output),)),
    _unary("tanh", "torch.tanh", "numpy.tanh", lambda g, n: (g * (1 - n.output * n.output),)),
    _unary("sigmoid", "torch.sigmoid", "sigmoid", lambda g, n: (g * n.output * (1 - n.output),)),
    _unary("relu", "torch.relu", "relu", lambda g, n: (g * (n.inputs[0] > 0),), _no_bool("relu", _same)),
    _unary("cast", "cast", "cast", lambda g, n: (g.to(n.inputs[0].dtype),), _cast),
    Row("sum", "UnaryOp", _sum, _engines("torch.sum", "sum"), _sum_gradient),
    Row("mean", "UnaryOp", _mean, _engines("torch.mean", "mean"), _mean_gradient),
    Row(
        "matmul",
        "BinaryOp",
        _no_bool("matmul", _matmul),
        _engines("torch.matmul", "numpy.matmul"),
        lambda g, n: (g @ n.inputs[1].T, n.inputs[0].T @ g),
    ),
    Row(
        "transpose",
        "ShapeOp",
        _transpose,
        _engines("torch.transpose", "transpose"),
        lambda g, n: (g.transpose(n.attrs["dim0"], n.attrs["dim1"]),),
    ),
    Row(
        "reshape",
        "ShapeOp",
        _reshape,
        _engines("torch.reshape", "numpy.reshape"),
        lambda g, n: (g.reshape(n.inputs[0].shape),),
    ),
    Row(
        "expand",
        "ShapeOp",
        _expand,
        _engines("expand", "expand"),
        lambda g, n: (_sum_to(g, n.inputs[0].shape),),
    ),
    Row("full", "CreateTensor", _create, _engines("full", "full")),
    Row("arange", "CreateTensor", _create, _engines("arange", "arange")),
    Row("rand", "CreateTensor", _create, _engines("rand", "rand")),
    Row("randn", "CreateTensor", _create, _engines("randn", "randn")),
]

TABLE: dict[str, Row] = {row.name: row for row in _ROWS}
