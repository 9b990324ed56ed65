"""Scaled dot-product attention is one op if it is one op on a CPU, with the CPU's results."""

from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import gt.torch  # noqa: F401 - registers the device
from gt.client import session

attention: Any = functional.scaled_dot_product_attention

FUSED = "aten::_scaled_dot_product_flash_attention_for_cpu"

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.1},
    "bool mask": {"mask": "bool"},
    "float mask": {"mask": "float"},
    "grouped queries": {"enable_gqa": True, "heads": 2},
    "bfloat16": {"dtype": torch.bfloat16},
}


def _run(
    device: str, mask: str = "", heads: int = 4, dtype: torch.dtype = torch.float32, **options: Any
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)

    def random(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=generator)

    shapes = ((2, 7, 4, 8), (2, 9, heads, 8), (2, 9, heads, 8))
    given = [random(*shape).to(dtype).to(device).transpose(1, 2).requires_grad_() for shape in shapes]
    if mask:
        options["attn_mask"] = (random(2, 1, 7, 9) if mask != "bool" else random(2, 1, 7, 9) > -0.5).to(
            device
        )
        options["attn_mask"].requires_grad_(mask == "with gradient")
    result = attention(*given, **options)
    result.float().square().sum().backward()
    return [result.detach().cpu(), *[one.grad.cpu() for one in given if one.grad is not None]]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_attention_is_one_op_forward_and_one_backward(case: dict[str, Any], issued: list[str]):
    ours = _run("tapestry", **case)
    assert FUSED in issued
    assert f"{FUSED}_backward" in issued
    assert "matmul" not in issued
    tolerance: dict[str, Any] = {"rtol": 2e-2, "atol": 2e-2} if "dtype" in case else {}
    for found, expected in zip(ours, _run("cpu", **case), strict=True):
        torch.testing.assert_close(found, expected, check_stride=True, **tolerance)


@pytest.mark.parametrize("case", ["mask with gradient", "switched off"])
def test_attention_is_composed_if_it_is_on_a_cpu(case: str, issued: list[str]):
    backend = SDPBackend.MATH if case == "switched off" else SDPBackend.FLASH_ATTENTION
    options: dict[str, Any] = {"mask": "with gradient"} if case == "mask with gradient" else {}
    with sdpa_kernel([backend, SDPBackend.MATH]):
        ours, theirs = _run("tapestry", **options), _run("cpu", **options)
    assert FUSED not in issued
    torch.testing.assert_close(ours, theirs)


def test_without_gradients_and_over_a_batch_of_calls():
    given = torch.randn(3, 2, 5, 8)
    with torch.inference_mode():
        found = attention(*[given.to("tapestry")] * 3).cpu()
    torch.testing.assert_close(found, attention(given, given, given))
    mapped = torch.vmap(attention)(*[given.to("tapestry")] * 3).cpu()
    torch.testing.assert_close(mapped, found)


@pytest.fixture
def issued(server: Any) -> list[str]:
    """The ops that a test issues."""
    ops: list[str] = []
    session.current().add_listener(lambda one: ops.append(getattr(one, "op", "")))
    return ops
