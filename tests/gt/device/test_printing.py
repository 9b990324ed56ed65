"""A tensor of the device is printed as one of the CPU, with few instructions."""

from typing import Any

import pytest
import torch
from torch import _tensor_str

import gt.torch  # noqa: F401 - registers the device
from gt.client import session

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.uint8),
    *(torch.uint16, torch.bool, torch.complex64, torch.float8_e4m3fn, torch.float8_e8m0fnu),
)
SIZES = ((), (3,), (0,), (2, 3), (2000,), (1001, 1), (6, 200), (7, 3, 8, 9), (3, 0))


def _elements(tensor: torch.Tensor) -> str:
    return _tensor_str._tensor_str(tensor, 8)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_are_formatted_as_on_the_cpu(dtype: torch.dtype) -> None:
    for size in SIZES:
        x = (torch.randn(size, generator=torch.Generator().manual_seed(1)) * 50).abs().to(dtype)
        assert _elements(x.to("tapestry")) == _elements(x)


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor([1e10, 1e-10, float("nan"), float("inf")]),
        torch.arange(3000.0).reshape(30, 100).t(),
        torch.complex(torch.ones(3), torch.ones(3)).conj(),
    ],
)
def test_special_values_and_views(x: torch.Tensor) -> None:
    assert _elements(x.to("tapestry")) == _elements(x)


@pytest.mark.parametrize("options", [{"edgeitems": 1}, {"threshold": 3, "precision": 2}, {"edgeitems": 0}])
def test_print_options_apply(options: Any) -> None:
    x = torch.arange(3000.0).reshape(30, 100) / 7
    with _tensor_str.printoptions(**options):
        assert _elements(x.to("tapestry")) == _elements(x)


def test_only_what_is_shown_is_fetched() -> None:
    x = torch.ones(100, 100, device="tapestry") * 2
    issued: list[Any] = []
    session.current().add_listener(issued.append)
    assert str(x).startswith("tensor([[2., 2., 2.,  ..., 2., 2., 2.],")
    assert len([one for one in issued if hasattr(one, "op")]) <= 6
    assert str(x[0, :3]) == "tensor([2., 2., 2.], device='tapestry:0')"
