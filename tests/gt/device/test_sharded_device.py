"""Programs of the device over several workers give the CPU's results, for all placements of their tensors."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import gt.torch  # noqa: F401 - registers the device
from gt.client import Client
from gt.errors import WorkerError
from gt.stream.instructions import Op, Signal
from gt.stream.layouts import Sharded
from tests.gt.device.test_views_and_in_place import _CHANGES, _view
from tests.gt.helpers.spread import Servers, using
from tests.gt.helpers.threads import ThreadServer

DEVICE = "tapestry"


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    servers = Servers("pytorch")
    yield servers
    servers.close()


def _flat(made: Any) -> list[torch.Tensor]:
    return [one for one in (made if isinstance(made, tuple | list) else [made]) if torch.is_tensor(one)]


def same(program: Callable[..., Any], *tensors: torch.Tensor) -> None:
    """A program gives the same on the device as on the CPU."""
    expected = _flat(program(*[one.clone() for one in tensors]))
    found = _flat(program(*[one.to(DEVICE) for one in tensors]))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        # Terms of a sum are rounded before they are added up.
        near: dict[str, Any] = (
            {"rtol": 2e-2, "atol": 0.1} if theirs.dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
        )
        torch.testing.assert_close(ours.cpu(), theirs, **near)


def _written(x: torch.Tensor) -> Any:
    y = x.clone()
    y[2:5].mul_(3)
    y.t()[1] = 7
    y.view(-1)[3:30:4] += 1
    y[y > 2] = 0
    return y, y.t().contiguous()


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "shapes that depend on data": lambda x: (x.nonzero(), x[x > 0], torch.unique(x.round())),
    "computing with such a shape": lambda x: (x[x > 0] * 2).sum() + x[x[:, 0] > 0].sum(1).mean(),
    "several results": lambda x: (*x.sort(1), *x.topk(2, 0), *x.split(3), *torch.var_mean(x, 0)),
    "complex numbers": lambda x: (torch.fft.fft(x).abs(), torch.view_as_real(torch.fft.rfft(x, dim=0) * 2)),
    "a number to branch on": lambda x: x + 1 if torch.equal(x, x.clone()) and x.max() > 0 else x - 1,
    "in place": _written,
    "no elements": lambda x: (x[:0].sum(0), x[:0] @ x.t(), torch.cat([x[:0], x])),
    "strides": lambda x: torch.as_strided(x.contiguous(), (3, 3), (2, 5), 1) + 0,
    "linear algebra": lambda x: torch.linalg.svdvals(x @ x.t() + torch.eye(x.shape[0], device=x.device)),
    "half precision": lambda x: (x.bfloat16() @ x.bfloat16().t(), x.half().float().softmax(0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=4)
@given(workers=st.integers(2, 3), seed=st.integers(0, 1 << 20))
def test_a_program_gives_what_it_gives_on_the_cpu(servers: Servers, name: str, workers: int, seed: int):
    generator = torch.Generator().manual_seed(1)
    with servers.use(workers, seed):
        same(PROGRAMS[name], torch.randn(7, 6, generator=generator) * 2)


def test_an_op_that_draws_gives_all_workers_the_same(servers: Servers):
    for seed in range(6):
        with servers.use(3, seed):
            drawn = torch.poisson(torch.full((40, 40), 3.0, device=DEVICE))
            torch.testing.assert_close((drawn + drawn.t()).cpu(), drawn.cpu() + drawn.cpu().t())


def test_values_that_are_several_tensors_are_freed():
    with using(ThreadServer(2, "pytorch")) as client:
        x = torch.arange(6000.0, device=DEVICE).reshape(60, 100)
        for _ in range(3):
            x = x.sort(1).values + 1
        assert x[3, 4].item() == 307
        del x
        assert client.get_dispatcher_stats()["handles"] == 0


def _with_a_row(x: torch.Tensor) -> torch.Tensor:
    x[3] = x[5] * 2
    return x


SELECTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "an entry": lambda x: x[3],
    "a part": lambda x: x[3:40] * 1,
    "a part in the middle": lambda x: x.narrow(0, 30, 8) * 1,
    "every second": lambda x: x[::2] * 1,
    "parts": lambda x: [one * 1 for one in x.chunk(3)],
    "of another axis": lambda x: x[:, 3] * 1,
    "an entry that is written": _with_a_row,
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_what_is_selected_from_a_split_axis_gathers_nothing(name: str):
    x = torch.arange(4096.0).reshape(64, 64)
    with using(ThreadServer(2, "pytorch")) as client:
        there = x.to(DEVICE)
        found = _flat(SELECTIONS[name](there))
        client.flush()
        (stats,) = client.get_dispatcher_stats()["sharding"].values()
        assert stats["gathered"] == {}
        assert stats["bytes_moved"] <= 64 * 4, "at most a row"
        for ours, theirs in zip(found, _flat(SELECTIONS[name](x)), strict=True):
            torch.testing.assert_close(ours.cpu(), theirs)


# --- what a client claims is not trusted ---


def _claim(client: Client, results: Any, op: str = "aten::gelu") -> int:
    x = client.create(np.ones((64, 64), np.float32))
    made = client.next_id()
    client.emit(Op(made, op, (x,), {"results": results}, 0))
    return made


@pytest.mark.parametrize("results", ["float32[64x63]", "int64[64x64]", "float32[4096]", "float32[64x64x2]"])
def test_a_wrong_results_attribute_is_an_error_when_the_value_moves(results: str):
    with using(ThreadServer(2, "pytorch", shard_threshold=1 << 30)) as client:
        made, after = _claim(client, results), client.next_id()
        client.emit(Signal(after, "over all", Sharded(0), ()))
        client.emit(Op(after, "neg", (made,), None, 0))
        with pytest.raises(WorkerError, match=r"Move on worker_0: float32.* is not"):
            client.fetch(after)
        assert client.fetch(client.create(np.ones(3, np.float32))).shape == (3,)


@pytest.mark.parametrize("results", ["float32[64x64];", "float32[64x64];float32[64x64];"])
def test_an_attribute_that_wrongly_has_several_results_is_an_error(results: str):
    with using(ThreadServer(2, "pytorch")) as client:
        made, after = _claim(client, results), client.next_id()
        client.emit(Op(after, "item", (made,), {"index": 1}, 0))
        with pytest.raises(WorkerError):
            client.fetch(after)
        assert client.fetch(client.create(np.ones(3, np.float32))).shape == (3,)


@pytest.mark.parametrize(
    "results", ["float32", "float32[-1]", "text[3]", "float32[9999999999x9999999]", 3, ""]
)
def test_a_malformed_results_attribute_is_refused(results: Any):
    with using(ThreadServer(2, "pytorch")) as client:
        with pytest.raises(WorkerError, match="could not be placed"):
            client.fetch(_claim(client, results))
        assert client.fetch(client.create(np.ones(3, np.float32))).shape == (3,)


# --- models ---


def _cnn() -> nn.Module:
    layers = (nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(72, 4))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), (32, 8)),
    "cnn": (_cnn, (4, 3, 8, 8)),
    "transformer": (lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), (2, 7, 32)),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(8), nn.Unflatten(1, (2, 4)), nn.GroupNorm(2, 2)), (16, 8)),
}


def _trained(model: nn.Module, x: torch.Tensor) -> tuple[list[float], dict[str, torch.Tensor]]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: one.cpu() for name, one in model.state_dict().items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_models_train_to_the_same_losses_in_any_layout(servers: Servers, name: str, seed: int):
    make, size = MODELS[name]
    torch.manual_seed(0)
    model, x = make(), torch.randn(size)
    expected, state = _trained(copy.deepcopy(model), x)
    for workers in (2, 3):
        with servers.use(workers, seed):
            found, ours = _trained(copy.deepcopy(model).to(DEVICE), x.to(DEVICE))
        assert found == pytest.approx(expected, rel=1e-4)
        for key, one in state.items():
            torch.testing.assert_close(ours[key], one, rtol=1e-2, atol=5e-4)


# --- random programs ---


def _computed(data: st.DataObject, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """An op that this tensor has, whose result is a new tensor."""
    found: list[Callable[[torch.Tensor], torch.Tensor]] = [
        torch.tanh,
        torch.Tensor.sum,
        torch.nn.functional.gelu,
    ]
    if x.dim():
        dim = data.draw(st.integers(0, x.dim() - 1))
        found += [
            lambda y: y.sum(dim),
            lambda y: y.softmax(dim),
            lambda y: y.cumsum(dim),
            lambda y: torch.cat([y, y * 2], dim),
            lambda y: y.sort(dim).values,
            lambda y: torch.var_mean(y, dim, correction=0)[1],
            lambda y: y.flip(dim).roll(1, dim),
            lambda y: y.transpose(0, dim).contiguous().reshape(-1),
            lambda y: torch.where(y > 1, y, y.mean()),
        ]
    if x.dim() == 2:
        found += [lambda y: y @ y.t(), lambda y: torch.addmm(y[0], y, torch.eye(y.shape[1], device=y.device))]
    return data.draw(st.sampled_from(found))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), workers=st.integers(2, 3), seed=st.integers(0, 1 << 20))
def test_random_programs_give_what_they_give_on_the_cpu(
    servers: Servers, data: st.DataObject, workers: int, seed: int
):
    size = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    with servers.use(workers, seed):
        ours = [torch.linspace(-2, 3, torch.Size(size).numel()).reshape(size)]
        there = [ours[0].to(DEVICE)]
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.integers(0, len(ours) - 1))
            x, y = ours[at], there[at]
            kind = data.draw(st.sampled_from(["view", "change", "compute"]))
            if kind == "view":
                name, args = data.draw(st.sampled_from(_view(data, x)))
                ours.append(getattr(x, name)(*args))
                there.append(getattr(y, name)(*args))
            elif kind == "compute" and x.numel():
                compute = _computed(data, x)
                ours.append(compute(x))
                there.append(compute(y))
            elif not any(n > 1 and not step for n, step in zip(x.shape, x.stride(), strict=True)):
                name, args = data.draw(st.sampled_from([one for one in _CHANGES if one[1] is not None]))
                getattr(x, name)(*args)
                getattr(y, name)(*args)
        for x, y in zip(ours, there, strict=True):
            torch.testing.assert_close(y.cpu(), x, rtol=1e-4, atol=1e-4)
