"""Plans: an op with arguments like earlier ones is issued without computing its results' layouts again."""

from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import gt.torch  # noqa: F401 - registers the device
from gt.torch import kernels


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of ops whose results' layouts are computed from here on."""
    names: list[str] = []
    original = kernels.results_on_meta

    def noted(schema: Any, given: dict[str, Any]) -> Any:
        names.append(schema.name)
        return original(schema, given)

    monkeypatch.setattr(kernels, "results_on_meta", noted)
    return names


@pytest.mark.parametrize(
    "op",
    [
        lambda x: scaled_dot_product_attention(x, x + 1, x + 2, is_causal=True),
        lambda x: scaled_dot_product_attention(x, x + 1, x + 2, scale=0.25),
        lambda x: torch.cat([x, x]),
        lambda x: torch.zeros_like(x).fill_(2.5),
        lambda x: (x * 2)[0].zero_(),
        lambda x: torch.arange(7, device=x.device),
        lambda x: torch.full((3,), 2, device=x.device),
        lambda x: x.clone().mul_(0.5).add_(x, alpha=2),
    ],
    ids=["attention", "scaled", "cat", "fill", "zero", "arange", "full", "in place"],
)
def test_the_second_call_of_an_op_computes_no_layouts(op: Any, computed: list[str]):
    x = torch.randn(2, 2, 8, 4)
    expected = op(x)
    mine = x.to("tapestry")
    op(mine)
    computed.clear()
    torch.testing.assert_close(op(mine).cpu(), expected)
    assert computed == []


def test_a_plan_does_not_fix_what_a_float_decides():
    for size in (4.0, 6.0, 2.5):
        torch.testing.assert_close(torch.arange(size, device="tapestry").cpu(), torch.arange(size))
    x = torch.zeros(3, device="tapestry")
    for value in (1.5, 2.5):
        assert x.fill_(value).tolist() == [value] * 3


def test_a_plan_for_one_tensor_twice_takes_two_tensors_apart():
    x, y = torch.zeros(2, device="tapestry"), torch.ones(2, device="tapestry")
    assert torch.cat([x, x]).tolist() == [0, 0, 0, 0]
    assert torch.cat([x, y]).tolist() == [0, 0, 1, 1]
    assert torch.cat([y, x]).tolist() == [1, 1, 0, 0]
    assert torch.stack([y, y]).tolist() == [[1, 1], [1, 1]]
    assert torch.stack([y, x]).tolist() == [[1, 1], [0, 0]]
