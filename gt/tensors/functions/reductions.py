"""Reductions that return two tensors."""

from gt.tensors.base import Number
from gt.tensors.methods.reductions import Dims
from gt.tensors.numpy_names import with_numpy_names
from gt.tensors.tensor import Tensor

__all__ = ["std_mean", "var_mean"]


@with_numpy_names
def var_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    over = None if isinstance(dim, bool) else dim  # var_mean(x, False) is var_mean(x, unbiased=False)
    return input.var(dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


@with_numpy_names
def std_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    over = None if isinstance(dim, bool) else dim  # as in `var_mean`
    return input.std(dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)
