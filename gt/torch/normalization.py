"""Batch normalization, whose schema does not declare that it changes the running statistics."""

import torch

from gt.torch.kernels import operation

Tensor = torch.Tensor


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The kernel of `aten::native_batch_norm`: in training, the running statistics get new values."""
    legit = torch.ops.aten._native_batch_norm_legit_functional
    if not training:
        arguments = (input, weight, bias, running_mean, running_var, training, momentum, eps)
        return operation("aten::native_batch_norm").run(*arguments)
    if running_mean is None or running_var is None:
        no_stats = torch.ops.aten._native_batch_norm_legit.no_stats
        return no_stats(input, weight, bias, training, momentum, eps)
    result, mean, inverse, new_mean, new_var = legit(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    running_mean.copy_(new_mean)
    running_var.copy_(new_var)
    return result, mean, inverse


KERNELS = {"native_batch_norm": native_batch_norm}
"""By the name of the overload."""
