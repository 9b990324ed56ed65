"""`tensor.data = other` where one of them is on the device and the other is not.

`Module.to` moves parameters in this way, so that they stay the same Python objects: tied weights stay tied,
and hooks, attributes and optimizers keep referring to them. PyTorch replaces the contents of the tensor's C++
implementation object, but only for a fixed list of devices, which does not include this one. Here the tensor
gets another implementation object, and keeps its gradient and hooks.
"""

import functools
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gt.torch.buffers import is_on_device

_own_data: Any = torch.Tensor.data
_own_compatible: Any = torch._C._VariableFunctions._has_compatible_shallow_copy_type  # type: ignore


def move_by_data() -> None:
    """Patch PyTorch so that `tensor.data = other` moves tensors to and from the device."""
    torch.Tensor.data = property(_own_data.__get__, _set_data, doc=_own_data.__doc__)  # type: ignore
    torch._has_compatible_shallow_copy_type = _compatible  # type: ignore


def _crosses(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return is_on_device(tensor) != is_on_device(other) and {tensor.layout, other.layout} == {torch.strided}


@functools.wraps(_own_compatible)  # TorchDynamo requires the original signature
def _compatible(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether `tensor.data = other` works. Called by `Module.to`."""
    return _own_compatible(tensor, other) or _crosses(tensor, other)


def _set_data(tensor: torch.Tensor, other: torch.Tensor) -> None:
    if isinstance(other, torch.Tensor) and tensor.is_leaf and _crosses(tensor, other):
        _move(tensor, other)
    else:
        _own_data.__set__(tensor, other)


def _move(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Give a tensor the data of one that is on another device."""
    grad, hooks, post_hooks = tensor.grad, tensor._backward_hooks, tensor._post_accumulate_grad_hooks
    tensor.grad = None
    if tensor.requires_grad and not is_lazy(tensor):  # which no graph has
        with torch.enable_grad():
            torch.autograd.graph.get_gradient_edge(tensor).node.register_prehook(_refuse)
    torch._C._swap_tensor_impl(tensor, other.detach().requires_grad_(tensor.requires_grad))
    tensor._backward_hooks, tensor._post_accumulate_grad_hooks = hooks, post_hooks
    if grad is not None:
        grad.data = grad.detach().to(tensor.device, tensor.dtype)
        tensor.grad = grad if grad.shape == tensor.shape else None


def _refuse(gradients: Any) -> None:
    raise RuntimeError(
        "this backward pass leads to a tensor that was moved to another device after the forward pass, for "
        "example by model.to(): move it before the forward pass, or after the backward pass"
    )
