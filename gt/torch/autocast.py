"""`torch.autocast("tapestry", dtype=torch.bfloat16)`: the casts that PyTorch makes on other devices."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

LOWER = (
    *("mm", "bmm", "mv", "addmm", "addmv", "addbmm", "baddbmm", "addr", "matmul", "linear", "chain_matmul"),
    *(
        "linalg_multi_dot",
        "linalg_vecdot",
        "einsum",
        "prelu",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
    ),
    *(
        "conv_transpose2d.input",
        "conv_transpose3d.input",
        "conv_tbc",
        "convolution",
        "scaled_dot_product_attention",
    ),
    *(
        "_thnn_fused_lstm_cell",
        "_thnn_fused_gru_cell",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
        "rnn_relu_cell",
    ),
)
"""Ops that run in the lower precision."""

FULL = (
    *(
        "acos",
        "asin",
        "cosh",
        "erfinv",
        "exp",
        "expm1",
        "log",
        "log10",
        "log2",
        "log1p",
        "reciprocal",
        "rsqrt",
    ),
    *(
        "sinh",
        "tan",
        "pow.Tensor_Scalar",
        "pow.Tensor_Tensor",
        "pow.Scalar",
        "softplus",
        "layer_norm",
        "group_norm",
    ),
    *("native_layer_norm", "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss"),
    *("nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss"),
    *("margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss"),
    *(
        "multi_margin_loss",
        "binary_cross_entropy_with_logits",
        "dist",
        "pdist",
        "cdist",
        "renorm",
        "logsumexp",
    ),
    *(
        "softmax.int",
        "log_softmax.int",
        "cumprod",
        "cumsum",
        "prod",
        "prod.dim_int",
        "sum",
        "sum.dim_IntList",
    ),
    *("norm.Scalar", "norm.ScalarOpt_dim", "norm.names_ScalarOpt_dim", "linalg_vector_norm"),
    *("linalg_matrix_norm", "linalg_matrix_norm.str_ord", "frobenius_norm.dim", "nuclear_norm"),
    *("nuclear_norm.dim", "upsample_linear1d", "upsample_bilinear2d", "_upsample_bilinear2d_aa"),
    *("upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bicubic2d_aa", "rms_norm"),
    *(f"{kind}{n}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)),
)
"""Ops that run in float32."""

WIDEST = (
    *("addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put"),
    *("tensordot", "scatter_add"),
)
"""Ops that run in the widest precision that one of their tensors has."""

_CAST = (torch.float32, torch.bfloat16, torch.float16)

_EXCLUDED = torch._C.DispatchKeySet(torch._C._dispatch_key_parse("AutocastPrivateUse1"))


def register() -> list[Any]:
    """Register the casts; the result keeps them registered."""
    rest = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")
    rest.fallback(torch.library.fallthrough_kernel)
    library = torch.library.Library("aten", "IMPL", "AutocastPrivateUse1")
    rules = (
        (LOWER, lambda dtypes: torch.get_autocast_dtype("tapestry")),
        (FULL, lambda dtypes: torch.float32),
        (WIDEST, _widest),
    )
    for names, rule in rules:
        for name in names:
            packet, _, overload = name.partition(".")
            found = getattr(torch.ops.aten, packet, None)
            if found is not None and (overload or "default") in found.overloads():
                kernel = _casting(getattr(found, overload or "default"), rule)
                library.impl(name, kernel, "AutocastPrivateUse1")
    return [rest, library]


def _widest(dtypes: set[torch.dtype]) -> torch.dtype:
    return dtypes.pop() if len(dtypes) == 1 else torch.float32


def _casting(function: Any, rule: Callable[[set[torch.dtype]], torch.dtype]) -> Any:
    """A function that first casts tensors of the device, to the dtype that a rule says for theirs."""

    def is_cast(one: Any) -> bool:
        return isinstance(one, torch.Tensor) and one.device.type == "tapestry" and one.dtype in _CAST

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            dtypes = {one.dtype for one in tree_leaves((args, kwargs)) if is_cast(one)}
            if dtypes:
                dtype = rule(dtypes)
                args, kwargs = tree_map(lambda one: one.to(dtype) if is_cast(one) else one, (args, kwargs))
            return function(*args, **kwargs)

    return run
