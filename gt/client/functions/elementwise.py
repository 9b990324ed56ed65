"""Elementwise functions: a tensor's methods, called as `gt.exp(x)`."""

from typing import Any

from gt.client.functions.base import function
from gt.client.tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "cos",
    "cosh",
    "div",
    "divide",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "floor_divide",
    "fmod",
    "frac",
    "lerp",
    "log",
    "log1p",
    "log2",
    "log10",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "nan_to_num",
    "neg",
    "negative",
    "positive",
    "pow",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "rsub",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
]

abs = function(Tensor.abs)
absolute = function(Tensor.absolute)
acos = function(Tensor.acos)
acosh = function(Tensor.acosh)
add = function(Tensor.add)
addcdiv = function(Tensor.addcdiv)
addcmul = function(Tensor.addcmul)
arccos = function(Tensor.arccos)
arccosh = function(Tensor.arccosh)
arcsin = function(Tensor.arcsin)
arcsinh = function(Tensor.arcsinh)
arctan = function(Tensor.arctan)
arctan2 = function(Tensor.arctan2)
arctanh = function(Tensor.arctanh)
asin = function(Tensor.asin)
asinh = function(Tensor.asinh)
atan = function(Tensor.atan)
atan2 = function(Tensor.atan2)
atanh = function(Tensor.atanh)
ceil = function(Tensor.ceil)
clamp = function(Tensor.clamp)
clamp_max = function(Tensor.clamp_max)
clamp_min = function(Tensor.clamp_min)
clip = function(Tensor.clip)
cos = function(Tensor.cos)
cosh = function(Tensor.cosh)
div = function(Tensor.div)
divide = function(Tensor.divide)
erf = function(Tensor.erf)
exp = function(Tensor.exp)
exp2 = function(Tensor.exp2)
expm1 = function(Tensor.expm1)
fix = function(Tensor.fix)
floor = function(Tensor.floor)
floor_divide = function(Tensor.floor_divide)
fmod = function(Tensor.fmod)
frac = function(Tensor.frac)
lerp = function(Tensor.lerp)
log = function(Tensor.log)
log10 = function(Tensor.log10)
log1p = function(Tensor.log1p)
log2 = function(Tensor.log2)
maximum = function(Tensor.maximum)
minimum = function(Tensor.minimum)
mul = function(Tensor.mul)
multiply = function(Tensor.multiply)
nan_to_num = function(Tensor.nan_to_num)
neg = function(Tensor.neg)
negative = function(Tensor.negative)
positive = function(Tensor.positive)
reciprocal = function(Tensor.reciprocal)
remainder = function(Tensor.remainder)
round = function(Tensor.round)
rsqrt = function(Tensor.rsqrt)
rsub = function(Tensor.rsub)
sign = function(Tensor.sign)
sin = function(Tensor.sin)
sinh = function(Tensor.sinh)
sqrt = function(Tensor.sqrt)
square = function(Tensor.square)
sub = function(Tensor.sub)
subtract = function(Tensor.subtract)
tan = function(Tensor.tan)
tanh = function(Tensor.tanh)
true_divide = function(Tensor.true_divide)
trunc = function(Tensor.trunc)


def pow(input: Any, exponent: Any) -> Tensor:
    """`input ** exponent`; either may be a number."""
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError("pow(): at least one argument must be Tensor")
    return input**exponent
