"""Elementwise functions, one row each: the functions of `nki.language`, and the ops that `nki.isa` takes.

A row has the function and the name that clients receive. Floats are computed in float32, as on the engines.
Results are integers if all operands are.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from triton_viz.errors import UnsupportedError
from triton_viz.numerics import special


class Function(NamedTuple):
    """An elementwise function of one or two operands."""

    name: str
    compute: Callable[..., np.ndarray]
    operands: int
    client_name: str
    """The name of its op for floats; empty if it has none."""
    integer_name: str = ""
    """The name of its op for integers; empty if they are converted to floats first."""
    boolean: bool = False
    """Whether its result is boolean."""
    engine: str = "vector"
    operations: int = 1
    """How many operations it is on each element, as the profiler counts: what only compares, copies or rounds
    is none."""


_GELU = math.sqrt(2 / math.pi)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.float32(0.5) * (1 + np.tanh(x / 2))


def _normal(x: np.ndarray) -> np.ndarray:
    return np.float32(0.5) * (1 + special.erf(x / np.float32(math.sqrt(2))))


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-x * x / 2) / np.float32(math.sqrt(2 * math.pi))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, np.float32(0))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * np.float32(0.5) * (1 + np.tanh(np.float32(_GELU) * (x + np.float32(0.044715) * x**3)))


def _gelu_sigmoid(x: np.ndarray) -> np.ndarray:
    return x * _sigmoid(np.float32(1.702) * x)


def _gelu_sigmoid_dx(x: np.ndarray) -> np.ndarray:
    s = _sigmoid(np.float32(1.702) * x)
    return s + np.float32(1.702) * x * s * (1 - s)


def _silu_dx(x: np.ndarray) -> np.ndarray:
    s = _sigmoid(x)
    return s * (1 + x * (1 - s))


def _shifted(shift: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A shift by at most the number of bits of the type."""
    return lambda x, y: shift(x, np.asarray(y).astype(x.dtype) if np.ndim(y) else y)


def _activation(name: str, compute: Callable[..., np.ndarray], client_name: str = "") -> Function:
    return Function(name, compute, 1, client_name or name, engine="scalar")


def _binary(name: str, compute: Callable[..., np.ndarray], client_name: str, integer_name: str) -> Function:
    return Function(name, compute, 2, client_name, integer_name)


def _comparison(name: str) -> Function:
    return Function(name, getattr(np, name), 2, name, name, boolean=True, operations=0)


_ROWS = [
    _activation("exp", np.exp),
    _activation("log", np.log),
    _activation("sin", np.sin),
    _activation("cos", np.cos),
    _activation("tan", np.tan),
    _activation("tanh", np.tanh),
    _activation("arctan", np.arctan),
    _activation("sqrt", np.sqrt),
    _activation("rsqrt", lambda x: 1 / np.sqrt(x)),
    _activation("erf", special.erf),
    _activation("erf_dx", lambda x: np.float32(2 / math.sqrt(math.pi)) * np.exp(-x * x)),
    _activation("sigmoid", _sigmoid),
    _activation("relu", lambda x: np.maximum(x, 0), "maximumf"),
    _activation("silu", lambda x: x * _sigmoid(x)),
    _activation("silu_dx", _silu_dx),
    _activation("gelu", lambda x: x * _normal(x)),
    _activation("gelu_dx", lambda x: _normal(x) + x * _density(x)),
    _activation("gelu_apprx_tanh", _gelu_tanh),
    _activation("gelu_apprx_sigmoid", _gelu_sigmoid),
    _activation("gelu_apprx_sigmoid_dx", _gelu_sigmoid_dx),
    _activation("softplus", _softplus),
    _activation("mish", lambda x: x * np.tanh(_softplus(x))),
    Function("square", np.square, 1, "fmul", "mul", engine="scalar"),
    Function("reciprocal", np.reciprocal, 1, "fdiv"),
    Function("abs", np.abs, 1, "abs", "iabs", operations=0),
    Function("negative", np.negative, 1, "fneg", "neg"),
    Function("sign", np.sign, 1, "sign", "sign", operations=0),
    Function("floor", np.floor, 1, "floor", operations=0),
    Function("ceil", np.ceil, 1, "ceil", operations=0),
    Function("trunc", np.trunc, 1, "trunc", operations=0),
    Function("copy", np.positive, 1, "copy", "copy", operations=0),
    Function("bypass", np.positive, 1, "copy", "copy", operations=0),
    Function("logical_not", np.logical_not, 1, "logical_not", "logical_not", boolean=True, operations=0),
    Function("invert", np.invert, 1, "", "invert"),
    _binary("add", np.add, "fadd", "add"),
    _binary("subtract", np.subtract, "fsub", "sub"),
    _binary("multiply", np.multiply, "fmul", "mul"),
    _binary("divide", np.true_divide, "fdiv", ""),
    _binary("power", np.power, "power", ""),
    _binary("maximum", np.maximum, "maximumf", "maxsi"),
    _binary("minimum", np.minimum, "minimumf", "minsi"),
    _binary("abs_max", lambda x, y: np.where(np.abs(x) > np.abs(y), x, y), "maximumf", "maxsi"),
    _binary("abs_min", lambda x, y: np.where(np.abs(x) < np.abs(y), x, y), "minimumf", "minsi"),
    _binary("mod", np.mod, "frem", "srem"),
    _binary("floor_divide", np.floor_divide, "fdiv", "sdiv"),
    _binary("bitwise_and", np.bitwise_and, "", "and"),
    _binary("bitwise_or", np.bitwise_or, "", "or"),
    _binary("bitwise_xor", np.bitwise_xor, "", "xor"),
    _binary("left_shift", _shifted(np.left_shift), "", "shl"),
    _binary("right_shift", _shifted(np.right_shift), "", "ashr"),
    *map(_comparison, ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")),
    *map(_comparison, ("logical_and", "logical_or", "logical_xor")),
]
FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}

_ALIASES = {
    "max": "maximum",
    "amax": "maximum",
    "min": "minimum",
    "amin": "minimum",
    "sum": "add",
    "prod": "multiply",
    "mult": "multiply",
    "true_divide": "divide",
    "remainder": "mod",
    "absolute": "abs",
    "pow": "power",
    "identity": "copy",
    "positive": "copy",
    "fmod": "mod",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "bitwise_invert": "invert",
    "bitwise_not": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}

REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.sum,
    "multiply": np.prod,
    "maximum": np.max,
    "minimum": np.min,
    "logical_and": np.all,
    "logical_or": np.any,
    "bitwise_and": np.bitwise_and.reduce,
    "bitwise_or": np.bitwise_or.reduce,
    "bitwise_xor": np.bitwise_xor.reduce,
    "subtract": np.subtract.reduce,
}
"""The functions that can combine an axis."""


def function_of(op: Any, of: str) -> Function:
    """The row of an op that a kernel names: `nl.exp`, `np.add`, or a name."""
    name = op if isinstance(op, str) else getattr(op, "__name__", str(op))
    name = _ALIASES.get(name, name)
    if name not in FUNCTIONS:
        raise UnsupportedError(f"{of} has no op {name!r}: choose one of {', '.join(sorted(FUNCTIONS))}")
    return FUNCTIONS[name]


def identity_of(name: str, dtype: np.dtype) -> Any:
    """The identity element of a reduction."""
    if name in ("maximum", "minimum"):
        low, high = (-np.inf, np.inf) if dtype.kind == "f" else _limits(dtype)
        return low if name == "maximum" else high
    if name == "bitwise_and":
        return -1
    return {"multiply": 1, "logical_and": True}.get(name, 0)


def _limits(dtype: np.dtype) -> tuple[Any, Any]:
    if dtype.kind == "b":
        return False, True
    return np.iinfo(dtype).min, np.iinfo(dtype).max
