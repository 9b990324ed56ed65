"""Training with batches of changing size gives PyTorch's numbers: no cache returns an earlier size."""

from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.client import Client

SIZES = {
    "a smaller last batch": [8, 8, 8, 3, 8, 8, 8, 3],
    "every size": [1, 2, 3, 4, 5, 6, 7, 8],
    "a batch of one": [8, 1, 8, 1, 1, 8],
    "growing and shrinking": [2, 64, 2, 64, 33, 1],
}


class Twins:
    """The same small network in both libraries."""

    def __init__(self, lr: float = 0.05) -> None:
        self.theirs = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Tanh(), torch.nn.Linear(9, 4))
        self.ours = gt.nn.Sequential(gt.nn.Linear(6, 9), gt.nn.Tanh(), gt.nn.Linear(9, 4))
        self.ours.load_state_dict(self.theirs.state_dict())
        self.optimizers = (
            gt.optim.SGD(self.ours.parameters(), lr=lr, momentum=0.9),
            torch.optim.SGD(self.theirs.parameters(), lr=lr, momentum=0.9),
        )
        self.rng = np.random.default_rng(0)

    def step(self, size: int) -> tuple[float, float]:
        """One step in both; the losses."""
        x, y = self.rng.standard_normal((size, 6), np.float32), self.rng.integers(0, 4, size)
        losses = []
        lib: Any
        for lib, model, optimizer in zip((gt, torch), (self.ours, self.theirs), self.optimizers, strict=True):
            optimizer.zero_grad()
            loss = lib.nn.functional.cross_entropy(model(lib.from_numpy(x)), lib.from_numpy(y))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses[0], losses[1]

    def check(self) -> None:
        for name, value in self.theirs.state_dict().items():
            np.testing.assert_allclose(
                self.ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-4, atol=1e-5, err_msg=name
            )


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_training_agrees_with_pytorch(client: Client, sizes: list[int]):
    torch.manual_seed(0)
    twins = Twins()
    for size in sizes:
        mine, other = twins.step(size)
        assert mine == pytest.approx(other, rel=1e-4)
    twins.check()


def test_an_empty_batch_has_no_mean_and_changes_nothing(client: Client):
    torch.manual_seed(0)
    twins = Twins()
    twins.step(4)
    mine, other = twins.step(0)
    assert np.isnan(mine)
    assert np.isnan(other)
    twins.check()


def test_an_empty_batch_of_a_sum_is_zero(client: Client):
    model = gt.nn.Linear(3, 2)
    loss = gt.nn.functional.mse_loss(model(gt.zeros(0, 3)), gt.zeros(0, 2), reduction="sum")
    loss.backward()
    assert loss.item() == 0
    assert model.weight.grad is not None
    assert not model.weight.grad.numpy().any()


@pytest.mark.parametrize("client", ["pytorch"], indirect=True)
def test_gradients_accumulated_over_uneven_batches_are_those_of_the_whole(client: Client):
    model = gt.nn.Linear(5, 3)
    x, y = gt.randn(10, 5), gt.randn(10, 3)
    gt.nn.mse_loss(model(x), y, reduction="sum").backward()
    assert model.weight.grad is not None
    whole = model.weight.grad.numpy()
    model.zero_grad()
    for start, end in ((0, 1), (1, 8), (8, 10)):
        gt.nn.mse_loss(model(x[start:end]), y[start:end], reduction="sum").backward()
    assert model.weight.grad is not None
    np.testing.assert_allclose(model.weight.grad.numpy(), whole, rtol=1e-5, atol=1e-6)
