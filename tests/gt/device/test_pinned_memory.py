"""`pin_memory=True`, as in programs for GPUs: tensors are ordinary ones of the CPU."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import gt.torch  # noqa: F401 - registers the device

FACTORIES: dict[str, Callable[..., torch.Tensor]] = {
    "empty": lambda **options: torch.empty(3, **options),
    "zeros": lambda **options: torch.zeros((3,), **options),
    "ones": lambda **options: torch.ones(3, **options),
    "full": lambda **options: torch.full((3,), 1.0, **options),
    "tensor": lambda **options: torch.tensor([1.0, 2.0, 3.0], **options),
    "arange": lambda **options: torch.arange(3, **options),
    "randn": lambda **options: torch.randn(3, **options),
    "empty_strided": lambda **options: torch.empty_strided((3,), (1,), **options),
}


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("pinned", [True, False])
def test_factories_take_pin_memory(name: str, pinned: bool) -> None:
    x = FACTORIES[name](pin_memory=pinned)
    assert (x.device.type, x.shape) == ("cpu", (3,))
    assert x.to("tapestry", non_blocking=True).device.type == "tapestry"
    with torch.device("tapestry"):
        assert FACTORIES[name]().device.type == "tapestry"


class _Batch:
    def __init__(self, examples: list[torch.Tensor]) -> None:
        self.x = torch.stack(examples)
        self.pinned = False

    def pin_memory(self) -> "_Batch":
        self.x, self.pinned = self.x.pin_memory(), True
        return self


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_loader_pins_batches_of_any_class(workers: int) -> None:
    examples: Any = [torch.full((2,), float(n)) for n in range(4)]
    loader: Any = DataLoader(examples, 2, pin_memory=True, collate_fn=_Batch, num_workers=workers)
    batches = list(loader)
    assert [one.pinned for one in batches] == [True, True]
    assert [one.x.to("tapestry").sum().item() for one in batches] == [2.0, 10.0]


def test_activations_are_saved_on_the_cpu_in_pinned_memory() -> None:
    x = torch.ones(3, device="tapestry", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x.exp() * x).sum()
    y.backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad.cpu(), torch.full((3,), 2.0).mul(torch.e))


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")
def test_the_functions_still_are_pytorchs() -> None:
    assert pickle.loads(pickle.dumps(torch.zeros)) is torch.zeros

    @torch.jit.script
    def scripted(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(2)

    assert scripted(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("backend", ["eager", "tapestry"])
def test_compiled_functions_make_tensors_of_the_default_device(backend: str) -> None:
    compiled = torch.compile(
        lambda x: x + torch.ones(2) + torch.tensor([1.0, 2.0]), backend=backend, fullgraph=True
    )
    with torch.device("tapestry"):
        assert compiled(torch.ones(2)).tolist() == [3.0, 4.0]
