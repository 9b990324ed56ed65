"""The aten ops that clients may use: clients are not trusted, and many of PyTorch's functions are unsafe.

Refused are ops that would give access to memory that no instruction wrote, to files or to other devices;
those for values that no instruction can make, such as sparse and quantized ones; and PyTorch's internal ops,
which check little, but for those that programs reach below autograd.
"""

import re

import torch

_REFUSED = re.compile(
    r"empty.*|new_empty.*|resize.*|set|set_|set_data|data|from_file|item|to|record_stream|is_pinned|pin_memory"
    r"|as_strided_?|as_strided_copy|retain_grad|requires_grad_|output_nr|is_set_to|get_gradients"
    r"|.*sparse.*|.*quant.*|q_.*|int_repr|.*nested.*|.*padded_tensor|coalesce|(c|r|cc|cr)(ol|ow)_indices.*|indices.*"
    r"|values|values_copy|sspaddmm|hspmm|smm"
    r"|(fbgemm|mkldnn|cudnn|miopen|mps|lstm_mps)_.*|to_mkldnn.*"
)
"""Public ops by name, without their overloads."""

_INTERNAL_OPS = re.compile(
    r"_(adaptive_avg_pool.*|add_relu|addmm_activation|aminmax|amp_.*|batch_norm.*|cdist_.*|cholesky_solve_helper"
    r"|chunk_cat|compute_linear_combination|is_(all|any)_true|conj.*|neg_view.*|convolution|conv_depthwise2d|ctc_loss.*|cum(max|min)_helper"
    r"|dirichlet_grad|efficientzerotensor|embedding_bag.*|euclidean_dist|fft_.*|foreach_.*"
    r"|fused_(adagrad|adam|adamw|sgd|dropout|rms_norm).*|grouped_mm|histogramdd_.*|index_put_impl_?|int_mm"
    r"|linalg_.*|log_softmax.*|logcumsumexp|lu_with_info|masked_s.*|native_batch_norm_.*|native_multi_head_attention"
    r"|pack_padded_sequence.*|pdist_.*|prelu_kernel.*|safe_softmax|sample_dirichlet"
    r"|scaled_(dot_product_(flash_attention_for_cpu.*|attention_math)|mm.*|grouped_mm.*)|segment_reduce_backward"
    r"|softmax.*|stack|standard_gamma.*|to_copy|transform_bias_rescale_qkv|transformer_encoder_layer_fwd"
    r"|trilinear|unique2?|unsafe_(index|masked).*|upsample_.*|weight_norm_interface.*)|__(i?(and|or|xor|lshift|rshift))__"
)
"""Internal ops that programs reach below autograd."""

_ON_HOST = (
    "CPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


def is_allowed(name: str, overload: str) -> bool:
    """Whether clients may use an op: its name, and its overload's full name (`aten::add.Tensor`)."""
    if name.startswith("_"):
        if not _INTERNAL_OPS.fullmatch(name):
            return False
    elif _REFUSED.fullmatch(name):
        return False
    # What the dispatcher does not know is a function of TorchScript's, such as `save`, which writes a file.
    return torch._C._dispatch_has_kernel(overload) and any(
        torch._C._dispatch_has_kernel_for_dispatch_key(overload, key) for key in _ON_HOST
    )
