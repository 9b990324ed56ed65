"""Ops over lists of tensors give the CPU's results, with one instruction for each tensor."""

from typing import Any

import pytest
import torch

import gt.torch
from gt.torch.foreach import KERNELS
from gt.torch.schemas import schema_of

DEVICE = "tapestry"
pytestmark = pytest.mark.usefixtures("server")

SIZES = ((3,), (2, 3), ())


def arguments(name: str) -> list[Any]:
    """One value for each positional argument of an op: lists of three tensors or numbers, or one of them."""
    torch.manual_seed(0)
    made: list[Any] = []
    for one in schema_of(f"aten::{name}").positional:
        if one.type == "List[Tensor]":
            made.append([torch.rand(size) + 0.5 for size in SIZES])
        elif one.type == "List[number]":
            made.append([0.25, 2, 0.75])
        else:
            made.append(torch.tensor(1.5) if one.type == "Tensor" else 0.75)
    return made


def moved(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [moved(one, device) for one in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def call(name: str, given: list[Any], **keywords: Any) -> Any:
    packet, _, overload = name.partition(".")
    result = getattr(getattr(torch.ops.aten, packet), overload or "default")(*given, **keywords)
    return given[0] if result is None else result


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_results_are_those_of_the_cpu(name: str):
    given = arguments(name)
    ours = call(name, moved(given, DEVICE))
    versions = [one._version for one in ours]
    expected = call(name, given)
    for one, other in zip(ours, expected, strict=True):
        assert one.device.type == DEVICE
        torch.testing.assert_close(one.cpu(), other)
    assert versions == [one._version for one in expected]


@pytest.mark.parametrize("name", ["_foreach_add.List", "_foreach_sub_.List", "_foreach_add_.Tensor"])
def test_a_factor_is_passed_on(name: str):
    given = arguments(name)
    ours = call(name, moved(given, DEVICE), alpha=3)
    for one, other in zip(ours, call(name, given, alpha=3), strict=True):
        torch.testing.assert_close(one.cpu(), other)


def test_a_default_factor_is_the_schemas():
    given = [[torch.ones(2)], [torch.full((2,), 3.0)], [torch.full((2,), 2.0)]]
    torch.ops.aten._foreach_addcdiv_(*moved(given, DEVICE))
    ours = moved(given, DEVICE)
    torch.ops.aten._foreach_addcdiv_(*ours)
    assert ours[0][0].tolist() == [2.5, 2.5]


@pytest.mark.parametrize(
    "lists", [([], []), ([1.0], []), ([1.0, 2.0], [1.0])], ids=["empty", "none", "fewer"]
)
def test_lists_that_do_not_fit_are_refused_as_on_the_cpu(lists: tuple[list[float], list[float]]):
    errors = []
    for device in ("cpu", DEVICE):
        a, b = ([torch.tensor(one, device=device) for one in given] for given in lists)
        with pytest.raises(RuntimeError) as caught:
            torch.ops.aten._foreach_add_(a, b)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_views_and_mixed_dtypes_are_written_in_place():
    ours, theirs = (torch.arange(12.0, device=device).reshape(3, 4) for device in (DEVICE, "cpu"))
    for base in (ours, theirs):
        half = torch.ones(2, dtype=torch.float16, device=base.device)
        torch.ops.aten._foreach_mul_([base[1], base[:, 2], half], 2.0)
        torch.ops.aten._foreach_add_([base[0, :2], half], [half, base[2, :2]])
        assert half.dtype == torch.float16
    torch.testing.assert_close(ours.cpu(), theirs)


def test_each_tensor_is_an_instruction_of_its_own():
    tensors = [torch.ones(2, device=DEVICE) for _ in range(3)]
    before = len(gt.debug.get_instruction_tape())
    torch.ops.aten._foreach_add_(tensors, 1.0)
    lines = gt.debug.get_instruction_tape()[before:]
    assert sum("RECV" in line and "CLIENT" in line and "op=add" in line for line in lines) == 3
