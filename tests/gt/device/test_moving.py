"""Modules and tensors that move to the device keep their identity, hooks and gradients, as on a CUDA
device."""

import copy
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import gt.torch  # noqa: F401 - registers the device

DEVICE = "tapestry"


class _Special(nn.Parameter):
    no_decay = False


def test_parameters_keep_attributes_hooks_and_class() -> None:
    layer: Any = nn.Linear(2, 2)
    layer.weight = _Special(torch.ones(2, 2))
    layer.weight.no_decay = True
    called: list[str] = []
    layer.weight.register_hook(lambda grad: called.append("grad") or grad * 2)
    layer.weight.register_post_accumulate_grad_hook(lambda parameter: called.append("accumulated"))
    there = weakref.ref(layer.weight)
    assert layer.to(DEVICE) is layer
    assert there() is layer.weight
    assert type(layer.weight) is _Special
    assert layer.weight.no_decay
    layer(torch.ones(1, 2, device=DEVICE)).sum().backward()
    assert called == ["grad", "accumulated"]
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_model_moves_while_views_and_graphs_of_its_parameters_are_alive() -> None:
    layer = nn.Linear(2, 1)
    loss, view = layer(torch.ones(1, 2)).sum(), layer.weight.view(-1)
    layer.to(DEVICE)
    assert layer.weight.is_tapestry  # type: ignore[attr-defined]
    assert view.device.type == "cpu"
    with pytest.raises(RuntimeError, match="moved to another device after the forward pass"):
        loss.backward()
    layer(torch.ones(1, 2, device=DEVICE)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_gradients_move_with_parameters_and_optimizers_keep_them() -> None:
    here = nn.Linear(2, 1)
    there = copy.deepcopy(here)
    for model, device in ((here, "cpu"), (there, DEVICE)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(1, 2)).sum().backward()
        model.to(device)
        optimizer.step()
    torch.testing.assert_close(there.weight.cpu(), here.weight)


def test_data_may_be_set_to_a_tensor_of_the_other_device() -> None:
    """Programs move the state of optimizers in this way."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for parameter in model.parameters():
        parameter.data = parameter.data.to(DEVICE)
        parameter._grad.data = parameter._grad.data.to(DEVICE)  # type: ignore[union-attr]
    for state in optimizer.state.values():
        for one in state.values():
            if one.dim():
                one.data = one.data.to(DEVICE)
    optimizer.step()
    assert {one.device.type for one in model.parameters()} == {DEVICE}
    assert {one["exp_avg"].device.type for one in optimizer.state.values()} == {DEVICE}


def test_lazy_modules_move_before_they_are_called() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()).to(DEVICE)
    assert model(torch.ones(2, 4, device=DEVICE)).shape == (2, 3)
    assert {one.device.type for one in (*model.parameters(), *model.buffers())} == {DEVICE}
    assert nn.LazyLinear(3).to(DEVICE).cpu()(torch.ones(2, 4)).device.type == "cpu"


def test_a_copy_to_the_cpu_may_be_non_blocking() -> None:
    x = torch.arange(6.0, device=DEVICE).reshape(2, 3)
    assert x.to("cpu", non_blocking=True).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert x.t().to("cpu", torch.float64, non_blocking=True).stride() == (1, 3)
    y = torch.arange(3.0)
    z = y.to(DEVICE, non_blocking=True)
    y.add_(100)
    assert z.tolist() == [0.0, 1.0, 2.0]


def test_data_parallel_runs_on_the_one_device() -> None:
    model = nn.DataParallel(nn.Linear(2, 2).to(DEVICE))
    for x in (torch.ones(3, 2), torch.ones(3, 2, device=DEVICE)):
        y = model(x)
        assert y.is_tapestry
        torch.testing.assert_close(y, model.module(x.to(DEVICE)))


def test_prefetching_on_a_stream_of_its_own() -> None:
    module: Any = torch.tapestry  # type: ignore[attr-defined]
    stream = module.Stream()
    with module.stream(stream):
        x = torch.ones(2).to(DEVICE, non_blocking=True)
    module.current_stream().wait_stream(stream)
    x.record_stream(module.current_stream())
    assert (x + 1).tolist() == [2.0, 2.0]
    with stream, torch.accelerator.current_stream():
        assert (x + 1).tolist() == [2.0, 2.0]
