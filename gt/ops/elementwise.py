"""Ops that look at one element at a time: arithmetic, rounding, mathematical functions, casts."""

import math
from typing import Any

from gt.errors import ArgumentError, DTypeError
from gt.ops import dtypes
from gt.ops.row import Gradient, Infer, Row, Spec, engines
from gt.ops.rules import broadcast, divide, floating, no_bool, only, partials, same, zeros


def _power(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    spec = broadcast(inputs, attrs)
    if spec.dtype == "bool":
        raise DTypeError("A power of two bool tensors is not supported. Convert one first: x.to('int64')")
    negative = len(inputs) == 1 and not attrs["reflected"] and attrs["scalar"] < 0
    if negative and not dtypes.is_float(spec.dtype):
        raise DTypeError("Integers to negative integer powers are not allowed.")
    return spec


def _power_by_base(g: Any, a: Any, b: Any) -> Any:
    # A power of 0 is constant, also at 0, where the formula would be 0 times infinity.
    if isinstance(b, int | float):
        return zeros(g) if b == 0 else g * b * a ** (b - 1)
    return (g * b * a ** (b - 1)).where(b != 0, 0)


def _power_by_exponent(g: Any, a: Any, b: Any) -> Any:
    # Powers of 0 are constant where they are finite; the formula would be 0 times infinity.
    if not isinstance(a, int | float):
        return (g * a**b * a.log()).where((a != 0) | (b < 0), 0)
    if a == 0:
        return zeros(g)
    return g * a**b * (math.log(a) if a > 0 else math.nan)


def _square(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    x = inputs[0]
    return Spec(x.shape, "int64") if x.dtype == "bool" else x  # as in PyTorch, where it is x ** 2


def _cast(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(inputs[0].shape, attrs["dtype"])


def _clamp(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    shape, dtype = inputs[0].shape, inputs[0].dtype
    bounds = [bound for bound in (attrs["min"], attrs["max"]) if bound is not None]
    if not bounds:
        raise ArgumentError("clamp: At least one of 'min' or 'max' must not be None")
    for bound in bounds:
        dtype = dtypes.promote_scalar(dtype, bound)
    return Spec(shape, dtype)


def _clamp_gradient(g: Any, node: Any) -> Any:
    (x,), low, high = node.inputs, node.attrs["min"], node.attrs["max"]
    if low is None:
        return g.where(x <= high, 0)
    inside = x >= low if high is None else (x >= low) & (x <= high)
    return g.where(inside, 0)


def _unary(name: str, pytorch: str, array: str, grad: Gradient | None, infer: Infer = floating) -> Row:
    return Row(name, "UnaryOp", infer, engines(pytorch, array), () if grad is None else (grad,))


def _math(name: str, array: str, grad: Gradient) -> Row:
    """A function that PyTorch calls by the same name, and that NumPy and JAX have too."""
    return _unary(name, f"torch.{name}", f"numpy.{array}", grad)


def _rounding(name: str) -> Row:
    return _unary(name, f"torch.{name}", f"numpy.{name}", zeros, only(name, "int float", same))


def _binary(name: str, infer: Infer, grads: tuple[Gradient, ...] = ()) -> Row:
    # Python's own operators: every engine overloads them, with numbers on either side.
    return Row(name, "BinaryOp", infer, engines(f"operator.{name}", f"operator.{name}"), grads)


def _pair(name: str, infer: Infer, grads: tuple[Gradient, ...], array: str = "") -> Row:
    """A function of two tensors."""
    return Row(name, "BinaryOp", infer, engines(f"torch.{name}", f"numpy.{array or name}"), grads)


# Where two elements are equal, each is half the maximum: PyTorch's choice.
_of_larger = partials(
    lambda g, a, b: (g * 0.5).where(a == b, g.where(a > b, 0)),
    lambda g, a, b: (g * 0.5).where(a == b, g.where(b > a, 0)),
)
_of_smaller = partials(
    lambda g, a, b: (g * 0.5).where(a == b, g.where(a < b, 0)),
    lambda g, a, b: (g * 0.5).where(a == b, g.where(b < a, 0)),
)

ROWS = [
    _binary("add", broadcast, partials(lambda g, a, b: g, lambda g, a, b: g)),
    _binary(
        "sub",
        no_bool("Subtraction, the `-` operator,", broadcast),
        partials(lambda g, a, b: g, lambda g, a, b: -g),
    ),
    _binary("mul", broadcast, partials(lambda g, a, b: g * b, lambda g, a, b: g * a)),
    _binary("truediv", divide, partials(lambda g, a, b: g / b, lambda g, a, b: -g * a / (b * b))),
    _binary("floordiv", only("floor_divide", "int float", broadcast), partials(zeros, zeros)),
    _binary(
        "mod",
        only("remainder", "int float", broadcast),
        partials(lambda g, a, b: g, lambda g, a, b: -g * (a // b)),
    ),
    _binary("pow", _power, partials(_power_by_base, _power_by_exponent)),
    _pair(
        "fmod",
        only("fmod", "int float", broadcast),
        partials(lambda g, a, b: g, lambda g, a, b: -g * (a / b).trunc()),
    ),
    _pair("maximum", broadcast, _of_larger),
    _pair("minimum", broadcast, _of_smaller),
    _pair(
        "atan2",
        divide,
        partials(lambda g, a, b: g * b / (a * a + b * b), lambda g, a, b: -g * a / (a * a + b * b)),
        "arctan2",
    ),
    _unary("neg", "torch.neg", "numpy.negative", lambda g, n: -g, no_bool("Negation", same)),
    _unary(
        "abs",
        "torch.abs",
        "numpy.abs",
        lambda g, n: g * n.inputs[0].sign(),
        only("abs", "int float", same),
    ),
    _unary("sign", "torch.sign", "elementwise.sign", zeros, same),
    _unary("square", "torch.square", "numpy.square", lambda g, n: g * 2 * n.inputs[0], _square),
    _rounding("floor"),
    _rounding("ceil"),
    _rounding("round"),
    _rounding("trunc"),
    _math("reciprocal", "reciprocal", lambda g, n: -g * n.output * n.output),
    _math("sqrt", "sqrt", lambda g, n: g / (2 * n.output)),
    _unary("rsqrt", "torch.rsqrt", "elementwise.rsqrt", lambda g, n: g * -0.5 * n.output**3),
    _math("exp", "exp", lambda g, n: g * n.output),
    _math("exp2", "exp2", lambda g, n: g * n.output * math.log(2)),
    _math("expm1", "expm1", lambda g, n: g * (n.output + 1)),
    _math("log", "log", lambda g, n: g / n.inputs[0]),
    _math("log1p", "log1p", lambda g, n: g / (n.inputs[0] + 1)),
    _math("log2", "log2", lambda g, n: g / (n.inputs[0] * math.log(2))),
    _math("log10", "log10", lambda g, n: g / (n.inputs[0] * math.log(10))),
    _math("sin", "sin", lambda g, n: g * n.inputs[0].cos()),
    _math("cos", "cos", lambda g, n: -g * n.inputs[0].sin()),
    _math("tan", "tan", lambda g, n: g * (1 + n.output * n.output)),
    _math("asin", "arcsin", lambda g, n: g * (1 - n.inputs[0].square()).rsqrt()),
    _math("acos", "arccos", lambda g, n: -g * (1 - n.inputs[0].square()).rsqrt()),
    _math("atan", "arctan", lambda g, n: g / (n.inputs[0].square() + 1)),
    _math("sinh", "sinh", lambda g, n: g * n.inputs[0].cosh()),
    _math("cosh", "cosh", lambda g, n: g * n.inputs[0].sinh()),
    _math("tanh", "tanh", lambda g, n: g * (1 - n.output * n.output)),
    _math("asinh", "arcsinh", lambda g, n: g * (n.inputs[0].square() + 1).rsqrt()),
    _math("acosh", "arccosh", lambda g, n: g * (n.inputs[0].square() - 1).rsqrt()),
    _math("atanh", "arctanh", lambda g, n: g / (1 - n.inputs[0].square())),
    _unary(
        "erf",
        "torch.erf",
        "elementwise.erf",
        lambda g, n: g * (2 / math.sqrt(math.pi)) * (-n.inputs[0].square()).exp(),
    ),
    Row("clamp", "UnaryOp", _clamp, engines("torch.clamp", "elementwise.clamp"), (_clamp_gradient,)),
    _unary("cast", "elementwise.cast", "elementwise.cast", lambda g, n: g.to(n.inputs[0].dtype), _cast),
]
