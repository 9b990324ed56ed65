"""The training examples follow the same loss curve on GT as on PyTorch, and learn."""

import numpy as np
import pytest
import torch

import gt
from examples import train_mlp, train_transformer
from gt.client import Client
from tests.programs import run_python

# One engine, embedded and over processes: the others are compared op by op.
EMBEDDED_AND_PROCESSES = pytest.mark.parametrize("client", ["pytorch", "processes"], indirect=True)


@EMBEDDED_AND_PROCESSES
def test_the_mlp_learns_as_it_does_on_pytorch(client: Client):
    model, ours = train_mlp.train(gt, steps=120)
    _, theirs = train_mlp.train(torch, steps=120)
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-4)
    assert np.mean(ours[-10:]) < 0.5 * ours[0]
    assert train_mlp.accuracy(gt, model) > 0.8


@EMBEDDED_AND_PROCESSES
def test_the_transformer_learns_as_it_does_on_pytorch(client: Client):
    _, ours = train_transformer.train(gt, steps=40)
    _, theirs = train_transformer.train(torch, steps=40)
    np.testing.assert_allclose(ours, theirs, rtol=5e-3, atol=1e-3)
    assert ours[-1] < 0.7 * ours[0]


@pytest.mark.parametrize("example", ["train_mlp", "train_transformer"])
def test_the_example_runs_by_itself(example: str):
    said = run_python("-m", f"examples.{example}", "--steps", "3").stdout
    assert said.startswith("step    0  loss ")
    assert "last loss" in said
