"""`torch.distributed` and DistributedDataParallel over tensors of the device."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import gt.torch  # noqa: F401 - registers the device
from gt.torch import collectives
from tests.programs import run_python

DEVICE = "tapestry"


def test_programs_of_torchrun_train_and_exchange_as_on_the_cpu():
    found: dict[str, Any] = {}
    for device in ("cpu", DEVICE):
        launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
        done = run_python(*launcher, "-m", "tests.gt.device.ddp_training", device)
        found[device] = json.loads(done.stdout.splitlines()[-1])
    assert found[DEVICE]["losses"] == pytest.approx(found["cpu"]["losses"], rel=1e-4)
    assert found[DEVICE]["exchanged"] == found["cpu"]["exchanged"]


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(collectives, "_warned", [True])
    store = dist.HashStore()  # type: ignore[attr-defined]
    dist.init_process_group(store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("options", [{}, {"device_ids": [0]}, {"gradient_as_bucket_view": True}])
def test_a_single_process_trains_as_without_ddp(options: dict[str, Any]):
    losses = []
    for wrap in (lambda model: model, lambda model: DistributedDataParallel(model, **options)):
        torch.manual_seed(0)
        model = wrap(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).to(DEVICE))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.linspace(-1, 1, 16, device=DEVICE).reshape(4, 4)
        loss = x
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("option", ["find_unused_parameters", "static_graph"])
def test_options_that_need_pinned_memory_are_errors_with_a_solution(option: str):
    options: dict[str, Any] = {option: True}
    with pytest.raises(NotImplementedError, match=rf"{option}=True.*gt\.torch\.shard\(model, \"data\"\)"):
        DistributedDataParallel(nn.Linear(2, 2).to(DEVICE), **options)


@pytest.mark.usefixtures("one_process")
def test_fully_shard_is_an_error_with_a_solution():
    model = nn.Linear(4, 4).to(DEVICE)
    fully_shard(model)
    with pytest.raises(RuntimeError, match=r'gt\.torch\.shard\(model, "fsdp"\)'):
        model(torch.ones(1, 4, device=DEVICE)).sum().backward()


@pytest.mark.usefixtures("one_process")
def test_a_warning_says_once_how_to_use_several_workers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collectives, "_warned", [])
    with pytest.warns(UserWarning, match=r'gt\.init\(workers=N\), and use gt\.torch\.shard\(model, "data"\)'):
        dist.all_reduce(torch.ones(2, device=DEVICE))
    x = torch.ones(2, device=DEVICE)
    dist.all_reduce(x)
    assert x.tolist() == [1.0, 1.0]
