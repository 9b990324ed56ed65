"""Ops that compute one element at a time: arithmetic, rounding, mathematical functions, casts."""

import math
from typing import Any

from gt.errors import ArgumentError, DTypeError
from gt.ops import dtypes
from gt.ops.engines import Functions
from gt.ops.method import Method, Samples
from gt.ops.row import Gradient, Infer, Row, Spec
from gt.ops.rules import broadcast, divide, floating, no_bool, only, partials, same, zeros
from gt.ops.sharding import elementwise as sharding


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


def _unary(
    names: str,
    doc: str,
    functions: tuple[str, str],
    grad: Gradient | None,
    infer: Infer = floating,
    domain: tuple[float, float] = (-2.0, 2.0),
    **more: Any,
) -> Row:
    """A function of one tensor; `names` are the op's own and its aliases, `domain` is where it is defined."""
    return Row(
        names.partition(" ")[0],
        "UnaryOp",
        infer,
        Functions(*functions),
        () if grad is None else (grad,),
        methods=(Method(names, doc, in_place=True),),
        samples=Samples("math", *domain),
        **more,
    )


def _math(
    names: str, doc: str, grad: Gradient, domain: tuple[float, float] = (-2.0, 2.0), numpy: str = ""
) -> Row:
    """A function that PyTorch calls by the same name, and that NumPy and JAX have too."""
    name = names.partition(" ")[0]
    return _unary(names, doc, (f"torch.{name}", f"numpy.{numpy or name}"), grad, domain=domain)


def _rounding(names: str, doc: str) -> Row:
    name = names.partition(" ")[0]
    functions = (f"torch.{name}", f"numpy.{name}")
    return _unary(names, doc, functions, zeros, only(name, "int float", same))


def _binary(name: str, infer: Infer, grads: tuple[Gradient, ...] = (), *methods: Method, **more: Any) -> Row:
    """One of Python's own operators: every engine overloads them, with numbers on either side."""
    function = f"operator.{name}"
    return Row(
        name,
        "BinaryOp",
        infer,
        Functions(function, function),
        grads,
        methods=methods,
        operator=name,
        samples=Samples("arithmetic"),
        **more,
    )


def _pair(name: str, infer: Infer, grads: tuple[Gradient, ...], method: Method, numpy: str = "") -> Row:
    """A function of two tensors."""
    functions = Functions(f"torch.{name}", f"numpy.{numpy or name}")
    return Row(name, "BinaryOp", infer, functions, grads, methods=(method,), samples=Samples("pair"))


# Where two elements are equal, each is half the maximum: PyTorch's choice.
_of_larger = partials(
    lambda g, a, b: (g * 0.5).where(a == b, g.where(a > b, 0)),
    lambda g, a, b: (g * 0.5).where(a == b, g.where(b > a, 0)),
)
_of_smaller = partials(
    lambda g, a, b: (g * 0.5).where(a == b, g.where(a < b, 0)),
    lambda g, a, b: (g * 0.5).where(a == b, g.where(b < a, 0)),
)

_POSITIVE, _INSIDE = (0.1, 2.0), (-0.9, 0.9)
"""Domains: of roots and logarithms, and of the inverses of sine, cosine and hyperbolic tangent."""

ROWS = [
    _binary("add", broadcast, partials(lambda g, a, b: g, lambda g, a, b: g), sharding=sharding.additive),
    _binary(
        "sub",
        no_bool("Subtraction, the `-` operator,", broadcast),
        partials(lambda g, a, b: g, lambda g, a, b: -g),
        sharding=sharding.additive,
    ),
    _binary(
        "mul",
        broadcast,
        partials(lambda g, a, b: g * b, lambda g, a, b: g * a),
        Method("mul multiply", "`self * other`.", in_place=True, number_first=True),
        sharding=sharding.scaled(commutes=True),
    ),
    _binary(
        "truediv",
        divide,
        partials(lambda g, a, b: g / b, lambda g, a, b: -g * a / (b * b)),
        Method("true_divide", "`self / other`.", in_place=True),
        sharding=sharding.scaled(commutes=False),
    ),
    _binary(
        "floordiv",
        only("floor_divide", "int float", broadcast),
        partials(zeros, zeros),
        Method("floor_divide", "`self // other`: the quotient, rounded down.", in_place=True),
    ),
    _binary(
        "mod",
        only("remainder", "int float", broadcast),
        partials(lambda g, a, b: g, lambda g, a, b: -g * (a // b)),
        Method(
            "remainder",
            "`self % other`: the remainder of a floor division; it has the sign of `other`.",
            in_place=True,
            number_first=True,
        ),
    ),
    # Its exponent is part of a compiled graph: x ** 2 is x * x.
    _binary("pow", _power, partials(_power_by_base, _power_by_exponent), compiled_numbers=()),
    _pair(
        "fmod",
        only("fmod", "int float", broadcast),
        partials(lambda g, a, b: g, lambda g, a, b: -g * (a / b).trunc()),
        Method(
            "fmod",
            "The remainder of a division rounded towards 0; it has the sign of `self`.",
            in_place=True,
        ),
    ),
    _pair("maximum", broadcast, _of_larger, Method("maximum", "The larger of two elements.", "tensor")),
    _pair("minimum", broadcast, _of_smaller, Method("minimum", "The smaller of two elements.", "tensor")),
    _pair(
        "atan2",
        divide,
        partials(lambda g, a, b: g * b / (a * a + b * b), lambda g, a, b: -g * a / (a * a + b * b)),
        Method("atan2 arctan2", "The angle of the point (other, self), in radians.", "tensor", in_place=True),
        "arctan2",
    ),
    Row(
        "neg",
        "UnaryOp",
        no_bool("Negation", same),
        Functions("torch.neg", "numpy.negative"),
        (lambda g, n: -g,),
        sharding=sharding.negative,
        methods=(Method("neg negative", "`-self`.", in_place=True),),
        operator="neg",
    ),
    _unary(
        "abs absolute",
        "The absolute value of each element.",
        ("torch.abs", "numpy.abs"),
        lambda g, n: g * n.inputs[0].sign(),
        only("abs", "int float", same),
        operator="abs",
    ),
    _unary("sign", "The sign of each element: -1, 0 or 1.", ("torch.sign", "elementwise.sign"), zeros, same),
    _unary(
        "square",
        "The square of each element.",
        ("torch.square", "numpy.square"),
        lambda g, n: g * 2 * n.inputs[0],
        _square,
    ),
    _rounding("floor", "Each element, rounded down."),
    _rounding("ceil", "Each element, rounded up."),
    Row(
        "round",
        "UnaryOp",
        only("round", "int float", same),
        Functions("torch.round", "numpy.round"),
        (zeros,),
        samples=Samples("math"),
    ),
    _rounding("trunc fix", "Each element, rounded towards 0."),
    _math("reciprocal", "1 divided by each element.", lambda g, n: -g * n.output * n.output),
    _math("sqrt", "The square root of each element.", lambda g, n: g / (2 * n.output), _POSITIVE),
    _unary(
        "rsqrt",
        "1 divided by the square root of each element.",
        ("torch.rsqrt", "elementwise.rsqrt"),
        lambda g, n: g * -0.5 * n.output**3,
        domain=_POSITIVE,
    ),
    _math("exp", "e to the power of each element.", lambda g, n: g * n.output),
    _math("exp2", "2 to the power of each element.", lambda g, n: g * n.output * math.log(2)),
    _math("expm1", "exp(x) - 1 of each element, exact near 0.", lambda g, n: g * (n.output + 1)),
    _math("log", "The natural logarithm of each element.", lambda g, n: g / n.inputs[0], _POSITIVE),
    _math(
        "log1p",
        "log(1 + x) of each element, exact near 0.",
        lambda g, n: g / (n.inputs[0] + 1),
        _POSITIVE,
    ),
    _math(
        "log2",
        "The logarithm to base 2 of each element.",
        lambda g, n: g / (n.inputs[0] * math.log(2)),
        _POSITIVE,
    ),
    _math(
        "log10",
        "The logarithm to base 10 of each element.",
        lambda g, n: g / (n.inputs[0] * math.log(10)),
        _POSITIVE,
    ),
    _math("sin", "The sine of each element.", lambda g, n: g * n.inputs[0].cos()),
    _math("cos", "The cosine of each element.", lambda g, n: -g * n.inputs[0].sin()),
    _math("tan", "The tangent of each element.", lambda g, n: g * (1 + n.output * n.output)),
    _math(
        "asin arcsin",
        "The inverse sine of each element.",
        lambda g, n: g * (1 - n.inputs[0].square()).rsqrt(),
        _INSIDE,
        "arcsin",
    ),
    _math(
        "acos arccos",
        "The inverse cosine of each element.",
        lambda g, n: -g * (1 - n.inputs[0].square()).rsqrt(),
        _INSIDE,
        "arccos",
    ),
    _math(
        "atan arctan",
        "The inverse tangent of each element.",
        lambda g, n: g / (n.inputs[0].square() + 1),
        numpy="arctan",
    ),
    _math("sinh", "The hyperbolic sine of each element.", lambda g, n: g * n.inputs[0].cosh()),
    _math("cosh", "The hyperbolic cosine of each element.", lambda g, n: g * n.inputs[0].sinh()),
    _math("tanh", "The hyperbolic tangent of each element.", lambda g, n: g * (1 - n.output * n.output)),
    _math(
        "asinh arcsinh",
        "The inverse hyperbolic sine of each element.",
        lambda g, n: g * (n.inputs[0].square() + 1).rsqrt(),
        numpy="arcsinh",
    ),
    _math(
        "acosh arccosh",
        "The inverse hyperbolic cosine of each element.",
        lambda g, n: g * (n.inputs[0].square() - 1).rsqrt(),
        (1.1, 3.0),
        "arccosh",
    ),
    _math(
        "atanh arctanh",
        "The inverse hyperbolic tangent of each element.",
        lambda g, n: g / (1 - n.inputs[0].square()),
        _INSIDE,
        "arctanh",
    ),
    _unary(
        "erf",
        "The error function of each element.",
        ("torch.erf", "elementwise.erf"),
        lambda g, n: g * (2 / math.sqrt(math.pi)) * (-n.inputs[0].square()).exp(),
    ),
    Row("clamp", "UnaryOp", _clamp, Functions("torch.clamp", "elementwise.clamp"), (_clamp_gradient,)),
    Row(
        "cast",
        "UnaryOp",
        _cast,
        Functions("elementwise.cast", "elementwise.cast"),
        (lambda g, n: g.to(n.inputs[0].dtype),),
        sharding=sharding.cast,
    ),
]
