"""Clients that repeat the same sequence share its compiled code, each with its own numbers."""

import numpy as np
import pytest
import torch

import gt
from gt.client import Client, session
from gt.server.embedded import LocalConnection, LocalServer
from gt.worker.compile.compiling import Compiler
from gt.worker.compile.graph import Graph, function_of
from tests.gt.helpers.hot_server import compile_loop, stats


def _trained(rate: float, steps: int) -> np.ndarray:
    """A weight after some steps of gradient descent: the rate is in the ops, and never changes."""
    x = gt.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    weight = gt.tensor(np.ones((3, 2), dtype=np.float32))
    for _ in range(steps):
        weight = weight - (x.T @ (x @ weight - 1)) * rate
    return weight.numpy()


def _expected(rate: float, steps: int) -> np.ndarray:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    weight = np.ones((3, 2), dtype=np.float32)
    for _ in range(steps):
        weight = weight - (x.T @ (x @ weight - 1)) * np.float32(rate)
    return weight


def test_each_client_has_its_own_learning_rate(hot: LocalServer, monkeypatch):
    compile_loop(hot, lambda: _trained(0.1, 300))
    other = Client(LocalConnection(hot))
    first = session.current()
    before = stats(hot)["replays"]
    for client, rate in ((other, 0.01), (first, 0.1), (other, 0.01), (first, 0.1)):
        monkeypatch.setattr(session, "_current", client)
        np.testing.assert_allclose(_trained(rate, 300), _expected(rate, 300), rtol=1e-4, atol=1e-5)
    assert stats(hot)["replays"] > before
    other.close()


@pytest.mark.parametrize("slopes", [(0.25, 0.75), (0.0, -0.0)], ids=str)
def test_a_float_that_is_part_of_a_compiled_graph_may_change(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, slopes: tuple[float, float]
):
    """A leaky ReLU's slope is no number that compiled code is given when it is called."""
    monkeypatch.setenv("GT_COMPILE_AFTER", "0")
    requested: list[Graph] = []
    monkeypatch.setattr(Compiler, "request", lambda compiler, graph: requested.append(graph))
    monkeypatch.setattr(Compiler, "cached", lambda compiler, key: False)
    monkeypatch.setattr(Compiler, "get", lambda compiler, key: None)
    x = gt.tensor(np.linspace(-2, 2, 8, dtype=np.float32))
    for slope in slopes:
        for _ in range(12):
            y = gt.nn.functional.leaky_relu(x * 0.5 - 1.0, slope).tanh().exp() * 0.25
            (y - x).sin().tolist()
    functions = server.worker.engine.functions
    given = torch.linspace(-2, 2, 8), torch.tensor([0.5, 1.0, 0.25], dtype=torch.float64)
    assert len(requested) == 2
    for slope, graph in zip(slopes, requested, strict=True):
        (node,) = [one for one in graph.nodes if one.op == "leaky_relu"]
        assert str(node.attrs["negative_slope"]) == str(slope)
        *_, computed = function_of(graph, functions)(*given)
        y = torch.nn.functional.leaky_relu(given[0] * 0.5 - 1.0, slope).tanh().exp() * 0.25
        torch.testing.assert_close(computed, (y - given[0]).sin())
