"""`pin_memory=True`, which programs for GPUs ask for, without an allocator for pinned memory.

A device that is registered in Python cannot provide one to PyTorch, which refuses `torch.empty(...,
pin_memory=True)` then. Uploads copy from any memory, so such a tensor is an ordinary one of the CPU here.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.jit import _builtins
from torch.utils import _device

_FACTORIES = (
    *("arange", "empty", "empty_permuted", "empty_strided", "eye", "full", "linspace", "logspace", "ones"),
    *("rand", "randint", "randn", "randperm", "tensor", "zeros"),
)
"""Those that take no tensor. Of the others, libraries compare the function that PyTorch passes to
`__torch_function__` with `torch.zeros_like`, so that has to stay the original."""


def patch_pinned_memory() -> None:
    """Have PyTorch's functions ignore `pin_memory=True`."""
    torch.Tensor.pin_memory = _pin_memory
    constructors: Any = _device._device_constructors()  # cached: those that take the default device
    for name in _FACTORIES:
        own = getattr(torch, name)
        made = _unpinned(own)
        setattr(torch, name, made)
        if own in constructors:
            constructors.add(made)  # TorchDynamo looks for the function that programs call
        if builtin := _builtins._find_builtin(own):
            _builtins._register_builtin(made, builtin)  # for torch.jit.script


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """The tensor itself: uploads copy from any memory, and the device has no allocator for pinned memory."""
    return self


def _unpinned(factory: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(factory)
    def call(*args: Any, **kwargs: Any) -> torch.Tensor:
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return factory(*args, **kwargs)

    call.__module__, call.__qualname__ = "torch", call.__name__  # where pickle looks for it
    return call
