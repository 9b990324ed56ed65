"""Models trained over several workers, distributed in every way, have the CPU's losses."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gt
import gt.torch
from tests.gt.device.parallel_models import CASES, WAYS, make, train
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer
from tests.programs import run_python


def _commands(client: Any) -> dict[str, int]:
    (found,) = client.get_dispatcher_stats()["sharding"].values()
    return dict(found["commands"])


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_a_model_learns_the_same_in_any_way(name: str, how: str):
    if name == "llama":
        pytest.importorskip("transformers")
    with using(ThreadServer(3, "pytorch", shard_threshold=256)) as client:
        assert train(name, how=how) == pytest.approx(train(name, "cpu"), rel=2e-4)
        assert client.get_dispatcher_stats()["handles"] == 0, "nothing is left behind"


@pytest.mark.parametrize(
    ("workers", "names"),
    [
        (2, ["cnn", "llama"]),
        pytest.param(2, ["mlp", "gpt"], marks=pytest.mark.thorough),
        pytest.param(1, ["mlp", "cnn", "gpt", "llama"], marks=pytest.mark.thorough),
    ],
)
def test_models_learn_the_same_over_processes(workers: int, names: list[str]):
    pytest.importorskip("transformers")
    command = ("-m", "tests.gt.device.parallel_models", f"{workers}", *names)
    done = run_python(*command, environment={"OMP_NUM_THREADS": "1"})
    found = json.loads(done.stdout.splitlines()[-1])
    for name in names:
        expected = train(name, "cpu")
        for how in WAYS:
            assert found[name][how] == pytest.approx(expected, rel=2e-4), (name, how)


@pytest.mark.parametrize("name", ["mlp", "gpt", pytest.param("llama", marks=pytest.mark.thorough)])
def test_data_parallel_training_reduces_each_gradient_once_and_gathers_nothing(name: str):
    counts: list[dict[str, int]] = []
    with using(ThreadServer(2, "pytorch")) as client:
        train(name, how="data", report=lambda _: counts.append(_commands(client)))
    one, two = counts[-2:]
    step = {kind: n - one.get(kind, 0) for kind, n in two.items() if n > one.get(kind, 0)}
    parameters = len({id(one) for one in make(name).parameters()})
    assert step.pop("AllReduce") == parameters + 2, "each gradient, the sum of the loss and its weight"
    assert step.keys() <= {"Move", "Create", "ShardOp"}, "batches, masks and numbers; no parameter"


def test_fully_sharded_training_keeps_a_part_of_everything_on_each_worker():
    class Wide(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))

    with using(ThreadServer(2, "pytorch")) as client:
        model = gt.torch.shard(Wide().to("tapestry"), "fsdp")
        optimizer = torch.optim.Adam(model.parameters())
        x = torch.randn(8, 256).to("tapestry")
        for _ in range(2):
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        x = None
        next(model.parameters()).sum().item()
        everything = 3 * sum(one.nbytes for one in model.parameters())  # and two averages
        for stats in client.connection.get_stats().values():
            assert everything * 0.45 < stats["bytes"] < everything * 0.6


@pytest.mark.parametrize("how", ["data", pytest.param("fsdp", marks=pytest.mark.thorough)])
def test_steps_that_repeat_are_placed_again_with_the_same_losses(how: str, monkeypatch):
    monkeypatch.setenv("GT_COMPILE_AFTER", "1000000")
    with using(ThreadServer(2, "pytorch")) as client:
        found = train("mlp", how=how, steps=30, report=lambda _: None)
        assert client.get_dispatcher_stats()["sharding"]["c1"]["repeats_placed_again"] > 5
    assert found == pytest.approx(train("mlp", "cpu", steps=30, report=lambda _: None), rel=1e-4)


def test_a_fused_optimizer_keeps_the_layouts_of_parameters():
    losses = []
    for device in ("cpu", "tapestry"):
        with using(ThreadServer(2, "pytorch")):
            model = make("mlp").to(device)
            if device != "cpu":
                gt.torch.shard(model, "fsdp")
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
            torch.manual_seed(2)
            x = torch.randn(16, 32).to(device)
            loss = x
            for _ in range(3):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
            if device != "cpu":
                assert all(_layout(one).startswith("sharded") for one in model.parameters())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_worker_that_joins_late_is_used_and_changes_no_loss():
    server = ThreadServer(1, "pytorch", shard_threshold=256)
    steps: list[int] = []

    def report(_: nn.Module) -> None:
        steps.append(1)
        if len(steps) == 2:
            server.add_worker()

    with using(server) as client:
        found = train("cnn", steps=5, report=report)
        assert client.get_dispatcher_stats()["sharding"]
    assert found == pytest.approx(train("cnn", "cpu", steps=5, report=lambda _: None), rel=2e-4)


def test_dropout_drops_the_same_elements_in_any_layout():
    found = []
    for workers, how in ((1, None), (2, None), (3, Ellipsis)):
        with using(ThreadServer(workers, "pytorch")):
            torch.manual_seed(5)
            x = torch.ones(64, 48, device="tapestry")
            if how is Ellipsis:
                gt.torch.shard(x, dim=1)
            found.append(nn.functional.dropout(x, 0.3).cpu())
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


# --- what one can say ---


def _layout(tensor: torch.Tensor) -> str:
    from gt.torch.buffers import read

    value = read(tensor)
    return str(value.client.get_layouts(value.id).placements[0])


def test_layouts_are_given_by_patterns_of_names(tmp_path: Path):
    layouts = {"0": "column", "2": "row", "2.bias": {"shard": {"axis": 0}}}
    path = tmp_path / "layouts.yaml"
    path.write_text('"0": column\n"2": row\n2.bias: {shard: {axis: 0}}\n')
    for how in (layouts, path, str(path)):
        with using(ThreadServer(2, "pytorch")):
            model = gt.torch.shard(make("mlp").to("tapestry"), how)
            found = [_layout(one).partition("@")[0] for one in model.parameters()]
            assert found == ["sharded(0)", "sharded(0)", "sharded(1)", "sharded(0)"]


def test_a_model_can_be_distributed_in_another_way():
    with using(ThreadServer(2, "pytorch")):
        model = make("mlp").to("tapestry")
        for how, layout in (("data", "replicated"), ("fsdp", "sharded(0)"), ("tensor", "sharded(0)")):
            gt.torch.shard(model, how)
            assert _layout(next(model.parameters())).startswith(layout)
        assert len(model._forward_pre_hooks) == 1


def test_a_layout_can_be_a_signal(tmp_path: Path):
    (tmp_path / "signals.yaml").write_text("last: {shard: {axis: 1, workers: [1, 2]}}\n")
    gt.load_config(tmp_path / "signals.yaml")
    with using(ThreadServer(3, "pytorch")):
        model = gt.torch.shard(make("mlp").to("tapestry"), {"*.weight": "last"})
        assert _layout(next(model.parameters())) == "sharded(1)@worker_1,worker_2"
        with gt.signal.context("last"):
            x = torch.ones(4, 8).to("tapestry")
        assert _layout(x) == "sharded(1)@worker_1,worker_2"


def test_a_batch_is_distributed_along_a_dimension():
    with using(ThreadServer(2, "pytorch")):
        batch = {"x": torch.ones(8, 4).to("tapestry"), "y": [torch.ones(3, 6).to("tapestry")]}
        assert gt.torch.shard(batch, dim=1) is batch
        assert _layout(batch["x"]).startswith("sharded(1)@")
        torch.testing.assert_close(batch["y"][0].cpu(), torch.ones(3, 6))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: gt.torch.shard(m, "dota"), ValueError, "it is one of 'data', 'tensor', 'fsdp'"),
        (
            lambda m: gt.torch.shard(m, {"3.*": "row"}),
            ValueError,
            r"no parameter matches '3\.\*'\. There are 0\.weight",
        ),
        (
            lambda m: gt.torch.shard(m, {"0": "rows"}),
            ValueError,
            "'rows', for '0', is not a layout: there are 'column'",
        ),
        (lambda m: gt.torch.shard(m, {"0": {"split": 1}}), ValueError, "is not a layout"),
        (lambda m: gt.torch.shard(m, {"0": 3}), TypeError, "3, for '0', is not a layout"),
        (
            lambda m: gt.torch.shard(m, {"0.bias": {"shard": {"axis": 1}}}),
            ValueError,
            "axis 1, and a parameter",
        ),
        (lambda m: gt.torch.shard(m, dim=1), TypeError, "dim is for tensors"),
        (
            lambda m: gt.torch.shard(m.cpu()),
            ValueError,
            r"0\.weight is on the device cpu\. Move the model first",
        ),
        (lambda m: gt.torch.shard(torch.ones(3)), ValueError, "the tensor is on the device cpu"),
        (lambda m: gt.torch.shard(m[0].bias, dim=1), IndexError, r"a tensor of shape \[96\] has no such dim"),
        (lambda m: gt.torch.shard(3), TypeError, "takes a model or tensors, not int"),
        (lambda m: gt.torch.shard(nn.ReLU(), "tensor"), ValueError, "the model has no linear layers"),
    ],
)
def test_mistakes_are_errors_with_a_solution(call: Any, error: type[Exception], message: str, tmp_path: Path):
    (tmp_path / "none.yaml").write_text("")
    gt.load_config(tmp_path / "none.yaml")
    with pytest.raises(error, match=message):
        call(make("mlp").to("tapestry"))
