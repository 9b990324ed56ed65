"""`torch.autocast("tapestry", dtype=torch.bfloat16)`: the casts that PyTorch makes on other devices."""

from typing import Any

import torch
from torch.utils._pytree import tree_map_only

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
)
"""Ops that run in float32."""

_EXCLUDED = torch._C.DispatchKeySet(torch._C._dispatch_key_parse("AutocastPrivateUse1"))


def register() -> list[Any]:
    """Register the casts; the result keeps them registered."""
    rest = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")
    rest.fallback(torch.library.fallthrough_kernel)
    library = torch.library.Library("aten", "IMPL", "AutocastPrivateUse1")
    for names, full in ((LOWER, False), (FULL, True)):
        for name in names:
            packet, _, overload = name.partition(".")
            found = getattr(torch.ops.aten, packet, None)
            if found is not None and (overload or "default") in found.overloads():
                library.impl(
                    name, _casting(getattr(found, overload or "default"), full), "AutocastPrivateUse1"
                )
    return [rest, library]


def _casting(function: Any, full: bool) -> Any:
    def cast(one: torch.Tensor) -> torch.Tensor:
        if one.device.type != "tapestry" or one.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            return one
        return one.to(torch.float32 if full else torch.get_autocast_dtype("tapestry"))

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_EXCLUDED):
            args, kwargs = tree_map_only(torch.Tensor, cast, (args, kwargs))
            return function(*args, **kwargs)

    return run
