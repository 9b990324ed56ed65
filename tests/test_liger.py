"""Kernels nobody here wrote: the layers of liger-kernel run on a CPU, forward and backward, as in PyTorch."""

import math

import pytest
import torch
import torch.nn.functional as F
import triton
from liger_kernel import ops
from liger_kernel.ops import dyt, mlp
from liger_kernel.ops.experimental.mm_int8int2 import matmul, pack_weights

import triton_viz
from tests.agreement import agree, ints, randn

BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])


def rms(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


# ---------------------------------------------------------------------------------------------- norms


@pytest.mark.parametrize(
    ("dtype", "casting"),
    [
        (torch.float32, "llama"),
        (torch.float32, "gemma"),
        (torch.float32, "none"),
        (torch.bfloat16, "llama"),
        (torch.bfloat16, "gemma"),  # no "none": libdevice has no rsqrt of a bfloat16
    ],
)
def test_rms_norm(dtype, casting):
    offset = 1.0 if casting == "gemma" else 0.0
    agree(
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, offset, casting),
        lambda x, w: rms(x) * (w + offset),
        randn(3, 5, 40, dtype=dtype),
        randn(40, seed=1, dtype=dtype),
    )


def test_rms_norm_without_weights():
    agree(lambda x: ops.LigerRMSNormFunction.apply(x, None, 1e-6), rms, randn(7, 24))


def test_rms_norm_of_many_short_rows_works_on_blocks_of_rows():
    agree(
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False, False),
        lambda x, w: rms(x) * w,
        randn(4096 * 8 + 3, 5),
        randn(5, seed=1),
        tolerance=2e-3,  # the gradient of a weight is a sum of 32771 terms
    )


@BOTH
def test_fused_add_rms_norm(dtype):
    agree(
        lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6),
        lambda x, r, w: (rms(x + r) * w, x + r),
        randn(6, 33, dtype=dtype),
        randn(6, 33, seed=1, dtype=dtype),
        randn(33, seed=2, dtype=dtype),
    )


@pytest.mark.parametrize("modulated", [(), (2,), (2, 3)], ids=["all", "sequence", "token"])
def test_modulated_rms_norm(modulated):
    def reference(x, w, scale, shift):
        scale, shift = (t.unsqueeze(1) if t.ndim == 2 else t for t in (scale, shift))
        return (1 + scale) * (rms(x) * w) + shift

    agree(
        lambda *inputs: ops.LigerModulatedRMSNormFunction.apply(*inputs, 1e-6),
        reference,
        randn(2, 3, 20),
        randn(20, seed=1),
        randn(*modulated, 20, seed=2),
        randn(*modulated, 20, seed=3),
    )


@BOTH
def test_layer_norm(dtype):
    agree(
        lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, (50,), w, b, 1e-5),
        randn(2, 4, 50, dtype=dtype),
        randn(50, seed=1, dtype=dtype),
        randn(50, seed=2, dtype=dtype),
    )


def test_group_norm():
    agree(
        lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 6, 3, 1e-5),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5),
        randn(4, 6, 11),
        randn(6, seed=1),
        randn(6, seed=2),
    )


def test_poly_norm():
    agree(
        lambda x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6),
        lambda x, w, b: w[0] * rms(x**3) + w[1] * rms(x**2) + w[2] * rms(x) + b,
        randn(5, 30),
        randn(3, seed=1),
        randn(seed=2),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("bias", [True, False])
def test_dyt(bias):
    """Its backward asks liger for a device it knows; here its kernel is launched as liger launches it."""
    x, alpha, gamma, dy = (randn(*shape).detach() for shape in ((7, 70), (1,), (70,), (7, 70)))
    beta = randn(70, seed=3).detach() if bias else None
    leaves = [t.clone().requires_grad_() for t in (x, alpha, gamma, *([beta] if bias else []))]
    expected = leaves[2] * torch.tanh(leaves[1] * leaves[0]) + (leaves[3] if bias else 0)
    expected.backward(dy)

    rows = 3
    dx = torch.empty_like(x)
    da, dg, db = torch.zeros(rows, triton.cdiv(70, 512)), torch.empty(rows, 70), torch.empty(rows, 70)
    with triton_viz.trace(()):
        y = dyt.liger_dyt_fwd(x, alpha, gamma, beta)
        dyt._dyt_bwd_kernel[lambda meta: (triton.cdiv(70, meta["BLOCK_N"]), rows)](
            dy, dx, da, dg, db if bias else None, x, alpha, gamma, bias, 7, 70
        )
    torch.testing.assert_close(y, expected.detach())
    gradients = [dx, da.sum().reshape(1), dg.sum(0), *([db.sum(0)] if bias else [])]
    for mine, leaf in zip(gradients, leaves, strict=True):
        torch.testing.assert_close(mine, leaf.grad, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------------------------- activations


@BOTH
def test_swiglu(dtype):
    agree(
        lambda a, b: ops.LigerSiLUMulFunction.apply(a, b, 1.5, 0.5),
        lambda a, b: F.silu(1.5 * a) * b * 0.5,
        randn(3, 4, 30, dtype=dtype),
        randn(3, 4, 30, seed=1, dtype=dtype),
    )


@pytest.mark.parametrize("in_place", [True, False])
def test_swiglu_of_one_fused_tensor(in_place):
    agree(
        lambda y: ops.LigerFusedGateUpSiLUMulFunction.apply(y, in_place),
        lambda y: F.silu(y[..., :21]) * y[..., 21:],
        randn(5, 42),
    )


@BOTH
def test_geglu(dtype):
    agree(
        ops.LigerGELUMulFunction.apply,
        lambda a, b: F.gelu(a, approximate="tanh") * b,
        randn(3, 4, 30, dtype=dtype),
        randn(3, 4, 30, seed=1, dtype=dtype),
    )


def test_relu_squared():
    agree(ops.LigerReLUSquaredFunction.apply, lambda x: F.relu(x).square(), randn(4, 25))


@BOTH
def test_softmax(dtype):
    agree(ops.LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), randn(3, 4, 37, dtype=dtype))


def sparsemax(x: torch.Tensor) -> torch.Tensor:
    """The projection of each row onto the probability simplex."""
    ordered = x.sort(-1, descending=True).values
    sums = ordered.cumsum(-1) - 1
    counts = torch.arange(1, x.shape[-1] + 1)
    support = (ordered * counts > sums).sum(-1, keepdim=True)
    threshold = sums.gather(-1, support - 1) / support
    return F.relu(x - threshold)


@pytest.mark.parametrize("dim", [-1, 1])
def test_sparsemax(dim):
    agree(
        lambda x: ops.LigerSparsemaxFunction.apply(x, dim),
        lambda x: sparsemax(x.transpose(dim, -1)).transpose(dim, -1),
        randn(3, 9, 13),
    )


def test_embedding():
    agree(
        ops.LigerEmbeddingFunction.apply,
        lambda table, index: table[index],
        randn(11, 20),
        ints(11, 2, 17),  # more than there are rows: gradients meet
    )


# --------------------------------------------------------------------------------------------- rotary


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def angles(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, for each half of a head the same."""
    half = randn(*shape[:-1], shape[-1] // 2, seed=7).detach()
    both = torch.cat([half, half], -1)
    return both.cos(), both.sin()


@BOTH
def test_rope(dtype):
    cos, sin = angles(1, 6, 16)
    agree(
        lambda q, k: ops.LigerRopeFunction.apply(q, k, cos, sin),
        lambda q, k: tuple(t * cos + rotate_half(t) * sin for t in (q, k)),
        randn(2, 4, 6, 16, dtype=dtype),
        randn(2, 2, 6, 16, seed=1, dtype=dtype),
    )


def test_rope_of_a_part_of_each_head():
    cos, sin = angles(2, 6, 8)

    def reference(q, k):
        def rotate(t):
            head, tail = t[..., :8], t[..., 8:]
            return torch.cat([head * cos[:, None] + rotate_half(head) * sin[:, None], tail], -1)

        return rotate(q), rotate(k)

    agree(
        lambda q, k: ops.LigerRopeFunction.apply(q, k, cos, sin),
        reference,
        randn(2, 3, 6, 20),
        randn(2, 1, 6, 20, seed=1),
    )


def test_qwen2vl_mrope():
    section = [2, 3, 3]
    cos, sin = angles(3, 2, 6, 16)

    def mixed(t):
        pieces = t.split(section * 2, -1)
        return torch.cat([piece[i % 3] for i, piece in enumerate(pieces)], -1).unsqueeze(1)

    agree(
        lambda q, k: ops.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, section),
        lambda q, k: tuple(t * mixed(cos) + rotate_half(t) * mixed(sin) for t in (q, k)),
        randn(2, 4, 6, 16),
        randn(2, 2, 6, 16, seed=1),
    )


def test_llama4_rope():
    turn = torch.polar(torch.ones(5, 8), randn(5, 8, seed=3).detach())

    def rotate(t):
        pairs = torch.view_as_complex(t.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * turn[None, :, None]).flatten(-2)

    agree(
        lambda q, k: ops.LigerLlama4RopeFunction.apply(q, k, turn),
        lambda q, k: (rotate(q), rotate(k)),
        randn(2, 5, 4, 16),
        randn(2, 5, 2, 16, seed=1),
    )


# ------------------------------------------------------------------------------------------ attention


@pytest.mark.parametrize("sparse", [False, True])
def test_multi_token_attention(sparse):
    future = torch.ones(12, 12, dtype=torch.bool).triu(1)

    def reference(scores, weight, bias):
        masked = scores.masked_fill(future, -1e9)
        probabilities = sparsemax(masked) if sparse else masked.softmax(-1)
        return F.conv2d(probabilities, weight, bias, padding=1).masked_fill(future, 0)

    agree(
        lambda *inputs: ops.LigerMultiTokenAttentionFunction.apply(*inputs, 1, 1, 1, 1, sparse),
        reference,
        randn(2, 3, 12, 12),
        randn(3, 3, 3, 3, seed=1),
        randn(3, seed=2),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("dilation", [1, 2])
def test_fused_neighborhood_attention(dilation):
    at = torch.arange(20)
    apart = (at[:, None] - at[None, :]).abs()
    near = (apart <= 2 * dilation) & (apart % dilation == 0)

    def reference(q, k, v):
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(16)
        return scores.masked_fill(~near, -math.inf).softmax(-1) @ v

    agree(
        lambda q, k, v: ops.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 5, dilation),
        reference,
        *(randn(2, 2, 20, 16, seed=seed) for seed in range(3)),
        tolerance=1e-4,
    )


def test_attention_over_residuals():
    def reference(blocks, query, weight):
        scores = (rms(blocks) * weight) @ query
        return (scores.softmax(0)[..., None] * blocks).sum(0)

    agree(
        lambda *inputs: ops.LigerAttnResFunction.apply(*inputs, 1e-6),
        reference,
        randn(3, 2, 5, 24),
        randn(24, seed=1),
        randn(24, seed=2),
        tolerance=1e-4,
    )


# ------------------------------------------------------------------------------ whole layers, products


@pytest.mark.parametrize("experts", [4, 5])
def test_fused_mixture_of_experts(experts):
    tokens, width, inner, top = 37, 24, 16, 2

    def reference(x, up, down, chosen, weights):
        out = torch.zeros_like(x)
        for k in range(top):
            gate, value = torch.einsum("th,tih->ti", x, up[chosen[:, k]]).chunk(2, -1)
            product = torch.einsum("ti,thi->th", F.silu(gate) * value, down[chosen[:, k]])
            out = out + weights[:, k, None] * product
        return out

    # No token chooses the last expert: its gradient is zero, not garbage.
    chosen = torch.stack([ints(experts - 1, tokens), ints(experts - 1, tokens, seed=1)], 1).int()
    agree(
        ops.LigerFusedMoEFunction.apply,
        reference,
        randn(tokens, width),
        randn(experts, 2 * inner, width, seed=1),
        randn(experts, width, inner, seed=2),
        chosen,
        randn(tokens, top, seed=3),
        tolerance=2e-4,
    )


@pytest.mark.parametrize("multipliers", [(1.0, 1.0), (0.5, 2.0)])
def test_mlp_through_tensor_descriptors(multipliers):
    """Its autograd function insists on CUDA tensors; the functions it is made of do not."""
    gate_multiplier, down_multiplier = multipliers
    x, gate, up, down = (
        randn(*shape, seed=seed)
        for seed, shape in enumerate([(2, 70, 32), (48, 32), (48, 32), (32, 48)])
    )
    act = F.silu(F.linear(x, gate) * gate_multiplier) * F.linear(x, up)
    expected = F.linear(act, down) * down_multiplier
    dy = randn(*expected.shape, seed=9).detach()
    expected.backward(dy)

    with triton_viz.trace(()), torch.no_grad():
        saved, config = mlp.gemm_swiglu(x, gate, up, gate_multiplier)
        torch.testing.assert_close(saved[..., :48], act.detach(), rtol=1e-4, atol=1e-4)
        alone, _ = mlp.gemm_swiglu(x, gate, up, gate_multiplier, store_preact=False)
        torch.testing.assert_close(alone, act.detach(), rtol=1e-4, atol=1e-4)
        mlp.swiglu_backward_dGU(dy, down, saved, config, gate_multiplier, down_multiplier)
        dx = mlp.swiglu_backward_dI(gate, up, saved)
    torch.testing.assert_close(dx, x.grad, rtol=1e-4, atol=1e-3)
    inputs = x.detach().reshape(-1, 32)
    for mine, theirs in zip(saved[..., 48:].reshape(-1, 96).split(48, -1), (gate, up), strict=True):
        torch.testing.assert_close(mine.T @ inputs, theirs.grad, rtol=1e-4, atol=1e-3)


def test_tiled_mlp_runs_its_layer_in_pieces():
    layer = torch.nn.Linear(12, 24)

    def gated(module, x):
        return ops.LigerSiLUMulFunction.apply(*module(x).chunk(2, -1))

    agree(
        lambda x: ops.apply_tiled_mlp(gated, layer, x, 3),
        lambda x: F.silu(layer(x)[..., :12]) * layer(x)[..., 12:],
        randn(1, 10, 12),
    )


def test_a_product_with_packed_two_bit_weights():
    a = ints(255, 5, 512).sub(128).to(torch.int8)
    weights = ints(3, 512, 9, seed=1).sub(1)
    with triton_viz.trace(()):
        got = matmul(a, pack_weights(weights.clone()))
    assert torch.equal(got, (a.int() @ weights.int()))


# ----------------------------------------------------------------------------------- hyper-connections


def sinkhorn(logits: torch.Tensor, rounds: int, eps: float) -> torch.Tensor:
    matrix = logits.softmax(-1) + eps
    matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    for _ in range(rounds - 1):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + eps)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    return matrix


def test_mhc_coefficients():
    streams, width = 4, 10
    outputs = streams * streams + 2 * streams

    def reference(x, phi, b, pre, post, res):
        flat = x.flatten(-2)
        mix = (flat @ phi) * torch.rsqrt(flat.square().mean(-1, keepdim=True) + 1e-6)
        parts, biases = (t.split([streams, streams, streams**2], -1) for t in (mix, b))
        logits = (parts[2] * res + biases[2]).unflatten(-1, (streams, streams))
        return (
            torch.sigmoid(parts[0] * pre + biases[0]) + 1e-4,
            torch.sigmoid(parts[1] * post + biases[1]) * 2.0,
            sinkhorn(logits, 3, 1e-6),
        )

    agree(
        lambda *inputs: ops.LigerMHCCoeffsFunction.apply(*inputs, True, 3, 1e-6, 1e-4, 1e-6, 2.0),
        reference,
        randn(2, 9, streams, width),
        randn(streams * width, outputs, seed=1),
        randn(outputs, seed=2),
        *(randn(seed=seed) for seed in (3, 4, 5)),
        tolerance=2e-4,
    )


def test_mhc_mixes_streams_before_a_layer():
    agree(
        ops.LigerMHCPreFunction.apply,
        lambda x, weights: torch.einsum("nsc,ns->nc", x, weights),
        randn(9, 4, 70),
        randn(9, 4, seed=1),
        tolerance=1e-4,
    )


def test_mhc_mixes_streams_after_a_layer():
    agree(
        ops.LigerMHCPostResFunction.apply,
        lambda x, out, post, res: torch.einsum("noi,nic->noc", res, x) + post[..., None] * out[:, None],
        randn(9, 4, 70),
        randn(9, 70, seed=1),
        randn(9, 4, seed=2),
        randn(9, 4, 4, seed=3),
        tolerance=1e-4,
    )
