"""The sharding rules of aten ops that are sent under PyTorch's own names, by overload.

An op that is not here, such as a matrix inverse, runs on whole inputs.
"""

from gt.ops.aten import PREFIX
from gt.ops.sharding import aten_rules as rules
from gt.ops.sharding.aten_rules import AtenRule

_POINTWISE_NAMES = """
    _conj_physical abs acos acosh add.Scalar add.Tensor addcdiv addcmul angle asin asinh atan atan2 atanh
    bitwise_and.Scalar bitwise_and.Tensor bitwise_left_shift.Tensor bitwise_not
    bitwise_left_shift.Tensor_Scalar bitwise_or.Scalar bitwise_or.Tensor bitwise_right_shift.Tensor
    bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Tensor ceil celu clamp clamp.Tensor
    clamp_max clamp_max.Tensor clamp_min clamp_min.Tensor conj_physical copysign.Scalar copysign.Tensor
    cos cosh digamma div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode elu elu_backward eq.Scalar
    eq.Tensor erf erfc erfinv exp exp2 expm1 fill.Tensor floor floor_divide floor_divide.Scalar fmax fmin
    fmod.Scalar fmod.Tensor frac gcd ge.Scalar ge.Tensor gelu gelu_backward gt.Scalar gt.Tensor
    hardshrink hardshrink_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh
    hardtanh_backward heaviside hypot i0 isfinite isinf isnan isneginf isposinf lcm le.Scalar le.Tensor
    leaky_relu leaky_relu_backward lerp.Scalar lerp.Tensor lgamma log log10 log1p log2
    log_sigmoid_backward logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit
    logit_backward lt.Scalar lt.Tensor masked_fill.Scalar masked_fill.Tensor maximum minimum mish
    mish_backward mul.Scalar mul.Tensor nan_to_num native_dropout_backward ne.Scalar ne.Tensor neg
    polygamma positive pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor reciprocal relu remainder.Scalar
    remainder.Tensor round round.decimals rsqrt rsub.Scalar rsub.Tensor sgn sigmoid sigmoid_backward sign
    signbit silu silu_backward sin sinc sinh softplus softplus_backward softshrink softshrink_backward
    sqrt square sub.Scalar sub.Tensor tan tanh tanh_backward threshold threshold_backward trunc where.self
    where.ScalarSelf where.ScalarOther xlogy.Tensor xlogy.Scalar_Other xlogy.Scalar_Self
"""
POINTWISE = tuple(_POINTWISE_NAMES.split())
"""Ops that compute each element from the elements at the same index."""

_ALONG = rules.along()
_PER_IMAGE = rules.of_images(2)

_LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss")

_RULES_BY_ATEN_NAME: dict[str, AtenRule] = {
    **dict.fromkeys(POINTWISE, rules.pointwise),
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_"), rules.pointwise),
    "clone": rules.copied,
    "_to_copy": rules.pointwise,
    # products
    "addmm": rules.addmm,
    "baddbmm": rules.addmm,
    "_scaled_dot_product_flash_attention_for_cpu": rules.attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": rules.attention,
    "convolution": rules.convolution,
    "convolution_backward": rules.convolution_backward,
    # normalization
    "native_layer_norm": rules.layer_norm,
    "native_layer_norm_backward": rules.layer_norm_backward,
    "native_group_norm": rules.group_norm,
    "native_group_norm_backward": rules.group_norm_backward,
    "native_batch_norm": rules.by_channels(1),
    "_native_batch_norm_legit_functional": rules.by_channels(1),
    "_native_batch_norm_legit.no_stats": rules.by_channels(1),
    "native_batch_norm_backward": rules.by_channels(2),
    # pooling
    **dict.fromkeys(
        (
            *("max_pool2d_with_indices", "max_pool2d_with_indices_backward", "avg_pool2d"),
            *("avg_pool2d_backward", "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"),
            *("adaptive_max_pool2d", "adaptive_max_pool2d_backward", "upsample_nearest2d"),
            *("upsample_bilinear2d", "upsample_bicubic2d", "reflection_pad2d", "replication_pad2d"),
        ),
        _PER_IMAGE,
    ),
    **dict.fromkeys(("upsample_nearest1d", "upsample_linear1d"), rules.of_images(1)),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle"), rules.of_images(3)),
    **dict.fromkeys(
        (
            *("upsample_nearest1d_backward", "upsample_linear1d_backward"),
            *("upsample_nearest2d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward"),
        ),
        rules.upsample_backward,
    ),
    # losses
    "nll_loss_forward": rules.nll_loss,
    "nll_loss_backward": rules.nll_loss_backward,
    **dict.fromkeys(_LOSSES, rules.loss),
    **{f"{name}_backward": rules.loss_backward for name in _LOSSES},
    # along a dimension
    **dict.fromkeys(
        (
            *("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"),
            *(
                "_safe_softmax",
                "cumsum",
                "cumprod",
                "logcumsumexp",
                "max.dim",
                "min.dim",
                "any.dim",
                "all.dim",
            ),
            *(
                "median.dim",
                "mode",
                "kthvalue",
                "glu",
                "sum.dim_IntList",
                "mean.dim",
                "amax",
                "amin",
                "argmax",
            ),
            *(
                "argmin",
                "logsumexp",
                "linalg_vector_norm",
                "prod.dim_int",
                "var.correction",
                "std.correction",
            ),
            *("var_mean.correction", "cummax", "cummin"),
        ),
        _ALONG,
    ),
    **dict.fromkeys(("sort", "sort.stable", "argsort", "topk"), rules.along(-1)),
    "constant_pad_nd": rules.untouched(rules.padded),
    "roll": rules.untouched(rules.rolled),
    "flip": rules.untouched(rules.rolled),
    "slice_backward": rules.slice_backward,
    "select_backward": rules.slice_backward,
    # indexing
    "_embedding_bag": rules.embedding_bag,
    "_embedding_bag_forward_only": rules.embedding_bag,
    "_embedding_bag_dense_backward": rules.embedding_bag_backward,
    "index_select": rules.index_select,
    "index.Tensor": rules.index,
    **dict.fromkeys(("index_put", "_index_put_impl", "_unsafe_index_put"), rules.index_put),
    "index_add": rules.index_add,
    **dict.fromkeys(
        ("gather", "scatter.src", "scatter.value", "scatter_add"),
        rules.untouched(lambda attrs, rank: {attrs["dim"] % max(rank, 1)}),
    ),
}

RULES: dict[str, AtenRule] = {PREFIX + name: rule for name, rule in _RULES_BY_ATEN_NAME.items()}
"""By the name of the op in instructions."""
