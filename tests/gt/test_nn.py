"""Modules and layers: PyTorch's names, PyTorch's numbers, PyTorch's words."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gt
import gt.nn.functional as F
from gt import nn
from gt.client import Client
from tests.gt.helpers.oracles import array, close, grads_agree

ON_PYTORCH = pytest.mark.parametrize("client", ["pytorch"], indirect=True)


# --- layers ---

LAYERS: list[tuple[str, Callable[[Any], Any], np.ndarray]] = [
    ("Linear", lambda m: m.Linear(5, 3), array(4, 5)),
    ("Linear of one row", lambda m: m.Linear(5, 3), array(5)),
    ("Linear of more dimensions", lambda m: m.Linear(5, 3), array(2, 3, 4, 5)),
    ("Linear without bias", lambda m: m.Linear(5, 3, bias=False), array(4, 5)),
    ("Embedding", lambda m: m.Embedding(7, 4), np.array([[1, 2, 6], [0, 1, 1]])),
    ("Embedding with padding", lambda m: m.Embedding(7, 4, padding_idx=1), np.array([[1, 2], [0, 1]])),
    ("LayerNorm", lambda m: m.LayerNorm(5), array(2, 3, 5)),
    ("LayerNorm of two dimensions", lambda m: m.LayerNorm((3, 5)), array(2, 3, 5)),
    ("LayerNorm without bias", lambda m: m.LayerNorm(5, bias=False), array(2, 3, 5)),
    ("LayerNorm without affine", lambda m: m.LayerNorm(5, elementwise_affine=False), array(2, 3, 5)),
    ("RMSNorm", lambda m: m.RMSNorm(5), array(2, 3, 5)),
    ("RMSNorm with eps", lambda m: m.RMSNorm(5, eps=0.1), array(2, 3, 5)),
    ("Conv2d", lambda m: m.Conv2d(2, 3, 3), array(2, 2, 6, 5)),
    (
        "Conv2d with all",
        lambda m: m.Conv2d(
            4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2, bias=False
        ),
        array(2, 4, 6, 5),
    ),
    ("MaxPool2d", lambda m: m.MaxPool2d(2), array(2, 3, 6, 5)),
    ("MaxPool2d with padding", lambda m: m.MaxPool2d(3, stride=2, padding=1), array(2, 3, 6, 5)),
    ("AvgPool2d", lambda m: m.AvgPool2d(2), array(2, 3, 6, 5)),
    ("BatchNorm1d", lambda m: m.BatchNorm1d(3), array(4, 3)),
    ("BatchNorm1d of signals", lambda m: m.BatchNorm1d(3, momentum=0.3), array(4, 3, 5)),
    ("BatchNorm2d", lambda m: m.BatchNorm2d(3), array(2, 3, 4, 5)),
    ("BatchNorm2d while evaluating", lambda m: m.BatchNorm2d(3).eval(), array(2, 3, 4, 5)),
    ("BatchNorm2d without anything learned", lambda m: m.BatchNorm2d(3, affine=False), array(2, 3, 4, 5)),
    ("Flatten", lambda m: m.Flatten(), array(2, 3, 4)),
    ("Identity", lambda m: m.Identity(), array(2, 3)),
    ("Dropout while evaluating", lambda m: m.Dropout(0.5).eval(), array(2, 3)),
    ("ReLU", lambda m: m.ReLU(), array(2, 3)),
    ("LeakyReLU", lambda m: m.LeakyReLU(0.1), array(2, 3)),
    ("ELU", lambda m: m.ELU(0.5), array(2, 3)),
    ("GELU", lambda m: m.GELU(), array(2, 3)),
    ("GELU by tanh", lambda m: m.GELU("tanh"), array(2, 3)),
    ("SiLU", lambda m: m.SiLU(), array(2, 3)),
    ("Tanh", lambda m: m.Tanh(), array(2, 3)),
    ("Sigmoid", lambda m: m.Sigmoid(), array(2, 3)),
    ("Softplus", lambda m: m.Softplus(), array(2, 3)),
    ("Softmax", lambda m: m.Softmax(dim=1), array(2, 3)),
    ("LogSoftmax", lambda m: m.LogSoftmax(dim=-1), array(2, 3)),
    (
        "Sequential",
        lambda m: m.Sequential(m.Linear(5, 4), m.Tanh(), m.Sequential(m.Linear(4, 3), m.ReLU())),
        array(2, 5),
    ),
]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_has_pytorchs_running_statistics(client: Client, momentum: float | None):
    ours, theirs = nn.BatchNorm2d(3, momentum=momentum), torch.nn.BatchNorm2d(3, momentum=momentum)
    x = array(2, 3, 4, 5)
    for seed in range(4):
        x = array(2, 3, 4, 5, seed=seed)
        close(ours(gt.from_numpy(x)), theirs(torch.from_numpy(x)))
    for name, value in theirs.state_dict().items():
        close(ours.state_dict()[name], value)
    for module in (ours, theirs):
        module.eval()
    close(ours(gt.from_numpy(x)), theirs(torch.from_numpy(x)))
    with pytest.raises(gt.errors.ShapeError, match=r"expected 4D input \(got 2D input\)"):
        ours(gt.ones(2, 3))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        ours.train()(gt.ones(1, 3, 1, 1))


@pytest.mark.parametrize(("make", "x"), [row[1:] for row in LAYERS], ids=[row[0] for row in LAYERS])
def test_layer_agrees_with_pytorch(client: Client, make: Callable[[Any], Any], x: np.ndarray):
    ours, theirs = make(nn), make(torch.nn)
    ours.load_state_dict(theirs.state_dict())
    wanted = x.dtype.kind == "f"
    mine, other = gt.from_numpy(x, requires_grad=wanted), torch.from_numpy(x).requires_grad_(wanted)
    out, expected = ours(mine), theirs(other)
    assert out.shape == tuple(expected.shape)
    close(out, expected)
    if not expected.requires_grad:
        return
    weights = array(*out.shape, seed=1)
    out.backward(gt.from_numpy(weights))
    expected.backward(torch.from_numpy(weights))
    if wanted:
        assert mine.grad is not None
        close(mine.grad, other.grad, 5e-5)  # type: ignore[arg-type]
    grads_agree(ours, theirs)


@ON_PYTORCH
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("mask", [None, "bool", "float", "each head"])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("own", [True, False], ids=["self", "cross"])
def test_multihead_attention_agrees_with_pytorch(
    client: Client, batch_first: bool, mask: str | None, need_weights: bool, own: bool
):
    ours, theirs = (m.MultiheadAttention(8, 2, batch_first=batch_first) for m in (nn, torch.nn))
    ours.load_state_dict(theirs.state_dict())
    shape = (3, 5, 8) if batch_first else (5, 3, 8)
    arrays = [array(*shape)] if own else [array(*shape, seed=seed) for seed in range(3)]
    allowed = {
        None: None,
        "bool": np.triu(np.ones((5, 5), bool), 1),
        "float": array(5, 5, seed=4),
        "each head": (np.random.default_rng(5).random((6, 5, 5)) < 0.5) & ~np.eye(5, dtype=bool),
    }[mask]
    results = []
    for lib, layer in ((gt, ours), (torch, theirs)):
        inputs = [lib.from_numpy(a) for a in arrays] * (3 if own else 1)
        attn_mask = None if allowed is None else lib.from_numpy(allowed)
        out, weights = layer(*inputs, need_weights=need_weights, attn_mask=attn_mask)
        (out * lib.from_numpy(array(*shape, seed=6))).sum().backward()
        results.append((out, weights))
    (out, weights), (expected, their_weights) = results
    close(out, expected)
    assert (weights is None) == (their_weights is None)
    if weights is not None:
        close(weights, their_weights)
    grads_agree(ours, theirs)


@ON_PYTORCH
@pytest.mark.parametrize("mask", [None, "bool", "float"])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.filterwarnings("ignore:Support for mismatched")
def test_multihead_attention_does_not_look_at_padding(
    client: Client, mask: str | None, need_weights: bool, batched: bool
):
    ours, theirs = (m.MultiheadAttention(8, 2, batch_first=True) for m in (nn, torch.nn))
    ours.load_state_dict(theirs.state_dict())
    shape = (3, 5, 8) if batched else (5, 8)
    padding = np.arange(5) >= (np.array([[5], [3], [2]]) if batched else 3)
    masks = {None: None, "bool": np.triu(np.ones((5, 5), bool), 1), "float": array(5, 5, seed=4)}
    results = []
    for lib, layer in ((gt, ours), (torch, theirs)):
        x = lib.from_numpy(array(*shape))
        attn_mask = None if mask is None else lib.from_numpy(masks[mask])
        results.append(layer(x, x, x, lib.from_numpy(padding), need_weights, attn_mask)[0])
    close(*results)


@ON_PYTORCH
def test_multihead_attention_without_a_batch_and_without_averaging(client: Client):
    ours, theirs = (m.MultiheadAttention(8, 2, bias=False) for m in (nn, torch.nn))
    ours.load_state_dict(theirs.state_dict())
    x = array(5, 8)
    out, weights = ours(*[gt.from_numpy(x)] * 3, average_attn_weights=False)
    expected, their_weights = theirs(*[torch.from_numpy(x)] * 3, average_attn_weights=False)
    close(out, expected)
    close(weights, their_weights)


def test_dropout_drops_a_share_and_keeps_the_mean(client: Client):
    gt.manual_seed(0)
    x = gt.ones(100, 100, requires_grad=True)
    out = nn.Dropout(0.25)(x)
    values = out.detach().numpy()
    assert set(np.unique(values)) == {0, np.float32(1 / 0.75)}
    assert (values == 0).mean() == pytest.approx(0.25, abs=0.02)
    out.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), values)  # what was dropped gets no gradient


def test_dropout_is_reproducible_by_seed_and_differs_between_calls(client: Client):
    x = gt.ones(50)
    gt.manual_seed(3)
    first, second = F.dropout(x).tolist(), F.dropout(x).tolist()
    gt.manual_seed(3)
    assert F.dropout(x).tolist() == first
    assert first != second
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, training=False) is x
    assert not any(F.dropout(x, 1.0).tolist())
    with pytest.raises(ValueError, match=r"has to be between 0 and 1, but got 1\.5"):
        nn.Dropout(1.5)


# --- modules ---


class Plain(nn.Module):
    """Parameters everywhere, and no call of super().__init__()."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(2, 2), [nn.Linear(2, 1, bias=False)]]
        self.heads = {"left": nn.Linear(2, 3)}
        self.scale = nn.Parameter(gt.ones(2))
        self.shared = self.scale
        self.constant = gt.ones(2)
        self.free = (nn.Parameter(gt.zeros(1)), 7)

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        return self.layers[0](x) * self.scale


def test_parameters_are_found_where_they_are_kept():
    assert [name for name, _ in Plain().named_parameters()] == [
        *("scale", "free.0", "layers.0.weight", "layers.0.bias", "layers.1.0.weight"),
        *("heads.left.weight", "heads.left.bias"),
    ]
    assert Plain()(gt.ones(1, 2)).shape == (1, 2)


class AsInTheSpecification(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(10, 20)
        self.fc2 = nn.Linear(20, 1)
        self.extra = gt.ones(3, requires_grad=True)
        self._parameters = self.fc1.parameters() + self.fc2.parameters() + [self.extra]

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        return self.fc2(self.fc1(x).relu())


def test_a_users_own_list_of_parameters_adds_those_that_were_not_found():
    model = AsInTheSpecification()
    assert [name for name, _ in model.named_parameters()] == [
        *("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "_parameters.4")
    ]
    assert isinstance(model.parameters(), list)
    assert len({id(p) for p in model.parameters()}) == 5
    assert len(nn.Sequential(model, model).parameters()) == 5
    fresh = AsInTheSpecification()
    fresh.load_state_dict(model.state_dict())
    assert fresh.fc1.weight.tolist() == model.fc1.weight.tolist()


def test_names_are_those_of_pytorch():
    def build(m: Any) -> Any:
        block = m.Sequential(m.Linear(4, 4), m.ReLU())
        model = m.ModuleList([block, m.ModuleDict({"norm": m.LayerNorm(4)}), block])
        model.register_buffer("mask", (gt if m is nn else torch).ones(2))
        return model

    ours, theirs = build(nn), build(torch.nn)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert [n for n, _ in ours.named_children()] == [n for n, _ in theirs.named_children()]
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert len(ours) == 3
    assert ours[0] is ours[2]
    assert ours[1]["norm"] is ours.get_submodule("1.norm")


def test_a_tensor_in_a_parameters_place_is_refused():
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="cannot assign 'Tensor' as parameter 'weight'"):
        layer.weight = layer.weight * 2  # type: ignore[assignment]
    model = nn.Sequential(layer)
    model.extra = layer
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'extra'"):
        model.extra = 5
    layer.bias = None
    assert len(layer.parameters()) == 1
    assert next(layer.parameters()) is layer.weight


def test_devices_are_accepted_and_change_nothing():
    model = nn.Linear(2, 2).to("cpu").to(gt.device("cuda:0")).cuda().cpu()
    x = gt.ones(1, 2, device=gt.device("cpu")).to(model.weight.device)
    assert model(x).shape == (1, 2)
    assert (gt.device("cuda:1").type, gt.device("cuda:1").index) == ("cuda", 1)
    assert (x.shape.numel(), repr(x.shape)) == (2, "gt.Size([1, 2])")


def test_a_module_that_refers_to_its_parent_is_no_problem():
    parent, child = nn.Module(), nn.Linear(1, 1)
    parent.child, child.parent = child, parent
    assert len(parent.parameters()) == 2
    assert len(list(parent.modules())) == 2


def test_training_and_evaluation_reach_every_module():
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Dropout()))
    assert all(module.training for module in model.modules())
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    assert all(module.training for module in model.train().modules())


def test_apply_freeze_and_zero_grad(client: Client):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    seen = []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Linear", "Sequential"]
    model[0].requires_grad_(False)
    model(gt.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is None
    assert model[1].weight.grad is not None
    model.zero_grad(set_to_none=False)
    assert model[1].weight.grad.tolist() == [[0, 0], [0, 0]]
    model.zero_grad()
    assert model[1].weight.grad is None


def test_dtypes_change_in_place(client: Client):
    layer = nn.Linear(2, 2)
    weight = layer.weight
    assert layer.half() is layer
    assert layer.weight is weight
    assert weight.dtype == "float16"
    assert layer(gt.ones(1, 2, dtype="float16")).dtype == "float16"
    assert layer.float().weight.dtype == "float32"
    assert layer.double().bias.dtype == "float64"  # type: ignore[union-attr]


def test_the_tree_is_readable():
    model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Sequential(nn.GELU(), nn.Dropout(0.1)))
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  (1): Sequential(\n"
        "    (0): GELU(approximate='none')\n"
        "    (1): Dropout(p=0.1)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Parameter(gt.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_a_deep_copy_is_a_model_of_its_own(client: Client):
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    model.register_buffer("seen", gt.ones(1))
    average = copy.deepcopy(model)
    assert [name for name, _ in average.named_parameters()] == [name for name, _ in model.named_parameters()]
    nn.init.zeros_(average[0].weight)
    assert any(model[0].weight.data.numpy().flat)
    average(gt.ones(1, 2)).sum().backward()
    assert average[0].bias.grad is not None
    assert model[0].bias.grad is None
    assert list(average.state_dict()) == list(model.state_dict())


def test_buffers_are_state_but_are_not_learned():
    module = nn.Module()
    module.register_buffer("mean", gt.zeros(2))
    module.register_buffer("cache", gt.zeros(3), persistent=False)
    assert not module.parameters()
    assert [name for name, _ in module.named_buffers()] == ["mean", "cache"]
    assert list(module.state_dict()) == ["mean"]
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        module.register_buffer("forward", gt.zeros(1))


# --- where it is ---


def test_it_can_be_imported_by_every_name():
    import gt.nn.init
    import gt.nn.utils
    import gt.optim.lr_scheduler
    from gt.client import nn as of_client
    from gt.client import optim as optim_of_client

    assert of_client.Linear is gt.nn.Linear
    assert optim_of_client.SGD is gt.optim.SGD
    assert gt.nn.functional.cross_entropy is nn.cross_entropy_loss
    assert gt.optim.lr_scheduler.StepLR is optim_of_client.lr_scheduler.StepLR


@ON_PYTORCH
def test_a_training_step_of_a_small_network_is_few_instructions(client: Client):
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1)
    x, y = gt.randn(64, 784), gt.zeros(64, dtype="int64")

    def step() -> None:
        optimizer.zero_grad()
        nn.cross_entropy_loss(model(x), y).backward()
        optimizer.step()

    step()
    before = client.next_id()
    step()
    # Forward 4; backward 1 to begin, 1 for the loss, 2 for the relu, 1 for an input, 3 for each weight and
    # bias; 4 updates.
    assert client.next_id() - before - 1 <= 19


@pytest.mark.parametrize("engine", ["pytorch", "numpy"])
@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss"])
def test_a_batch_of_ignored_targets_has_no_gradient(loss: str, engine: str):
    gt.init(engine=engine)
    try:
        x = gt.randn(3, 4, requires_grad=True)
        value = getattr(gt.nn.functional, loss)(x, gt.full((3,), -100))
        value.backward()
        assert np.isnan(value.item())
        assert x.grad is not None
        assert x.grad.tolist() == [[0.0] * 4] * 3
    finally:
        gt.close()


def test_normalize_has_a_gradient_at_zero():
    x = gt.zeros(2, 2, requires_grad=True)
    gt.nn.functional.normalize(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 1e12, rtol=1e-5)


def test_a_module_dict_may_hold_one_module_twice():
    shared = gt.nn.Linear(2, 2)
    modules = gt.nn.ModuleDict({"a": shared, "b": shared})
    assert modules["b"] is shared
    assert list(modules) == ["a", "b"]
    assert modules.values() == [shared, shared]
    assert len(modules.parameters()) == 2


@pytest.mark.parametrize("added", [False, True])
def test_a_position_that_may_look_nowhere_sees_zeros(added: bool):
    mask = np.array([[True, True, True], [False, False, False], [True, False, True]])
    x = np.random.default_rng(0).standard_normal((1, 3, 4), np.float32)
    results = []
    for library in (torch, gt):
        q = library.tensor(x).requires_grad_()
        given = library.tensor(np.where(mask, 0, -np.inf).astype(np.float32) if added else mask)
        out = library.nn.functional.scaled_dot_product_attention(q, q, q, given)
        out.sum().backward()
        results.append((out.detach().numpy(), q.grad.numpy()))
    for theirs, ours in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
