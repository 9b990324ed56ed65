"""Third-party kernels: liger-kernel's run on a CPU, forward and backward, and match PyTorch."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import triton
from liger_kernel import ops
from liger_kernel.ops import dyt

from tests.triton_viz.helpers.agreement import agree, ints, randn, rms, sparsemax, watched

BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])


NOT_ON_A_CPU = {
    "LigerFusedLinearScaledCrossEntropyFunction": "no Triton: PyTorch off Hopper, CuTe on it",
    "LigerFusedLinearScaledCrossEntropyTPFunction": "refuses tensors that are not CUDA's; no Triton",
    "LigerMLPFunction": "refuses tensors that are not CUDA's; its kernels are tested",
    "LigerDyTFunction": "does not know how many SMs a CPU has; its kernels are tested",
}


def test_every_op_of_the_library_is_tested_or_has_a_reason():
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_liger*.py"))
    exported = {name for name in dir(ops) if name.endswith("Function")}
    untested = {name for name in exported if f"ops.{name}" not in tests}
    assert untested == set(NOT_ON_A_CPU)


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
    """Its backward requires a device that liger supports, so the test launches its kernel like liger does."""
    x, alpha, gamma, dy = (randn(*shape).detach() for shape in ((7, 70), (1,), (70,), (7, 70)))
    beta = randn(70, seed=3).detach()
    leaves = [t.clone().requires_grad_() for t in (x, alpha, gamma, beta)][: 4 if bias else 3]
    expected = leaves[2] * torch.tanh(leaves[1] * leaves[0]) + (leaves[3] if bias else 0)
    expected.backward(dy)

    rows = 3
    dx = torch.empty_like(x)
    da, dg, db = torch.zeros(rows, triton.cdiv(70, 512)), torch.empty(rows, 70), torch.empty(rows, 70)
    with watched():
        y = dyt.liger_dyt_fwd(x, alpha, gamma, beta if bias else None)
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
