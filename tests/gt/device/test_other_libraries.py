"""Ops that other libraries define, and parts of PyTorch that query a device's features."""

import uuid
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import gt.torch  # noqa: F401 - registers the device

DEVICE = "tapestry"


def _name() -> str:
    return f"tapestry_tests::op_{uuid.uuid4().hex}"


def test_a_custom_op_that_is_made_of_others_runs_on_the_device() -> None:
    @torch.library.custom_op(_name(), mutates_args=())
    def scaled_sine(x: torch.Tensor, scale: float) -> torch.Tensor:
        assert x.device.type in ("cpu", DEVICE)
        return x.sin() * scale

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    scaled_sine.register_autograd(
        lambda ctx, grad: (grad * ctx.saved_tensors[0].cos() * ctx.scale, None), setup_context=keep
    )
    gradients = []
    for device in ("cpu", DEVICE):
        x = torch.arange(3.0, device=device, requires_grad=True)
        scaled_sine(x, 2.0).sum().backward()
        assert x.grad is not None
        gradients.append(x.grad.cpu())
    torch.testing.assert_close(gradients[1], gradients[0])


def test_a_custom_op_with_a_kernel_for_the_cpu_runs_there_and_says_so_once() -> None:
    @torch.library.custom_op(_name(), mutates_args=("total",), device_types="cpu")
    def accumulate(x: torch.Tensor, total: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
        total.add_(torch.from_numpy(x.numpy()))
        return others[0] + others[1]

    x = torch.arange(3.0, device=DEVICE)
    total = torch.ones(3, device=DEVICE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [accumulate(x, total, [x, x * 2]) for _ in range(2)]
    assert [one.device.type for one in results] == [DEVICE, DEVICE]
    assert results[1].tolist() == [0.0, 3.0, 6.0]
    assert total.tolist() == [1.0, 3.0, 5.0]
    (said,) = [str(one.message) for one in caught]
    assert "has no kernel for the device tapestry: it runs on the CPU, in this program" in said


def test_an_op_without_any_kernel_is_an_error() -> None:
    name = _name()
    torch.library.define(name, "(Tensor x) -> Tensor")
    op: Any = getattr(torch.ops.tapestry_tests, name.partition("::")[2])
    with pytest.raises(
        NotImplementedError, match="has no kernel for the device tapestry, and none for the CPU"
    ):
        op(torch.ones(2, device=DEVICE))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_transformer_encoder_takes_a_padding_mask_in_evaluation() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 5, 8)
    padded = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=padded)[~padded]
        found = encoder.to(DEVICE)(x.to(DEVICE), src_key_padding_mask=padded.to(DEVICE))
    torch.testing.assert_close(found.cpu()[~padded], expected)


def test_autocast_uses_the_widest_dtype_where_cuda_does() -> None:
    x = torch.ones(2, 2, device=DEVICE)
    y, places = x.bfloat16(), torch.zeros(2, 2, dtype=torch.int64, device=DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        assert x.scatter_add(0, places, y).tolist() == [[3.0, 3.0], [1.0, 1.0]]
        assert torch.dot(x[0], y[0]).dtype == torch.float32
        grid = torch.zeros(1, 2, 2, 2, device=DEVICE)
        assert nn.functional.grid_sample(y[None, None], grid, align_corners=True).dtype == torch.float32
        assert torch.addcmul(y, y, y).dtype == torch.bfloat16
        assert y.norm().dtype == torch.float32
