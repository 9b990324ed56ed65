"""Ops that look at one element at a time."""

import math
from typing import Any

from gt.errors import DTypeError
from gt.ops import dtypes
from gt.ops.row import Gradient, Infer, Row, Spec, engines
from gt.ops.rules import broadcast, compare, divide, floating, no_bool, partials, same


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
    return g * 0 if isinstance(b, int | float) and b == 0 else g * b * a ** (b - 1)


def _power_by_exponent(g: Any, a: Any, b: Any) -> Any:
    if not isinstance(a, int | float):
        return g * a**b * a.log()
    if a == 0:
        return g * 0
    return g * a**b * (math.log(a) if a > 0 else math.nan)


def _cast(inputs: tuple[Spec, ...], attrs: dict[str, Any]) -> Spec:
    return Spec(inputs[0].shape, attrs["dtype"])


def _unary(name: str, pytorch: str, array: str, grad: Gradient | None, infer: Infer = floating) -> Row:
    return Row(name, "UnaryOp", infer, engines(pytorch, array), () if grad is None else (grad,))


def _binary(name: str, infer: Infer, grads: tuple[Gradient, ...] = ()) -> Row:
    # Python's own operators: every engine overloads them, with numbers on either side.
    return Row(name, "BinaryOp", infer, engines(f"operator.{name}", f"operator.{name}"), grads)


ROWS = [
    _binary("add", broadcast, partials(lambda g, a, b: g, lambda g, a, b: g)),
    _binary(
        "sub",
        no_bool("Subtraction, the `-` operator,", broadcast),
        partials(lambda g, a, b: g, lambda g, a, b: -g),
    ),
    _binary("mul", broadcast, partials(lambda g, a, b: g * b, lambda g, a, b: g * a)),
    _binary("truediv", divide, partials(lambda g, a, b: g / b, lambda g, a, b: -g * a / (b * b))),
    _binary("pow", _power, partials(_power_by_base, _power_by_exponent)),
    _binary("gt", compare),
    _binary("ge", compare),
    _binary("lt", compare),
    _binary("le", compare),
    _binary("eq", compare),
    _binary("ne", compare),
    _unary("neg", "torch.neg", "numpy.negative", lambda g, n: -g, no_bool("Negation", same)),
    _unary("exp", "torch.exp", "numpy.exp", lambda g, n: g * n.output),
    _unary("log", "torch.log", "numpy.log", lambda g, n: g / n.inputs[0]),
    _unary("sqrt", "torch.sqrt", "numpy.sqrt", lambda g, n: g / (2 * n.output)),
    _unary("tanh", "torch.tanh", "numpy.tanh", lambda g, n: g * (1 - n.output * n.output)),
    _unary("sigmoid", "torch.sigmoid", "elementwise.sigmoid", lambda g, n: g * n.output * (1 - n.output)),
    _unary("relu", "torch.relu", "elementwise.relu", lambda g, n: g * (n.output > 0), no_bool("relu", same)),
    _unary("cast", "elementwise.cast", "elementwise.cast", lambda g, n: g.to(n.inputs[0].dtype), _cast),
]
