"""The gradient of linear layers: one kernel, where PyTorch would compose ten ops, most of them views.

The forward pass is the op table's `linear` (see `lowering.py`).
"""

from collections.abc import Sequence
from typing import Any

import torch

from gt.torch.buffers import contiguous, create, emit, read

Tensor = torch.Tensor


def register() -> Any:
    """Register the gradient under `vmap`, for which PyTorch has no rule; the result keeps it registered."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("linear_backward", _composed, "FuncTorchBatchedDecomposition")
    return library


def linear_backward(
    input: Tensor, grad: Tensor, weight: Tensor, mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of input, weight and bias; None for those that `mask` excludes."""
    if input.is_complex():
        return _composed(input, grad, weight, mask)
    of_input = of_weight = of_bias = None
    if mask[0]:
        value = emit("matmul", (read(grad), read(weight)), None)
        of_input = create(contiguous(tuple(input.shape), grad.dtype), value)
    if mask[1]:
        value = emit("linear_weight_grad", (read(grad), read(input)), None)
        of_weight = create(contiguous(tuple(weight.shape), grad.dtype), value)
    if mask[2]:
        value, leading = read(grad), list(range(grad.dim() - 1))
        if leading:
            value = emit("sum", (value,), {"dim": leading, "keepdim": False})
        of_bias = create(contiguous((weight.shape[0],), grad.dtype), value)
    return of_input, of_weight, of_bias


def _composed(
    input: Tensor, grad: Tensor, weight: Tensor, mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The same gradients, composed of other ops."""
    rows = grad.reshape(-1, grad.shape[-1])
    return (
        grad @ weight.conj() if mask[0] else None,
        rows.t() @ input.reshape(-1, input.shape[-1]).conj() if mask[1] else None,
        rows.sum(0) if mask[2] else None,
    )
