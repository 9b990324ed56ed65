"""Optimizers and schedules give PyTorch's numbers, step by step, and do not leak."""

import gc
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.client import Client
from gt.errors import StateError
from gt.stream.instructions import Op

ON_PYTORCH = pytest.mark.parametrize("client", ["pytorch"], indirect=True)

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.002, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("SGD", {"lr": 0.002, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.5, 0.7), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "betas": (0.5, 0.5)}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "maximize": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.0}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.5, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
]


class Twins:
    """Parameters of the same values in both libraries, and a loss to train them on."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        start = [self.rng.standard_normal(shape, np.float32) for shape in ((3, 4), (4,), (4, 1))]
        self.ours = [gt.nn.Parameter(gt.from_numpy(array)) for array in start]
        self.theirs = [torch.nn.Parameter(torch.from_numpy(array.copy())) for array in start]

    def backward(self) -> None:
        """One batch's gradients, in both."""
        x, y = self.rng.standard_normal((8, 3), np.float32), self.rng.standard_normal((8, 1), np.float32)
        for (w1, b, w2), make in ((self.ours, gt.from_numpy), (self.theirs, torch.from_numpy)):
            out = (make(x) @ w1 + b).tanh() @ w2
            ((out - make(y)) ** 2).mean().backward()

    def check(self, tolerance: float = 2e-5) -> None:
        for mine, other in zip(self.ours, self.theirs, strict=True):
            np.testing.assert_allclose(
                mine.data.numpy(), other.detach().numpy(), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=lambda v: v if isinstance(v, str) else str(v))
def test_optimizer_agrees_with_pytorch_over_many_steps(client: Client, name: str, settings: dict[str, Any]):
    twins = Twins()
    ours = getattr(gt.optim, name)(twins.ours, **settings)
    theirs = getattr(torch.optim, name)(twins.theirs, **settings)
    for _ in range(20):
        for optimizer in (ours, theirs):
            optimizer.zero_grad()
        twins.backward()
        for optimizer in (ours, theirs):
            optimizer.step()
        twins.check()


def test_the_second_step_of_sgd_has_the_gradient_of_the_new_value(client: Client):
    w = gt.nn.Parameter(gt.tensor([3.0]))
    optimizer = gt.optim.SGD([w], lr=0.25)
    same = w
    for expected in (1.5, 0.75, 0.375):  # w -= 0.25 * 2 * w
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        assert w is same
        assert w.tolist() == [expected]
        assert w.requires_grad
        assert w.is_leaf
    assert not gt.debug.get_tape()


@ON_PYTORCH
def test_a_step_issues_no_more_than_it_must(client: Client):
    def instructions_per_step(optimizer: gt.optim.Optimizer) -> int:
        (w * w).sum().backward()
        optimizer.step()
        client.get_stats()
        before = client.next_id()
        optimizer.step()
        return client.next_id() - before - 1

    w = gt.nn.Parameter(gt.ones(3))
    assert instructions_per_step(gt.optim.SGD([w], lr=0.1)) == 1
    assert instructions_per_step(gt.optim.SGD([w], lr=0.1, momentum=0.9)) == 2
    assert instructions_per_step(gt.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.1)) == 3
    assert instructions_per_step(gt.optim.Adam([w], lr=0.1)) == 3
    assert instructions_per_step(gt.optim.AdamW([w], lr=0.1, weight_decay=0.1)) == 3


@ON_PYTORCH
def test_every_step_is_the_same_instructions_but_for_their_numbers(
    client: Client,
):
    model = gt.nn.Sequential(gt.nn.Linear(4, 8), gt.nn.Dropout(0.5), gt.nn.Linear(8, 3))
    optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
    schedule = gt.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    x, y = gt.randn(5, 4), gt.tensor([0, 1, 2, 0, 1])
    issued: list[Op] = []

    def watch(instruction: Any) -> None:
        if isinstance(instruction, Op):
            issued.append(instruction)

    client.add_listener(watch)
    forms, numbers = [], []
    for _ in range(5):
        issued.clear()
        optimizer.zero_grad()
        gt.nn.cross_entropy_loss(model(x), y).backward()
        gt.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        attrs = [(op.op, op.attrs or {}) for op in issued]
        # What a compiler may take as an input of the sequence: fractions, and seeds.
        free = [(n, v) for _, a in attrs for n, v in a.items() if type(v) is float or n == "seed"]
        numbers.append(free)
        fixed = [(o, {n: v for n, v in a.items() if type(v) is not float and n != "seed"}) for o, a in attrs]
        forms.append((fixed, [name for name, _ in free]))
    assert all(form == forms[1] for form in forms[2:])  # the first step makes the optimizer's state
    assert numbers[1] != numbers[2]


def test_parameters_without_a_gradient_stay():
    used, unused = gt.nn.Parameter(gt.ones(2)), gt.nn.Parameter(gt.ones(2))
    optimizer = gt.optim.AdamW([used, unused], lr=0.1)
    used.sum().backward()
    optimizer.step()
    assert unused.tolist() == [1, 1]
    assert used.tolist() != [1, 1]


@ON_PYTORCH
def test_groups_have_settings_of_their_own(client: Client):
    twins = Twins()

    def groups(params: list[Any]) -> list[dict[str, Any]]:
        return [{"params": params[:1], "lr": 0.5}, {"params": params[1:], "weight_decay": 0.1}]

    ours = gt.optim.SGD(groups(twins.ours), lr=0.1, momentum=0.5)
    theirs = torch.optim.SGD(groups(twins.theirs), lr=0.1, momentum=0.5)
    for _ in range(5):
        for optimizer in (ours, theirs):
            optimizer.zero_grad(set_to_none=False)
        twins.backward()
        ours.step()
        theirs.step()
    twins.check()
    assert [group["lr"] for group in ours.param_groups] == [0.5, 0.1]


@ON_PYTORCH
def test_a_closure_computes_the_loss_first(client: Client):
    w = gt.nn.Parameter(gt.tensor([2.0]))
    optimizer = gt.optim.SGD([w], lr=0.25)

    def closure() -> gt.Tensor:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4
    assert w.tolist() == [1]


@ON_PYTORCH
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_training_continues_from_a_saved_state(client: Client, name: str, tmp_path: Path):
    def make(params: list[Any]) -> gt.optim.Optimizer:
        return getattr(gt.optim, name)(params, lr=0.05, **({"momentum": 0.9} if name == "SGD" else {}))

    straight, resumed = Twins(), Twins()
    first, second = make(straight.ours), make(resumed.ours)
    for step in range(6):
        if step == 3:
            gt.save(second.state_dict(), tmp_path / "optimizer.safetensors")
            second = make(resumed.ours)
            second.param_groups[0]["lr"] = 99
            second.load_state_dict(gt.load(tmp_path / "optimizer.safetensors"))
        for twins, optimizer in ((straight, first), (resumed, second)):
            optimizer.zero_grad()
            twins.backward()
            optimizer.step()
    for mine, other in zip(straight.ours, resumed.ours, strict=True):
        assert mine.tolist() == other.tolist()


@ON_PYTORCH
def test_pytorchs_optimizer_state_loads(client: Client):
    twins = Twins()
    theirs = torch.optim.AdamW(twins.theirs, lr=0.05)
    for _ in range(3):
        theirs.zero_grad()
        twins.backward()
        theirs.step()
    for mine, other in zip(twins.ours, twins.theirs, strict=True):
        mine.data = gt.from_numpy(other.detach().numpy())
    ours = gt.optim.AdamW(twins.ours, lr=1.0)
    ours.load_state_dict(theirs.state_dict())
    for _ in range(3):
        for optimizer in (ours, theirs):
            optimizer.zero_grad()
        twins.backward()
        ours.step()
        theirs.step()
    twins.check()


def test_a_state_of_other_parameters_is_refused():
    one, two = (gt.optim.SGD([gt.nn.Parameter(gt.ones(1)) for _ in range(count)], lr=0.1) for count in (1, 2))
    with pytest.raises(StateError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(two.state_dict())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w: gt.optim.SGD([], lr=0.1), "optimizer got an empty parameter list"),
        (lambda w: gt.optim.SGD(w, lr=0.1), "should be an iterable of Tensors or dicts"),
        (lambda w: gt.optim.SGD([w], lr=-1), "Invalid learning rate: -1"),
        (lambda w: gt.optim.SGD([w], momentum=-1), "Invalid momentum: -1"),
        (lambda w: gt.optim.SGD([w], nesterov=True), "Nesterov momentum requires a momentum"),
        (lambda w: gt.optim.Adam([w], betas=(1.0, 0.9)), "Invalid beta parameter at index 0: 1.0"),
        (lambda w: gt.optim.SGD([w * 2]), "can't optimize a non-leaf Tensor"),
        (lambda w: gt.optim.SGD([w, w]), "some parameters appear in more than one"),
        (lambda w: gt.optim.SGD(["w"]), "can only optimize Tensors"),
    ],
)
def test_mistakes_are_raised_in_pytorchs_words(make: Callable[[Any], Any], message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        make(gt.nn.Parameter(gt.ones(2)))


SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 6], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 6}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda step: 1 / (1 + step)}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 13, "three_phase": True, "anneal_strategy": "linear"}),
]


@pytest.mark.parametrize(("name", "settings"), SCHEDULES, ids=lambda v: v if isinstance(v, str) else "")
def test_schedule_agrees_with_pytorch(name: str, settings: dict[str, Any]):
    ours = gt.optim.SGD([{"params": [gt.nn.Parameter(gt.ones(1))]}], lr=0.5, momentum=0.9)
    theirs = torch.optim.SGD([{"params": [torch.nn.Parameter(torch.ones(1))]}], lr=0.5, momentum=0.9)
    mine = getattr(gt.optim.lr_scheduler, name)(ours, **settings)
    other = getattr(torch.optim.lr_scheduler, name)(theirs, **settings)
    for _ in range(11):
        assert mine.get_last_lr() == pytest.approx(other.get_last_lr(), rel=1e-6, abs=1e-9)
        assert ours.param_groups[0]["lr"] == mine.get_last_lr()[0]
        assert ours.param_groups[0]["momentum"] == pytest.approx(theirs.param_groups[0]["momentum"])
        theirs.step()
        ours.step()
        mine.step()
        other.step()


def test_a_warm_up_and_then_a_cosine_agree_with_pytorch():
    rates = []
    for library, parameter in ((gt, gt.nn.Parameter(gt.ones(1))), (torch, torch.nn.Parameter(torch.ones(1)))):
        optimizer = library.optim.SGD([parameter], lr=0.5)
        schedules = library.optim.lr_scheduler
        schedule = schedules.SequentialLR(
            optimizer,
            [
                schedules.LinearLR(optimizer, start_factor=0.1, total_iters=3),
                schedules.CosineAnnealingLR(optimizer, T_max=5),
            ],
            milestones=[3],
        )
        rates.append([])
        for _ in range(8):
            rates[-1].append(schedule.get_last_lr()[0])
            optimizer.step()
            schedule.step()
    assert rates[0] == pytest.approx(rates[1])


def test_a_schedule_continues_from_a_saved_state():
    optimizer = gt.optim.SGD([gt.nn.Parameter(gt.ones(1))], lr=1.0)
    schedule = gt.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    schedule.step()
    schedule.step()
    again = gt.optim.SGD([gt.nn.Parameter(gt.ones(1))], lr=1.0)
    resumed = gt.optim.lr_scheduler.ExponentialLR(again, gamma=0.5)
    resumed.load_state_dict(schedule.state_dict())
    assert again.param_groups[0]["lr"] == 0.25
    resumed.step()
    assert again.param_groups[0]["lr"] == 0.125


@pytest.mark.parametrize("order", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("limit", [0.1, 100.0])
def test_clipping_by_norm_agrees_with_pytorch(client: Client, order: float, limit: float):
    twins = Twins()
    twins.backward()
    mine = gt.nn.utils.clip_grad_norm_(twins.ours, limit, order)
    other = torch.nn.utils.clip_grad_norm_(twins.theirs, limit, order)
    assert mine.item() == pytest.approx(other.item(), rel=1e-5)
    for ours, theirs in zip(twins.ours, twins.theirs, strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


@ON_PYTORCH
def test_clipping_does_not_wait(client: Client, monkeypatch: pytest.MonkeyPatch):
    w = gt.nn.Parameter(gt.ones(3))
    (w * 5).sum().backward()
    with monkeypatch.context() as patch:
        patch.setattr(client, "fetch", lambda tensor: pytest.fail("clipping asked for data"))
        norm = gt.nn.utils.clip_grad_norm_([w], 1.0)
    assert norm.item() == pytest.approx(math.sqrt(75))


def test_clipping_can_refuse_a_norm_that_is_not_finite():
    w = gt.nn.Parameter(gt.ones(1))
    w.grad = gt.tensor([math.inf])
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        gt.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)


def test_clipping_by_value(client: Client):
    w = gt.nn.Parameter(gt.ones(3))
    (w * gt.tensor([-5.0, 0.5, 5.0])).sum().backward()
    gt.nn.utils.clip_grad_value_([w], 1.0)
    assert w.grad is not None
    assert w.grad.tolist() == [-1, 0.5, 1]


def test_a_gradient_shared_by_two_leaves_is_clipped_once_for_each(client: Client):
    a, b = gt.nn.Parameter(gt.ones(1)), gt.nn.Parameter(gt.ones(1))
    (a + b).backward()
    gt.nn.utils.clip_grad_norm_([a, b], math.sqrt(2) / 2)
    assert a.grad is not None
    assert b.grad is not None
    assert (a.grad.item(), b.grad.item()) == pytest.approx((0.5, 0.5))


@ON_PYTORCH
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_nothing_piles_up_over_200_steps(client: Client, name: str):
    model = gt.nn.Sequential(gt.nn.Linear(4, 8), gt.nn.Tanh(), gt.nn.Linear(8, 3))
    optimizer = getattr(gt.optim, name)(model.parameters(), lr=0.01)
    x, y = gt.randn(5, 4), gt.tensor([0, 1, 2, 0, 1])
    alive = set()
    gc.disable()
    try:
        for step in range(200):
            loss = gt.nn.cross_entropy_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step > 0:
                alive.add(gt.debug.get_worker_stats()["auto_worker"]["tensors"])
    finally:
        gc.enable()
    assert len(alive) == 1
