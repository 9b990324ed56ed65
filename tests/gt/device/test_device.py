"""`torch.device("tapestry")` behaves as a CUDA device."""

import copy
import io
import warnings
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import gt
import gt.torch
from gt.errors import WorkerError
from tests.programs import run_python

DEVICE = "tapestry"


def test_a_tensor_moves_to_the_device_and_back() -> None:
    x = torch.randn(3, 4)
    y = x.to(DEVICE)
    assert y.device == torch.device("tapestry:0")
    assert type(y) is torch.Tensor
    assert y.is_tapestry  # type: ignore[attr-defined]
    assert torch.equal(y.cpu(), x)
    assert torch.equal(y.to("cpu", torch.float64), x.double())


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8),
        *(torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.uint16),
    ],
)
@pytest.mark.parametrize("size", [(2, 3), (), (0, 2)])
def test_every_dtype_travels(dtype: torch.dtype, size: tuple[int, ...]) -> None:
    x = torch.arange(float(torch.Size(size).numel())).reshape(size).to(dtype)
    y = x.to(DEVICE).cpu()
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert torch.equal(y.float() if not dtype.is_complex else y, x.float() if not dtype.is_complex else x)


def test_factories_make_tensors_there() -> None:
    made = [
        torch.zeros(2, device=DEVICE),
        torch.ones(2, 3, device=DEVICE),
        torch.full((2,), 7, device=DEVICE),
        torch.arange(5, device=DEVICE),
        torch.linspace(0, 1, 3, device=DEVICE),
        torch.eye(3, device=DEVICE),
        torch.tensor([[1.0, 2.0]], device=DEVICE),
        torch.empty(3, device=DEVICE),
        torch.rand(3, device=DEVICE),
        torch.randint(0, 5, (3,), device=DEVICE),
        torch.randperm(4, device=DEVICE),
        torch.zeros_like(torch.empty(2, device=DEVICE)),
    ]
    assert {x.device.type for x in made} == {DEVICE}
    assert made[3].tolist() == [0, 1, 2, 3, 4]
    assert sorted(made[10].tolist()) == [0, 1, 2, 3]


def test_it_can_be_the_default_device() -> None:
    with torch.device(DEVICE):
        assert torch.zeros(2).device.type == DEVICE
        assert nn.Linear(2, 2).weight.device.type == DEVICE
    torch.set_default_device(DEVICE)
    try:
        assert torch.ones(1).device.type == DEVICE
    finally:
        torch.set_default_device(None)


def test_values_lead_the_program() -> None:
    x = torch.tensor([3.0, -1.0], device=DEVICE)
    assert x[0].item() == 3.0
    assert x.tolist() == [3.0, -1.0]
    assert bool((x > 0).any())
    assert [float(one) for one in x] == [3.0, -1.0]
    assert "tapestry:0" in repr(x)
    assert "-1." in repr(x)
    if x.sum() > 1:
        x = -x
    assert x.max().item() == 1.0
    with pytest.raises(
        TypeError, match=r"can't convert tapestry:0 device type tensor to numpy. Use Tensor.cpu\(\)"
    ):
        x.numpy()
    assert isinstance(x.cpu().numpy(), np.ndarray)


def test_shapes_that_depend_on_data() -> None:
    x = torch.tensor([0, 3, 3, 1], device=DEVICE)
    assert torch.nonzero(x).tolist() == [[1], [2], [3]]
    assert x[x > 1].tolist() == [3, 3]
    assert torch.unique(x).tolist() == [0, 1, 3]
    assert torch.bincount(x).tolist() == [1, 1, 0, 2]
    assert torch.equal(x, x.clone())


def test_the_device_module() -> None:
    module = torch.tapestry  # type: ignore[attr-defined]
    assert module.is_available()
    assert (module.device_count(), module.current_device()) == (1, 0)
    x = torch.ones(1000, device=DEVICE)
    module.synchronize()
    assert module.memory_allocated() >= x.nbytes
    assert torch.accelerator.current_accelerator() == torch.device(DEVICE)


def test_the_same_seed_gives_the_same_numbers() -> None:
    def draw() -> list[torch.Tensor]:
        torch.manual_seed(3)
        x = torch.ones(500, device=DEVICE)
        return [
            torch.rand(5, device=DEVICE),
            torch.randn(5, device=DEVICE),
            nn.functional.dropout(x, 0.25),
            x.bernoulli_(0.5).clone(),
            x.exponential_().clone(),
            torch.multinomial(torch.tensor([0.0, 1.0, 1.0], device=DEVICE), 2),
        ]

    first, second = draw(), draw()
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a.cpu(), b.cpu())
    dropped = first[2].cpu()
    assert dropped.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert 0.15 < (dropped == 0).float().mean() < 0.35
    assert sorted(first[5].tolist()) == [1, 2]


def test_tensors_of_two_devices_do_not_mix_but_numbers_do() -> None:
    x = torch.ones(3, device=DEVICE)
    with pytest.raises(
        RuntimeError, match=r"Expected all tensors to be on the same device.*tapestry:0 and cpu"
    ):
        _ = x + torch.ones(3)
    assert (x + torch.tensor(2.0)).tolist() == [3.0] * 3
    assert (x * 2.5).tolist() == [2.5] * 3
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        _ = torch.ones(2, 3, device=DEVICE) @ torch.ones(2, 3, device=DEVICE)


def test_a_failure_on_a_worker_names_the_users_line() -> None:
    x = torch.tensor([5], device=DEVICE)
    with pytest.raises((WorkerError, IndexError), match=r"test_device\.py"):
        torch.ones(3, device=DEVICE)[x].cpu()


def test_modules_keep_tied_weights_tied() -> None:
    embedding, head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
    head.weight = embedding.weight
    model = nn.Sequential(embedding, head)
    parameters = list(model.parameters())
    model.to(DEVICE)
    assert model[0].weight is model[1].weight
    assert next(iter(model.parameters())) is parameters[0]
    copied = copy.deepcopy(model)
    assert copied[0].weight is copied[1].weight
    assert copied[0].weight.device.type == DEVICE
    model.cpu()
    assert model[0].weight is model[1].weight
    assert model[0].weight.device.type == "cpu"


def test_checkpoints_are_saved_and_loaded(tmp_path: Path) -> None:
    model = nn.Linear(3, 2).to(DEVICE)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    there = torch.load(file)
    assert there["weight"].device.type == DEVICE
    file.seek(0)
    here = torch.load(file, map_location="cpu")
    assert torch.equal(here["weight"], model.weight.detach().cpu())
    model.load_state_dict(here)
    safetensors.torch.save_model(model, str(tmp_path / "model.safetensors"))
    other = nn.Linear(3, 2).to(DEVICE)
    safetensors.torch.load_model(other, str(tmp_path / "model.safetensors"))
    assert torch.equal(other.weight.cpu(), model.weight.cpu())


def test_a_data_loader_may_pin_memory() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = [
            x.to(DEVICE, non_blocking=True) for (x,) in torch.utils.data.DataLoader(data, 2, pin_memory=True)
        ]
    assert [x.tolist() for x in batches] == [[0.0, 1.0], [2.0, 3.0]]


def test_autocast_computes_products_in_bfloat16() -> None:
    a = torch.randn(4, 4, device=DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
        assert nn.functional.linear(a, a).dtype == torch.bfloat16
        assert torch.softmax(a @ a, -1).dtype == torch.float32
    assert (a @ a).dtype == torch.float32


def test_second_derivatives_and_function_transforms() -> None:
    x = torch.randn(3, dtype=torch.float64, device=DEVICE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: (a * a).sin(), x)
    assert torch.autograd.gradgradcheck(lambda a: (a * a).sin(), x)
    y = torch.randn(3, 4, device=DEVICE)
    torch.testing.assert_close(torch.func.vmap(torch.sum)(y).cpu(), y.cpu().sum(1))
    torch.testing.assert_close(torch.func.grad(lambda a: a.square().sum())(y).cpu(), 2 * y.cpu())
    from torch.utils.checkpoint import checkpoint

    z = torch.randn(3, device=DEVICE, requires_grad=True)
    checkpoint(lambda a: a.sin() * a, z, use_reentrant=False).sum().backward()
    assert z.grad is not None
    at = z.detach().cpu()
    torch.testing.assert_close(z.grad.cpu(), at.sin() + at * at.cos())


def test_the_device_may_come_after_a_first_backward_pass() -> None:
    """The autograd engine starts its threads at the first backward pass of a process."""
    program = """
import torch
w = torch.ones(2, requires_grad=True)
(w * w).sum().backward()
import gt.torch
x = torch.ones(2, device="tapestry", requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
"""
    assert run_python("-c", program).stdout == "[2.0, 2.0]\n"


def test_unused_tensors_are_freed() -> None:
    def step() -> None:
        x = torch.ones(10, 10, device=DEVICE, requires_grad=True)
        (x @ x).relu().sum().backward()

    for _ in range(3):
        step()
    torch.tapestry.synchronize()  # type: ignore[attr-defined]
    before = sum(stats["tensors"] for stats in gt.debug.get_worker_stats().values())
    for _ in range(50):
        step()
    after = sum(stats["tensors"] for stats in gt.debug.get_worker_stats().values())
    assert after <= before


def test_it_runs_over_processes() -> None:
    gt.init(workers=1)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(16, 4, device=DEVICE)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
