"""Third-party kernels: attention and whole layers of liger-kernel run on a CPU, as in PyTorch."""

import math

import pytest
import torch
import torch.nn.functional as F
from liger_kernel import ops
from liger_kernel.ops import mlp
from liger_kernel.ops.experimental.mm_int8int2 import matmul, pack_weights

from tests.triton_viz.helpers.agreement import agree, ints, randn, rms, sparsemax, watched

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
    """Its autograd function requires CUDA tensors; the functions that it calls do not."""
    gate_multiplier, down_multiplier = multipliers
    x, gate, up, down = (
        randn(*shape, seed=seed) for seed, shape in enumerate([(2, 70, 32), (48, 32), (48, 32), (32, 48)])
    )
    act = F.silu(F.linear(x, gate) * gate_multiplier) * F.linear(x, up)
    expected = F.linear(act, down) * down_multiplier
    dy = randn(*expected.shape, seed=9).detach()
    expected.backward(dy)

    with watched(), torch.no_grad():
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
        lambda x: ops.LigerTiledMLPFunction.apply(gated, layer, x, 3),
        lambda x: F.silu(layer(x)[..., :12]) * layer(x)[..., 12:],
        randn(1, 10, 12),
    )


def test_a_product_with_packed_two_bit_weights():
    a = ints(255, 5, 512).sub(128).to(torch.int8)
    weights = ints(3, 512, 9, seed=1).sub(1)
    with watched():
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
