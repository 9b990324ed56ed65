"""Scaled dot-product attention as one op, whenever PyTorch fuses it on a CPU.

Otherwise, PyTorch decomposes it into matrix products and a softmax, as for devices without a fused kernel.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from gt.torch import forward_mode

Tensor = torch.Tensor

_choice: Any = torch._C._VariableFunctions._fused_sdp_choice  # type: ignore[attr-defined]
_FLASH = 1
"""PyTorch's number for the fused implementation."""

_chosen: dict[tuple[Any, ...], bool] = {}
"""Whether attention is fused, by the layouts and arguments that this depends on."""


def register() -> Any:
    """Register the kernel; the result keeps it registered."""
    library = torch.library.Library("aten", "IMPL")
    for key in ("PrivateUse1", "AutogradPrivateUse1"):
        library.impl("scaled_dot_product_attention", scaled_dot_product_attention, key)
    return library


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The kernel of `torch.nn.functional.scaled_dot_product_attention`."""
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    if not _is_fused((query, key, value, attn_mask), options):
        composed = torch.ops.aten.scaled_dot_product_attention.default._op_dk
        kind = torch._C.DispatchKey.CompositeImplicitAutograd
        return composed(kind, query, key, value, attn_mask, **options)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        zeros = torch.zeros_like(attn_mask, dtype=query.dtype)
        attn_mask = zeros.masked_fill(attn_mask.logical_not(), float("-inf"))
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    return fused(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]


def _is_fused(tensors: tuple[Tensor | None, ...], options: dict[str, Any]) -> bool:
    """Whether PyTorch would fuse attention over CPU tensors with these layouts."""
    if forward_mode.is_active():
        return False  # the fused op has no forward formula
    grad = torch.is_grad_enabled()
    found = tuple([one if one is None else (*_layout(one), grad and one.requires_grad) for one in tensors])
    if any(type(n) is not int for one in found if one is not None for n in (*one[0], *one[1])):
        return False  # torch.compile with sizes that are not known
    key = (*found, *options.values(), torch.backends.cuda.flash_sdp_enabled())  # for all devices
    fused = _chosen.get(key)
    if fused is None:
        # Modes of torch.compile are for tensors without data, and those of torch.func for wrapped ones.
        with _disable_current_modes(), torch._C._DisableFuncTorch():
            like: list[Any] = [one if one is None else _like(*one) for one in found]
            fused = _chosen[key] = _choice(*like, **options) == _FLASH
        if len(_chosen) > 10_000:
            _chosen.clear()
    return fused


def _layout(tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype


def _like(size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, requires_grad: bool) -> Tensor:
    """A CPU tensor without data, for PyTorch's checks."""
    return torch.empty_strided(size, stride, dtype=dtype, device="cpu", requires_grad=requires_grad)
