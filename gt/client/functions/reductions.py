"""Reductions: a tensor's methods, called as `gt.sum(x, dim=0)`."""

from typing import Any

from gt.client.functions.base import function
from gt.client.methods.reductions import Dims
from gt.client.tensor import Tensor

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]

all = function(Tensor.all)
amax = function(Tensor.amax)
amin = function(Tensor.amin)
aminmax = function(Tensor.aminmax)
any = function(Tensor.any)
argmax = function(Tensor.argmax)
argmin = function(Tensor.argmin)
count_nonzero = function(Tensor.count_nonzero)
cumprod = function(Tensor.cumprod)
cumsum = function(Tensor.cumsum)
logsumexp = function(Tensor.logsumexp)
max = function(Tensor.max)
mean = function(Tensor.mean)
min = function(Tensor.min)
norm = function(Tensor.norm)
prod = function(Tensor.prod)
std = function(Tensor.std)
sum = function(Tensor.sum)
var = function(Tensor.var)


def var_mean(input: Tensor, dim: Dims = None, **options: Any) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    return input.var(dim, **options), input.mean(dim, options.get("keepdim", False))


def std_mean(input: Tensor, dim: Dims = None, **options: Any) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    return input.std(dim, **options), input.mean(dim, options.get("keepdim", False))
