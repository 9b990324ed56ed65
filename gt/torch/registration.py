"""Kernels for PyTorch's dispatcher: for linear layers and all aten ops that are not composed of others."""

import warnings
from typing import Any

import torch

from gt.torch import (
    batched,
    foreach,
    fused_cells,
    linear,
    normalization,
    packing,
    random_ops,
    storages,
    transfers,
    unsupported,
)
from gt.torch.allocation import CPU_KEYS
from gt.torch.buffers import Layout, buffer_of, contiguous, create
from gt.torch.device import check_index
from gt.torch.kernels import kernel
from gt.torch.schemas import schema_of
from gt.torch.shard import FUSED, fused, zeros_like

VIEWS = (
    *(
        "as_strided",
        "view",
        "_reshape_alias",
        "unfold",
        "view_as_real",
        "view_as_complex",
        "set_.source_Tensor",
    ),
    *(
        "set_",
        "_unsafe_view",
        "view.dtype",
        "as_strided_",
    ),
    *("_conj", "_neg_view"),
)
"""Ops that only change sizes, strides, offsets and storages: PyTorch's own kernels do that for any device."""

_COMPOSED_KEY_NAME = "CompositeImplicitAutograd"
_EXPLICIT_KEY_NAME = "CompositeExplicitAutograd"


def register() -> Any:
    """Register the kernels; the result keeps them registered."""
    library = torch._C._dispatch_library("IMPL", "aten", "PrivateUse1")
    own = {
        "copy_": transfers.copy_,
        "_copy_from": lambda src, dst, non_blocking=False: transfers.copy_(dst, src, non_blocking),
        "_to_copy": transfers.to_copy,
        "_local_scalar_dense": transfers.local_scalar_dense,
        "record_stream": lambda self, stream: None,  # values are freed after all issued instructions are done
        "resize_": storages.resize_,
        "empty.memory_format": _empty,
        "empty_strided": _empty_strided,
        "as_strided_copy": lambda self, *args: self.as_strided(*args).clone(),
        "as_strided_copy.out": lambda self, size, *args, out: out.resize_(size).copy_(
            self.as_strided(size, *args)
        ),
        **{name: _own_kernel(name) for name in VIEWS},
        "set_.source_Storage": storages.set_,
        "set_.source_Storage_storage_offset": storages.set_,
        "zeros_like": zeros_like,
        **{name: fused(name) for name in FUSED},
        **random_ops.KERNELS,
        **foreach.KERNELS,
        **fused_cells.KERNELS,
        "linear": kernel("aten::linear"),
        "linear_backward": linear.linear_backward,
        **batched.KERNELS,
        **normalization.KERNELS,
        **packing.KERNELS,
        **unsupported.KERNELS,
    }
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for full in torch._C._dispatch_get_all_op_names():
            name = full.removeprefix("aten::")
            if name == full or has(full, "PrivateUse1"):
                continue
            if name in own:
                library.impl(name, "PrivateUse1", own[name])
            elif not has(full, _COMPOSED_KEY_NAME) and not (
                has(full, _EXPLICIT_KEY_NAME) and _left_to_pytorch(name)
            ):
                library.impl(name, "PrivateUse1", kernel(full))
    return library


_LEFT = frozenset(
    {
        *("alias", "detach", "detach_", "diagonal", "expand", "permute", "select", "slice", "split"),
        *(
            "split_with_sizes",
            "squeeze",
            "squeeze_",
            "t",
            "t_",
            "transpose",
            "transpose_",
            "unbind",
            "unsqueeze",
        ),
        *("unsqueeze_", "lift", "lift_fresh", "clone", "contiguous", "empty_like"),
        *("new_empty", "new_empty_strided", "empty_permuted", "resize_as_", "_fw_primal", "_make_dual"),
        *("is_pinned", "_pin_memory", "is_same_size", "_reshape_copy", "_lazy_clone", "dense_dim"),
        *("sparse_dim", "_resize_output_", "_has_same_storage_numel", "is_coalesced", "allclose", "set_data"),
        *(
            "narrow_copy",
            "new_zeros",
            "new_ones",
            "new_full",
            "zeros",
            "ones",
            "ones_like",
            "full_like",
        ),
        *("_assert_tensor_metadata", "_new_zeros_with_same_feature_meta", "_test_warn_in_autograd"),
    }
)


def _left_to_pytorch(name: str) -> bool:
    """Whether an op keeps PyTorch's own composition: views, copies, and ops over lists."""
    packet = name.partition(".")[0]
    return packet in _LEFT or packet in random_ops.COMPOSED or packet.startswith("_foreach_")


def _own_kernel(name: str) -> Any:
    redispatch = schema_of(f"aten::{name}").function._handle.redispatch_boxed

    def run(*args: Any, **kwargs: Any) -> Any:
        for one in args:
            if isinstance(one, torch.Tensor):
                buffer_of(one).layout = None  # from here on, tensors with this storage may differ
        return redispatch(CPU_KEYS, *args, **kwargs)

    return run


def _empty(
    size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> torch.Tensor:
    check_index(device)
    size, dtype = tuple(size), dtype or torch.get_default_dtype()
    layout = contiguous(size, dtype)
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
        layout = Layout(size, stride, dtype)
    return create(layout, None)


def _empty_strided(
    size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> torch.Tensor:
    check_index(device)
    return create(Layout(tuple(size), tuple(stride), dtype or torch.get_default_dtype()), None)
