"""Losses: PyTorch's numbers, gradients and words."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gt
import gt.nn.functional as F
from gt import nn
from gt.client import Client
from gt.errors import DTypeError, ShapeError, WorkerError
from tests.gt.helpers.oracles import array, close

ON_PYTORCH = pytest.mark.parametrize("client", ["pytorch"], indirect=True)

LOSSES: list[tuple[str, dict[str, Any]]] = [
    ("MSELoss", {}),
    ("L1Loss", {}),
    ("SmoothL1Loss", {"beta": 0.5}),
    ("HuberLoss", {"delta": 0.5}),
    ("BCELoss", {}),
    ("BCEWithLogitsLoss", {}),
    ("KLDivLoss", {}),
    ("KLDivLoss", {"log_target": True}),
]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")  # PyTorch's, of the KLDivLoss
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "settings"), LOSSES, ids=lambda v: v if isinstance(v, str) else str(v))
def test_loss_agrees_with_pytorch(client: Client, name: str, settings: dict[str, Any], reduction: str):
    rng = np.random.default_rng(0)
    x, y = rng.random((4, 3), np.float32), rng.random((4, 3), np.float32)
    mine = gt.from_numpy(x, requires_grad=True), gt.from_numpy(y, requires_grad=name != "KLDivLoss")
    other = torch.from_numpy(x).requires_grad_(), torch.from_numpy(y).requires_grad_(name != "KLDivLoss")
    loss = getattr(nn, name)(reduction=reduction, **settings)(*mine)
    expected = getattr(torch.nn, name)(reduction=reduction, **settings)(*other)
    close(loss, expected)
    loss.sum().backward()
    expected.sum().backward()
    for a, b in zip(mine, other, strict=True):
        if b.grad is not None:
            assert a.grad is not None
            close(a.grad, b.grad)


@ON_PYTORCH
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_of_probabilities_agrees_with_pytorch(
    client: Client, reduction: str, shape: tuple[int, ...], smoothing: float, weighted: bool
):
    x, y = array(*shape), np.abs(array(*shape, seed=1))
    weight = np.array([1, 2, 0.5], np.float32)
    results = []
    for lib in (gt, torch):
        scores = lib.from_numpy(x).requires_grad_()
        loss = lib.nn.functional.cross_entropy(
            scores,
            lib.from_numpy(y),
            lib.from_numpy(weight) if weighted else None,
            reduction=reduction,
            label_smoothing=smoothing,
        )
        loss.sum().backward()
        results.append((loss, scores.grad))
    for mine, other in zip(*results, strict=True):
        close(mine, other)


@ON_PYTORCH
def test_binary_losses_take_weights(client: Client):
    x, y, w, pos = (
        array(4, 3),
        (array(4, 3, seed=1) > 0).astype("float32"),
        np.abs(array(4, 3, seed=2)),
        array(3),
    )
    results = []
    for lib in (gt, torch):
        f, (scores, truth, weight, positive) = lib.nn.functional, map(lib.from_numpy, (x, y, w, abs(pos)))
        scores.requires_grad_()
        loss = f.binary_cross_entropy_with_logits(scores, truth, weight, pos_weight=positive)
        loss = loss + f.binary_cross_entropy(scores.sigmoid(), truth, weight)
        loss.backward()
        results.append((loss, scores.grad))
    for mine, other in zip(*results, strict=True):
        close(mine, other)


def test_losses_stay_finite_at_the_edges(client: Client):
    p = gt.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    loss = nn.binary_cross_entropy(p, gt.tensor([0.0, 1.0, 1.0, 0.0]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [0, 0, 100, 100]
    theirs = torch.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    torch.nn.functional.binary_cross_entropy(
        theirs, torch.tensor([0.0, 1.0, 1.0, 0.0]), reduction="sum"
    ).backward()
    assert p.grad is not None
    close(p.grad, theirs.grad)  # type: ignore[arg-type]
    x = gt.tensor([[1e4, -1e4]], requires_grad=True)
    loss = nn.cross_entropy_loss(x, gt.tensor([0]))
    loss.backward()
    assert loss.item() == 0
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0]]


def test_everything_ignored_is_nan_as_in_pytorch(client: Client):
    x = gt.tensor([[1.0, 2.0]], requires_grad=True)
    assert np.isnan(nn.cross_entropy_loss(x, gt.tensor([-100])).item())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.cross_entropy_loss(gt.ones(3, 2), gt.zeros(4, dtype="int64")),
            ShapeError,
            "Expected input batch_size (3) to match target batch_size (4).",
        ),
        (
            lambda: nn.cross_entropy_loss(gt.ones(3, 2), gt.zeros(3)),
            DTypeError,
            "expected scalar type Long but found float32",
        ),
        (
            lambda: nn.cross_entropy_loss(gt.ones(3, 2), gt.zeros(3, dtype="int64"), weight=gt.ones(3)),
            ShapeError,
            "weight tensor should be defined either for all 2 classes",
        ),
        (
            lambda: nn.binary_cross_entropy(gt.ones(3), gt.ones(2)),
            ShapeError,
            "Using a target size ([2]) that is different to the input size ([3])",
        ),
        (
            lambda: F.binary_cross_entropy_with_logits(gt.ones(3), gt.ones(2)),
            ShapeError,
            "Target size ([2]) must be the same as input size ([3])",
        ),
        (lambda: nn.mse_loss(gt.ones(3), gt.ones(3), "average"), ValueError, "average is not a valid value"),
        (
            lambda: nn.Linear(3, 2)(gt.ones(4, 5)),
            ShapeError,
            "mat1 and mat2 shapes cannot be multiplied (4x5 and 3x2)",
        ),
        (lambda: nn.MultiheadAttention(5, 2), ValueError, "embed_dim must be divisible by num_heads"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "Padding_idx must be within num_embeddings"),
        (lambda: nn.Module()(1), NotImplementedError, 'missing the required "forward" function'),
        (lambda: nn.Sequential(gt.ones(1)), TypeError, "is not a Module subclass"),  # type: ignore[arg-type]
        (lambda: nn.Linear(3, 2).to("int64"), DTypeError, "only accepts floating point dtypes"),
    ],
)
def test_mistakes_are_raised_at_once_in_pytorchs_words(
    call: Callable[[], Any], error: type[Exception], message: str
):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_a_class_that_does_not_exist_is_an_error_when_the_loss_is_read(client: Client):
    loss = nn.cross_entropy_loss(gt.ones(1, 2), gt.tensor([5]))
    with pytest.raises(WorkerError, match=r"test_losses\.py:\d+.*Target 5 is out of bounds"):
        loss.item()


def test_different_shapes_are_broadcast_with_a_warning_at_the_users_line():
    with pytest.warns(
        UserWarning, match=r"target size \(\[3\]\) that is different to the input size"
    ) as seen:
        loss = nn.MSELoss()(gt.ones(3, 1), gt.zeros(3))
    assert seen[0].filename == __file__
    assert loss.item() == 1
