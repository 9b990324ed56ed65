"""Ops that make networks bend."""

import math
from typing import Any

from gt.ops.row import Row, engines
from gt.ops.rules import floating, no_bool, only, same

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


def _smooth(name: str, pytorch: str, gradient: Any) -> Row:
    return Row(
        name,
        "UnaryOp",
        only(name, "float", same),
        engines(f"torch.nn.functional.{pytorch}", f"activations.{name}"),
        (gradient,),
    )


ROWS = [
    Row(
        "sigmoid",
        "UnaryOp",
        floating,
        engines("torch.sigmoid", "activations.sigmoid"),
        (lambda g, n: g * n.output * (1 - n.output),),
    ),
    Row(
        "relu",
        "UnaryOp",
        no_bool("relu", same),
        engines("torch.relu", "activations.relu"),
        (lambda g, n: g.where(n.output > 0, 0),),
    ),
    Row(
        "hardtanh",
        "UnaryOp",
        no_bool("hardtanh", same),
        engines("torch.nn.functional.hardtanh", "activations.hardtanh"),
        (_hardtanh_gradient,),
    ),
    _smooth(
        "leaky_relu",
        "leaky_relu",
        lambda g, n: g.where(n.inputs[0] > 0, g * n.attrs["negative_slope"]),
    ),
    _smooth("elu", "elu", _elu_gradient),
    _smooth("gelu", "gelu", _gelu_gradient),
    _smooth("silu", "silu", _silu_gradient),
    _smooth("softplus", "softplus", _softplus_gradient),
    _smooth("softmax", "softmax", _softmax_gradient),
    _smooth("log_softmax", "log_softmax", _log_softmax_gradient),
]
