"""Matrix products over several workers: the results and the exchanges of every pattern of layouts."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import gt
from tests.gt.helpers.spread import using
from tests.gt.helpers.threads import ThreadServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadServer]:
    signals = tmp_path_factory.mktemp("signals") / "signals.yaml"
    signals.write_text(
        "rows: {shard: {axis: -2}}\ncolumns: {shard: {axis: -1}}\nbatch: {shard: {axis: 0}}\n"
        "whole: {replicate: true}\nsome: {shard: {axis: -2, workers: [1, 2]}}\nlast: {replicate: [2]}\n"
    )
    server = ThreadServer(3, "numpy")
    with using(server):
        gt.load_config(signals)
        yield server


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def exchanged() -> dict[str, int]:
    (stats,) = gt.debug.get_dispatcher_stats()["sharding"].values()
    return dict(stats["commands"])


LAYOUTS = ("rows", "columns", "whole", "some", "last")


@pytest.mark.parametrize(("left", "right"), list(itertools.product(LAYOUTS, LAYOUTS)))
def test_any_two_layouts_multiply(server: ThreadServer, left: str, right: str):
    a, b = random(14, 10), random(10, 7)
    x = gt.signal.tensor(gt.from_numpy(a), left).requires_grad_()
    y = gt.signal.tensor(gt.from_numpy(b), right).requires_grad_()
    product = x @ y
    np.testing.assert_allclose(product.data.numpy(), a @ b, rtol=1e-4, atol=1e-5)
    product.sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), np.ones((14, 7)) @ b.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(y.grad.numpy(), a.T @ np.ones((14, 7)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("left", "right", "cost"),
    [
        ("rows", "whole", {}),
        ("whole", "columns", {}),
        ("whole", "whole", {}),
        ("columns", "rows", {"Reduce": 1}),
        ("rows", "columns", {"AllGather": 1}),
        ("rows", "rows", {"AllGather": 1}),
    ],
)
def test_a_product_moves_the_fewest_bytes(server: ThreadServer, left: str, right: str, cost: dict):
    x = gt.signal.tensor(gt.from_numpy(random(30, 30)), left)
    y = gt.signal.tensor(gt.from_numpy(random(30, 30)), right)
    before = exchanged()
    (x @ y).numpy()
    now = exchanged()
    assert {kind: n - before.get(kind, 0) for kind, n in now.items() if n > before.get(kind, 0)} == cost


@pytest.mark.parametrize(("left", "right"), list(itertools.product(("batch", "rows", "whole"), repeat=2)))
@pytest.mark.parametrize(("a", "b"), [((6, 4, 5), (6, 5, 3)), ((6, 4, 5), (5, 3)), ((2, 6, 4, 5), (6, 5, 3))])
def test_batches_multiply(server: ThreadServer, a: tuple, b: tuple, left: str, right: str):
    x, y = random(*a), random(*b)
    product = gt.signal.tensor(gt.from_numpy(x), left) @ gt.signal.tensor(gt.from_numpy(y), right)
    np.testing.assert_allclose(product.numpy(), x @ y, rtol=1e-4, atol=1e-5)


def test_large_matrices_multiply_as_the_policy_lays_them_out(server: ThreadServer):
    a, b = random(128, 64), random(64, 32)
    np.testing.assert_allclose((gt.from_numpy(a) @ gt.from_numpy(b)).numpy(), a @ b, rtol=1e-3, atol=1e-4)


def test_a_chain_of_products_keeps_its_rows(server: ThreadServer):
    """A tall matrix times small ones: the rows stay where they are."""
    x = gt.signal.tensor(gt.from_numpy(random(999, 8)), "rows")
    weights = [gt.signal.tensor(gt.from_numpy(random(8, 8)), "whole") for _ in range(4)]
    before = exchanged()
    for weight in weights:
        x = (x @ weight).tanh()
    x._value.client.flush()
    assert exchanged() == before
