"""Activation functions."""

import math
from typing import Any

from gt.errors import ArgumentError
from gt.ops.engines import Functions
from gt.ops.method import Method
from gt.ops.row import Infer, Row
from gt.ops.rules import floating, no_bool, only, same
from gt.ops.sharding.reductions import along

_ROOT_HALF = math.sqrt(0.5)
_SLOPE = math.sqrt(2 / math.pi)


def _gelu_gradient(g: Any, node: Any) -> Any:
    (x,) = node.inputs
    if node.attrs["approximate"] == "tanh":
        t = ((x + 0.044715 * x**3) * _SLOPE).tanh()
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _SLOPE * (1 + 3 * 0.044715 * x * x))
    below = 0.5 * (1 + (x * _ROOT_HALF).erf())
    density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    return g * (below + x * density)


def _silu_gradient(g: Any, node: Any) -> Any:
    (x,) = node.inputs
    s = x.sigmoid()
    return g * s * (1 + x * (1 - s))


def _elu_gradient(g: Any, node: Any) -> Any:
    (x,), alpha = node.inputs, node.attrs["alpha"]
    return g.where(x > 0, g * (node.output + alpha))


def _softplus_gradient(g: Any, node: Any) -> Any:
    scaled = node.inputs[0] * node.attrs["beta"]
    return g.where(scaled > node.attrs["threshold"], g * scaled.sigmoid())


def _hardtanh_gradient(g: Any, node: Any) -> Any:
    (x,), attrs = node.inputs, node.attrs
    return g.where((x > attrs["min_val"]) & (x < attrs["max_val"]), 0)


def _softmax_gradient(g: Any, node: Any) -> Any:
    y, dim = node.output, node.attrs["dim"]
    return y * (g - (g * y).sum(dim, keepdim=True))


def _log_softmax_gradient(g: Any, node: Any) -> Any:
    return g - node.output.exp() * g.sum(node.attrs["dim"], keepdim=True)


# --- methods with arguments ---


def _hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    return x._apply("hardtanh", min_val=min_val, max_val=max_val)


def _leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    return x._apply("leaky_relu", negative_slope=negative_slope)


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return x._apply("elu", alpha=alpha)


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return x._apply("softplus", beta=beta, threshold=threshold)


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate argument must be either none or tanh, not {approximate!r}")
    return x._apply("gelu", approximate=approximate)


# --- rows ---


def _row(name: str, infer: Infer, torch: str, gradient: Any, method: Method, **more: Any) -> Row:
    functions = Functions(f"{torch}.{name}", f"activations.{name}")
    return Row(name, "UnaryOp", infer, functions, (gradient,), methods=(method,), **more)


def _float(name: str, gradient: Any, method: Method, **more: Any) -> Row:
    return _row(name, only(name, "float", same), "torch.nn.functional", gradient, method, **more)


ROWS = [
    _row(
        "sigmoid",
        floating,
        "torch",
        lambda g, n: g * n.output * (1 - n.output),
        Method("sigmoid", "1 / (1 + exp(-x)) of each element.", in_place=True),
    ),
    _row(
        "relu",
        no_bool("relu", same),
        "torch",
        lambda g, n: g.where(n.output > 0, 0),
        Method("relu", "Each element, or 0 where it is negative.", in_place=True),
    ),
    _row(
        "hardtanh",
        no_bool("hardtanh", same),
        "torch.nn.functional",
        _hardtanh_gradient,
        Method(
            "hardtanh",
            "Each element, clamped to [min_val, max_val]; the gradient is 0 at the bounds and beyond.",
            _hardtanh,
            function=False,
        ),
    ),
    _float(
        "leaky_relu",
        lambda g, n: g.where(n.inputs[0] > 0, g * n.attrs["negative_slope"]),
        Method(
            "leaky_relu",
            "Each element, multiplied by `negative_slope` where it is negative.",
            _leaky_relu,
            function=False,
        ),
    ),
    _float(
        "elu",
        _elu_gradient,
        Method("elu", "Each element, or alpha * (exp(x) - 1) where it is negative.", _elu, function=False),
    ),
    _float(
        "gelu",
        _gelu_gradient,
        Method(
            "gelu",
            "Each element times the probability that a standard normal variable is below it.",
            _gelu,
            function=False,
        ),
    ),
    _float("silu", _silu_gradient, Method("silu", "Each element times its sigmoid.", function=False)),
    _float(
        "softplus",
        _softplus_gradient,
        Method(
            "softplus",
            "log(1 + exp(beta * x)) / beta; x itself where x * beta is above the threshold.",
            _softplus,
            function=False,
        ),
    ),
    _float(
        "softmax",
        _softmax_gradient,
        Method("softmax", "exp(x) divided by its sum along a dimension.", "along"),
        sharding=along(),
        lowering="softmax",
    ),
    _float(
        "log_softmax",
        _log_softmax_gradient,
        Method("log_softmax", "The logarithm of the softmax, exact also where that rounds to 0.", "along"),
        sharding=along(),
        lowering="softmax",
    ),
]
