"""Modules that move to the device keep their parameters' identity, so that tied weights stay tied.

`Module._apply` makes new parameters where a tensor's kind changes, one for each place that a parameter is
in. Swapping the contents of the parameters, which PyTorch can do
(`torch.__future__.set_swap_module_params_on_conversion`), keeps them the same objects. It is switched on
while a module moves to or from the device, and not otherwise.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gt.torch.buffers import is_on_device


def keep_ties() -> None:
    """Have modules keep their parameters when they move to or from the device."""
    original = nn.Module._apply

    @functools.wraps(original)
    def _apply(self: nn.Module, fn: Callable[[torch.Tensor], Any], *args: Any, **kwargs: Any) -> Any:
        future = torch.__future__
        if future.get_swap_module_params_on_conversion() or not _moves(self, fn):
            return original(self, fn, *args, **kwargs)
        future.set_swap_module_params_on_conversion(True)
        try:
            return original(self, fn, *args, **kwargs)
        finally:
            future.set_swap_module_params_on_conversion(False)

    nn.Module._apply = _apply


def _moves(module: nn.Module, fn: Callable[[torch.Tensor], Any]) -> bool:
    """Whether a conversion moves parameters to or from the device."""
    first = next(module.parameters(), None)
    if first is None:
        return False
    with torch.no_grad():
        after = fn(torch.empty(0, dtype=first.dtype, device=first.device))
    return is_on_device(first) != is_on_device(after)
