"""Habits of programs written for CUDA devices, on torch.device("tapestry")."""

import copy
import io
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import gt.torch  # noqa: F401 - registers the device
from gt.errors import WorkerError

DEVICE = "tapestry"
module: Any = torch.tapestry  # type: ignore[attr-defined]


# --- where tensors are ---


def test_the_device_has_the_spellings_of_cuda() -> None:
    x: Any = torch.ones(2)
    assert x.tapestry().device == torch.device(DEVICE, 0)
    assert nn.Linear(2, 2).tapestry().weight.is_tapestry  # type: ignore[operator]
    assert x.to("tapestry:0").get_device() == 0
    assert x.to(DEVICE, torch.float64).dtype == torch.float64
    assert x.to(DEVICE).new_tensor([1.0]).device.type == DEVICE
    assert torch.as_tensor([1], device=DEVICE).device.type == DEVICE
    assert nn.Linear(3, 3, device="meta").to_empty(device=DEVICE).weight.device.type == DEVICE


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.ones(2, device="tapestry:1"),
        lambda: torch.arange(2, device="tapestry:1"),
        lambda: torch.ones(2).to("tapestry:1"),
        lambda: module.set_device(1),
    ],
)
def test_there_is_one_device(use: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"tapestry:1: invalid device ordinal\. There is one device"):
        use()


@pytest.mark.parametrize(
    "use",
    [
        lambda x, y: x + y,
        lambda x, y: torch.cat([x, y]),
        lambda x, y: torch.stack([y, x]),
        lambda x, y: y.add_(x),
        lambda x, y: x.add_(y),
        lambda x, y: torch.add(x, 1, out=y),
        lambda x, y: torch.where(y > 0, x, x),
        lambda x, y: F.linear(x, y),
        lambda x, y: F.cross_entropy(x, y.argmax(1)),
        lambda x, y: F.embedding(torch.tensor([1]), x),
        lambda x, y: y[torch.tensor([0], device=DEVICE)],
    ],
)
def test_tensors_of_two_devices_are_an_error(use: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*tapestry:0"):
        use(torch.ones(2, 2, device=DEVICE), torch.ones(2, 2))


def test_an_index_may_be_on_the_cpu() -> None:
    x = torch.arange(6.0, device=DEVICE).reshape(3, 2)
    rows = torch.tensor([2, 0])
    assert x[rows].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert x[torch.tensor([False, True, False])].tolist() == [[2.0, 3.0]]
    x[rows, torch.tensor([0, 1])] = 9.0
    assert x.tolist() == [[0.0, 9.0], [2.0, 3.0], [9.0, 5.0]]


# --- values ---


def test_tensors_convert_to_python_values() -> None:
    x = torch.arange(3.0, device=DEVICE)
    assert (int(x[2]), float(x[1]), bool(x[0])) == (2, 1.0, False)
    assert f"{x.sum():.2f}" == "3.00"
    assert ["a", "b", "c"][x[2].long()] == "c"
    assert 2.0 in x
    assert (len(x), [one.item() for one in x]) == (3, [0.0, 1.0, 2.0])
    assert {x: 1}[x] == 1
    assert str(x) == "tensor([0., 1., 2.], device='tapestry:0')"
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(x)
    assert x.numpy(force=True).tolist() == [0.0, 1.0, 2.0]


# --- the device's module ---


def test_the_module_has_the_functions_that_programs_for_cuda_call() -> None:
    module.empty_cache()
    module.reset_peak_memory_stats()
    x = torch.ones(4096, device=DEVICE)
    assert module.max_memory_allocated() >= module.memory_allocated() >= x.nbytes
    assert module.get_device_name(0) == DEVICE
    assert module.is_bf16_supported()
    start, end = module.Event(enable_timing=True), module.Event(enable_timing=True)
    with module.device(0), module.stream(module.Stream()):
        start.record()
        x = x * 2
        end.record()
    module.current_stream().synchronize()
    assert start.elapsed_time(end) >= 0
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    assert torch.accelerator.current_device_index() == 0
    assert torch.get_device_module(DEVICE) is module
    with module.device_of(x), module.device("tapestry:0"):
        assert not module.is_current_stream_capturing()
    assert module.device(0).idx == 0
    assert module.get_device_properties(0).name == DEVICE
    module.reset_max_memory_allocated()
    assert re.search(r"\w+: [\d,]+ bytes in \d+ tensors", module.memory_summary())
    with module.amp.autocast(dtype=torch.bfloat16):
        assert (x[None] @ x[:, None]).dtype == torch.bfloat16
    assert module.amp.GradScaler(init_scale=8.0).scale(x).max().item() == 16
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        module.device(1)


def test_the_generators_state_is_kept_and_restored() -> None:
    torch.manual_seed(5)
    assert module.initial_seed() == 5
    torch.rand(3, device=DEVICE)
    state = module.get_rng_state()
    first = torch.rand(3, device=DEVICE).tolist()
    with torch.random.fork_rng(device_type=DEVICE):
        torch.rand(3, device=DEVICE)
    second = torch.rand(3, device=DEVICE).tolist()
    module.set_rng_state(state)
    assert torch.rand(3, device=DEVICE).tolist() == first
    assert torch.rand(3, device=DEVICE).tolist() == second != first


def test_another_devices_generator_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'tapestry' device type for generator but found 'cpu'"):
        torch.randn(2, device=DEVICE, generator=torch.Generator())


# --- autograd ---


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_drops_the_same_elements_again(reentrant: bool) -> None:
    x = torch.ones(100, device=DEVICE, requires_grad=True)
    y = checkpoint(lambda a: F.dropout(a, 0.5), x, use_reentrant=reentrant)
    torch.rand(3, device=DEVICE)  # draws of others come in between
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, y)


def test_hooks_are_called() -> None:
    said: list[Any] = []
    w = torch.ones(2, device=DEVICE, requires_grad=True)
    w.register_hook(lambda grad: grad * 2)
    w.register_post_accumulate_grad_hook(lambda p: said.append(p.grad.tolist()))
    layer = nn.Linear(2, 1).to(DEVICE)
    layer.register_forward_hook(lambda *_: said.append("forward"))
    layer.register_full_backward_hook(lambda *_: said.append("backward"))
    nn.init.ones_(layer.weight)
    layer(w).sum().backward()
    assert said == ["forward", "backward", [2.0, 2.0]]


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")
def test_function_transforms() -> None:
    x = torch.tensor([[0.1, 0.2], [0.3, 0.4]])
    y = x.to(DEVICE)

    def energy(a: torch.Tensor) -> torch.Tensor:
        return (a**3).sum() + a.prod()

    for transform in (torch.func.grad, torch.func.hessian, torch.func.jacfwd):
        torch.testing.assert_close(transform(energy)(y).cpu(), transform(energy)(x))
    for_rows = torch.func.vmap(torch.func.grad(energy))
    torch.testing.assert_close(for_rows(y).cpu(), for_rows(x))
    pushed, expected = (torch.func.jvp(torch.sin, (one,), (one,))[1] for one in (y, x))
    torch.testing.assert_close(pushed.cpu(), expected)


def test_a_gradient_scaler_skips_steps_that_overflow() -> None:
    layer = nn.Linear(3, 1).to(DEVICE)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=1024.0)
    before = layer.weight.tolist()
    for scale, changes in ((float("inf"), False), (1.0, True)):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.float16):
            loss = layer(torch.ones(2, 3, device=DEVICE)).square().mean() + 1
        scaler.scale(loss * scale).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert (layer.weight.tolist() != before) == changes
    assert scaler.get_scale() == 512.0


def test_training_with_autocast_follows_the_cpus_curve() -> None:
    losses: dict[str, list[float]] = {}
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))
        x = torch.randn(64, 8)
        model, x = model.to(device), x.to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        losses[device] = []
        for _ in range(5):
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.mse_loss(model(x).float(), x[:, :1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses[DEVICE] == pytest.approx(losses["cpu"], rel=2e-2)


LAYERS: dict[str, tuple[Callable[[], nn.Module], Callable[[str], Any]]] = {
    "embedding bag": (
        lambda: nn.EmbeddingBag(5, 3, mode="sum"),
        lambda d: (torch.tensor([0, 1, 2, 4], device=d), torch.tensor([0, 3], device=d)),
    ),
    "packed LSTM": (
        lambda: nn.LSTM(3, 4, bidirectional=True),
        lambda d: (
            nn.utils.rnn.pack_padded_sequence(
                torch.linspace(0, 1, 24, device=d).reshape(4, 2, 3),
                torch.tensor([2, 4]),
                enforce_sorted=False,
            ),
        ),
    ),
    "attention": (
        lambda: nn.MultiheadAttention(8, 2, batch_first=True),
        lambda d: (torch.linspace(-1, 1, 48, device=d).reshape(2, 3, 8),) * 3,
    ),
    "weight norm": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)),
        lambda d: (torch.ones(2, 3, device=d),),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_cpus_results_and_gradients(name: str) -> None:
    torch.manual_seed(0)
    make, inputs = LAYERS[name]
    layer = make()
    there = copy.deepcopy(layer).to(DEVICE)
    results = []
    for one, device in ((layer, "cpu"), (there, DEVICE)):
        result = one(*inputs(device))
        while isinstance(result, tuple):
            result = result[0]
        result.square().sum().backward()
        results.append(
            [result.detach().cpu(), *(p.grad.cpu() for p in one.parameters() if p.grad is not None)]
        )
    assert len(results[0]) > 1
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"need_weights": False}, {"average_attn_weights": False}])
def test_attention_in_evaluation_is_the_fused_op_of_the_cpu(options: dict[str, Any]) -> None:
    here = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    there = copy.deepcopy(here).to(DEVICE)
    x = torch.linspace(-1, 1, 48).reshape(2, 3, 8)
    with torch.inference_mode():
        expected, found = here(x, x, x, **options), there(*[x.to(DEVICE)] * 3, **options)
    assert (found[1] is None) == (expected[1] is None) == (options == {"need_weights": False})
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is not None:
            torch.testing.assert_close(ours.cpu(), theirs)


def test_batch_norm_keeps_running_statistics() -> None:
    here = nn.BatchNorm1d(3)
    there = copy.deepcopy(here).to(DEVICE)
    x = torch.arange(12.0).reshape(4, 3)
    for _ in range(2):
        here(x)
        there(x.to(DEVICE))
    assert there.num_batches_tracked is not None
    assert there.num_batches_tracked.item() == 2
    torch.testing.assert_close(there.running_var.cpu(), here.running_var)  # type: ignore[union-attr]
    torch.testing.assert_close(there.eval()(x.to(DEVICE)).cpu(), here.eval()(x))


# --- files ---


def test_a_checkpoint_of_the_cpu_is_loaded_to_the_device() -> None:
    saved = {"x": torch.arange(6.0).reshape(2, 3).t(), "n": torch.tensor([1, 2]), "b": torch.ones(2).bool()}
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    loaded = torch.load(file, map_location=DEVICE)
    for name, one in loaded.items():
        assert one.device.type == DEVICE
        assert torch.equal(one.cpu(), saved[name])
    assert torch.equal((loaded["x"] * 2).cpu(), saved["x"] * 2)
    loaded["n"].add_(1)
    assert loaded["n"].tolist() == [2, 3]


def test_tensors_and_optimizers_are_pickled_and_restored() -> None:
    x = torch.arange(3.0, device=DEVICE)
    assert torch.equal(pickle.loads(pickle.dumps(x[1:])).cpu(), x[1:].cpu())
    layer = nn.Linear(2, 2).to(DEVICE)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2, device=DEVICE)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    other = torch.optim.AdamW(layer.parameters())
    other.load_state_dict(torch.load(file))
    ours, theirs = (one.state[layer.weight]["exp_avg"] for one in (optimizer, other))
    assert theirs.device.type == DEVICE
    assert torch.equal(ours.cpu(), theirs.cpu())


def test_safetensors_are_read_by_any_device() -> None:
    x = torch.arange(4.0, device=DEVICE).reshape(2, 2)
    data = safetensors.torch.save({"x": x, "y": x.bfloat16()})
    found = safetensors.torch.load(data)
    assert torch.equal(found["x"], x.cpu())
    assert found["y"].dtype == torch.bfloat16


# --- errors ---


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: torch.ones(3, device=DEVICE)[torch.tensor([5], device=DEVICE)], "index 5 is out of bounds"),
        (
            lambda: nn.Embedding(3, 2).to(DEVICE)(torch.tensor([7], device=DEVICE)),
            "index out of range in self",
        ),
        (
            lambda: F.cross_entropy(torch.ones(1, 3, device=DEVICE), torch.tensor([7], device=DEVICE)),
            "Target 7 is out of bounds",
        ),
        (lambda: torch.ones(1 << 45, device=DEVICE) * 2, "does not have enough memory .*Free tensors"),
    ],
)
def test_a_failure_on_a_worker_names_the_op_and_the_users_line(use: Callable[[], Any], message: str) -> None:
    with pytest.raises(WorkerError, match=rf"(?s)issued at .*test_habits\.py:\d+.*{message}"):
        use().sum().item()
    assert torch.ones(2, device=DEVICE).sum().item() == 2.0, "the next op works"


def test_a_matrix_that_is_singular_is_an_error_at_once() -> None:
    with pytest.raises(RuntimeError, match="the input matrix is singular"):
        torch.linalg.solve(torch.zeros(2, 2, device=DEVICE), torch.ones(2, device=DEVICE))


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        (lambda x: x.to_sparse(), "sparse"),
        (lambda x: x.cpu().to_sparse().to(DEVICE), "sparse"),
        (lambda x: nn.Embedding(3, 2, sparse=True).to(DEVICE)(x.long()).sum().backward(), "sparse"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "quantized"),
        (lambda x: torch.nested.nested_tensor([x, x[:1]]), "nested"),
        (lambda x: x.to_mkldnn(), "mkldnn"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_kinds_of_tensors_that_the_device_does_not_have(use: Callable[[Any], Any], kind: str) -> None:
    wanted = (
        rf"aten::\w+ \(at .*test_habits\.py:\d+\): the device tapestry has no {kind} tensors. Do this part"
    )
    with pytest.raises(NotImplementedError, match=wanted):
        use(torch.eye(2, device=DEVICE))


def test_a_result_that_the_output_cannot_hold_is_an_error() -> None:
    whole = torch.ones(2, dtype=torch.int64, device=DEVICE)
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.mul_(1.5)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.logit(torch.ones(2, device=DEVICE) / 2, out=whole)
