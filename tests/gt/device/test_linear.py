"""Linear layers are one op of the device, with the values, gradients and errors of the CPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vmap

import gt
import gt.torch

DEVICE = "tapestry"
pytestmark = pytest.mark.usefixtures("server")

Case = Callable[[str], Any]


def layer(device: str, *size: int, bias: bool = True) -> tuple[nn.Linear, torch.Tensor]:
    """A layer of 4 inputs and 3 outputs, and an input of this size."""
    torch.manual_seed(0)
    made, x = nn.Linear(4, 3, bias=bias), torch.randn(size)
    return made.to(device), x.to(device)


def gradients(module: nn.Module) -> list[Any]:
    return [one.grad for one in module.parameters()]


def flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value.detach().cpu()]
    parts = value.values() if isinstance(value, dict) else value
    return [one for part in parts for one in flat(part)]


def assert_as_on_the_cpu(case: Case) -> None:
    for ours, theirs in zip(flat(case(DEVICE)), flat(case("cpu")), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", [(4,), (2, 4), (2, 5, 4), (2, 3, 5, 4), (0, 4)])
def test_inputs_of_all_ranks(size: tuple[int, ...], bias: bool):
    def case(device: str) -> Any:
        module, x = layer(device, *size, bias=bias)
        x.requires_grad_()
        y = module(x)
        (y * y).sum().backward()
        return [y, x.grad, *gradients(module)]

    assert_as_on_the_cpu(case)


def test_views_as_inputs_and_weights():
    def case(device: str) -> Any:
        module, x = layer(device, 5, 2, 4)
        y = module(x.transpose(0, 1))
        y.mean(1).sum().backward()  # with a gradient that is an expanded view
        weight = torch.arange(48.0).reshape(6, 8).to(device).requires_grad_()
        z = nn.functional.linear(x, weight[1:4, ::2])
        z.sum().backward()
        return [y, z, weight.grad, *gradients(module)]

    assert_as_on_the_cpu(case)


def test_a_weight_that_is_changed_is_read_again():
    def case(device: str) -> Any:
        module, x = layer(device, 2, 4)
        before = module(x)
        with torch.no_grad():
            module.weight.mul_(2)
        after = module(x)
        after.sum().backward()
        return [before, after, *gradients(module)]

    assert_as_on_the_cpu(case)


def test_complex_numbers():
    def case(device: str) -> Any:
        torch.manual_seed(0)
        x, weight = (torch.randn(size, dtype=torch.complex64).to(device) for size in ((2, 5, 4), (3, 4)))
        weight.requires_grad_()
        y = nn.functional.linear(x, weight)
        y.abs().sum().backward()
        return [y, weight.grad]

    assert_as_on_the_cpu(case)


def test_autocast():
    def case(device: str) -> Any:
        module, x = layer(device, 2, 5, 4)
        with torch.autocast(device, dtype=torch.bfloat16):
            y = module(x)
        assert y.dtype == torch.bfloat16
        y.float().sum().backward()
        return [y.float(), *gradients(module)]

    assert_as_on_the_cpu(case)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # PyTorch's own, for jvp
def test_double_backward_and_function_transforms():
    def case(device: str) -> Any:
        module, x = layer(device, 3, 4)
        parameters = dict(module.named_parameters())

        def cubed(t: torch.Tensor) -> torch.Tensor:
            return module(t).pow(3)

        def loss(given: Any, t: torch.Tensor) -> torch.Tensor:
            return functional_call(module, given, (t,)).pow(2).sum()

        first = torch.autograd.grad(cubed(x.requires_grad_()).sum(), x, create_graph=True)[0]
        first.pow(2).sum().backward()
        models = [layer(device, 1, 4)[0] for _ in range(2)]
        stacked, _ = stack_module_state(models)
        return [
            *(x.grad, *gradients(module)),
            *(jacrev(cubed)(x), jacfwd(cubed)(x), hessian(lambda t: cubed(t).sum())(x)),
            jvp(cubed, (x,), (torch.ones_like(x),)),
            vmap(grad(loss), (None, 0))(parameters, x),
            vmap(grad(loss), (None, 0))(parameters, torch.stack([x, x + 1])),
            vmap(lambda given, t: functional_call(models[0], given, (t,)), (0, None))(stacked, x),
        ]

    assert_as_on_the_cpu(case)


@pytest.mark.parametrize(
    "wrong", [lambda x: x[:, :3], lambda x: x.double(), lambda x: x.long()], ids=["size", "double", "integer"]
)
def test_errors_are_those_of_the_cpu_at_the_line_of_the_call(wrong: Callable[[torch.Tensor], torch.Tensor]):
    errors = []
    for device in (DEVICE, "cpu"):
        module, x = layer(device, 2, 4)
        x = wrong(x)
        with pytest.raises(RuntimeError) as caught:
            module(x)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_a_layer_is_one_instruction_forward_and_one_for_each_gradient():
    module, x = layer(DEVICE, 2, 4, bias=False)
    x.requires_grad_()
    module(x).sum().cpu()
    before = len(gt.debug.get_instruction_tape())
    y = module(x)
    torch.autograd.grad(y, [x, module.weight], torch.ones_like(y))
    lines = [line for line in gt.debug.get_instruction_tape()[before:] if "RECV" in line and "CLIENT" in line]
    ops = [word.removeprefix("op=") for line in lines for word in line.split() if word.startswith("op=")]
    assert [op for op in ops if op != "full"] == ["linear", "matmul", "linear_weight_grad"]
