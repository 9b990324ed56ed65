"""Kinds of tensors that the device does not have: sparse, quantized and nested ones.

PyTorch has a dispatch key for each kind and device. Ops with one of the device's keys raise the error.
"""

import sys
from typing import Any, NoReturn

import torch

from gt.torch import scopes

UNSUPPORTED = {
    "SparsePrivateUse1": ("sparse", "use x.to_dense()"),
    "SparseCsrPrivateUse1": ("sparse", "use x.to_dense()"),
    "QuantizedPrivateUse1": ("quantized", "use x.dequantize()"),
    "NestedTensorPrivateUse1": ("nested", "pad it with x.to_padded_tensor(0.0)"),
}
"""By dispatch key: the kind, and the alternative for programs."""

CONVERSIONS = (
    *("_to_sparse", "_to_sparse.sparse_dim", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr"),
    *("_to_sparse_bsc", "sparse_mask", "_sparse_mask_projection", "quantize_per_tensor"),
    *("quantize_per_tensor_dynamic", "quantize_per_channel", "_nested_tensor_from_mask"),
    *("_nested_view_from_buffer", "_nested_tensor_from_tensor_list", "_nested_from_padded", "to_mkldnn"),
)
"""Ops that make such tensors from dense ones."""


def register() -> list[Any]:
    """Register the errors; the result keeps them registered."""
    libraries = []
    for key, (kind, instead) in UNSUPPORTED.items():
        library = torch.library.Library("_", "IMPL", key)
        library.fallback(_refusing(kind, instead))
        libraries.append(library)
    return libraries


def _refusing(kind: str, instead: str) -> Any:
    def run(op: Any, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(op.name(), kind, instead)

    return run


def refuse(op: str, kind: str, instead: str) -> NoReturn:
    """Raise the error for an op that needs a kind of tensors which the device does not have."""
    line, _ = scopes.line_of(scopes.current(), sys._getframe(1))
    raise NotImplementedError(
        f"{op} (at {line}): the device tapestry has no {kind} tensors. Do this part on the CPU "
        f"(x.cpu()), or {instead} before moving it to the device"
    )


def _conversion(name: str) -> Any:
    kind = next((one for one in ("sparse", "nested", "mkldnn") if one in name), "quantized")
    instead = next((instead for one, instead in UNSUPPORTED.values() if one == kind), "use x.to_dense()")

    def run(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(f"aten::{name}", kind, instead)

    return run


KERNELS = {
    **{name: _conversion(name) for name in CONVERSIONS},
    # `nn.TransformerEncoder` calls this before it makes a nested tensor; after False it uses the padded one.
    "_nested_tensor_from_mask_left_aligned": lambda t, mask: False,
}
"""The kernels, by overload."""
