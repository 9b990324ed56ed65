"""Realistic programs over numbers of workers that divide no axis: PyTorch's results."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gt
from tests.gt.helpers.spread import AnyLayout, using
from tests.gt.helpers.threads import ThreadServer
from tests.gt.samples.base import from_torch

RNG = np.random.default_rng(0)
A = RNG.standard_normal((101, 67)).astype(np.float32)
B = RNG.standard_normal((67, 53)).astype(np.float32)
V = RNG.standard_normal(5003).astype(np.float32)
T = RNG.standard_normal((7, 31, 29)).astype(np.float32)
INDEX = RNG.integers(0, 67, (97, 43))
NOTHING = np.zeros((0, 67), np.float32)


@pytest.fixture(scope="module", params=["as the policy says", "at random"])
def three(request: pytest.FixtureRequest) -> Iterator[None]:
    policy = AnyLayout(7) if request.param == "at random" else None
    with using(ThreadServer(3, "pytorch", policy=policy)) as client:
        yield
        assert client.get_dispatcher_stats()["handles"] == 0, "nothing is left behind"


def same(program: Callable[..., Any], *arrays: np.ndarray, close: float = 1e-4) -> None:
    """A program gives the same for both libraries: `program(library, *tensors)`, and the gradients of all."""
    results = []
    for library in (gt, torch):
        inputs = [library.tensor(a, requires_grad=a.dtype == np.float32) for a in arrays]
        made = program(library, *inputs)
        made = list(made) if isinstance(made, tuple | list) else [made]
        smooth = [x for x in made if x.requires_grad]
        if smooth:
            loss: Any = sum((x.float().square().sum() for x in smooth), 0.0)
            loss.backward()
        grads = [x.grad for x in inputs if x.requires_grad]
        results.append(made + [x for x in grads if x is not None])
    ours, theirs = results
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == tuple(other.shape)
        assert str(other.dtype) == f"torch.{mine.dtype}"
        np.testing.assert_allclose(
            np.asarray(mine.detach().to("float64")),
            from_torch(other).astype(np.float64),
            rtol=close,
            atol=close,
        )


SLICES: list[Any] = [
    np.s_[30:80:7],
    np.s_[:, 13:50:3],
    np.s_[-20:-3, None],
    np.s_[50],
    np.s_[33:35],
    np.s_[:0],
    np.s_[..., 5],
    np.s_[3:90:40, -5:],
    np.s_[10:5],
    np.s_[[1, 5, 100, 5]],
    np.s_[[1, 50, 100], [2, 3, 66]],
]


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_parts_across_borders_are_read_and_written(three: None, key: Any):
    def change(library: Any, x: Any) -> Any:
        y = x.detach().clone()
        y[key] = 7.5
        y[key] += x.detach()[key]
        return x[key], y

    same(change, A)


def _in_place(library: Any, x: Any) -> Any:
    y = x.detach().clone()
    y += 1
    y *= x.detach()
    y[3:50].add_(2)
    y.T[5] = 1
    y.view(-1)[100:4000] *= 3
    turned = y.t()
    turned.sub_(1)
    y[y > 2] = 0
    y.clamp_(-1, 1)
    return y, turned


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "nothing": (
        lambda L, z, b, a: (z @ b, z.sum(), z.sum(0), L.cat([z, a]), z.reshape(67, 0).T, L.zeros(0, 5000)),
        (NOTHING, B, A),
    ),
    "a single number": (
        lambda L, x, a: (x + a, a.sum() * a, a.mean().reshape(1), x.expand(3000)),
        (np.array(3, np.float32), A),
    ),
    "masks": (lambda L, a, v: (a[a > 0], a[a[:, 0] > 0], v[v > 10], a.masked_fill(a > 0, -1)), (A, V)),
    "where": (lambda L, a: (L.where(a > 0, a, a[0]), L.where(a > 0, a, L.tensor(0.0))), (A,)),
    "einsum": (
        lambda L, a, b, t: (
            L.einsum("ij,jk->ik", a, b),
            L.einsum("bij,bkj->bik", t, t),
            L.einsum("ij,ij->", a, a),
            L.einsum("bij->bj", t),
        ),
        (A, B, T),
    ),
    "in place": (_in_place, (A,)),
    "an embedding": (lambda L, w, i: L.nn.functional.embedding(i, w), (A, INDEX)),
    "picking": (
        lambda L, a, i: (a.gather(1, i), a.gather(0, i[:90, :40]), a.scatter_add(1, i, a[:97, :43]), a.T[i]),
        (A, INDEX),
    ),
    "along the split axis": (
        lambda L, a, v: (
            *(a.cumsum(0), a.softmax(0), a.log_softmax(0), a.logsumexp(0), a.std(0), a.norm(dim=0)),
            *(a.argmax(0), a.amin(0), (a * 0.1 + 1).prod(0), *a.sort(0), *a.topk(5, 0), *v.sort()),
            *(a.max(), a.argmax(), v.argmin(), a.flip(0), a.roll(5, 0), a.tril(3)),
        ),
        (A, V),
    ),
    "shapes": (
        lambda L, a, t, v: (
            *(a.reshape(-1), a.reshape(67, 101), t.reshape(7 * 31, 29), t.flatten(1), v.reshape(5003, 1)),
            *(t.permute(2, 0, 1).reshape(-1), L.stack([a, a], 1), *a.chunk(4), *a.split([1, 66], 1)),
            *(L.nn.functional.pad(a, (1, 2, 3, 4)), a.repeat(2, 3)),
        ),
        (A, T, V),
    ),
    "products": (
        lambda L, a, b, t, v: (a @ b, t @ t.mT, t @ t[0].T, t[0] @ t.mT, a @ a[0], a[:, 0] @ a, v @ v),
        (A, B, T, V),
    ),
    "gradients through several layouts": (
        lambda L, a: (lambda y: (y.unsqueeze(0).expand(3, -1) * y).mean())(
            a.T.reshape(-1)[100:6000:7].cumsum(0)
        ),
        (A,),
    ),
    "dtypes": (
        lambda L, a, i: (
            *(i / 3, i // 3, i % 7, i + 0.5, i == 5, i * a.detach()[:97, :43], -i, i & 3),
            *(a.detach().to(L.float64) + i[0, 0], a.detach().to(L.int32).sum(0), (a.detach() > 0).sum()),
        ),
        (A, INDEX),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_pytorchs_results(three: None, name: str):
    program, arrays = PROGRAMS[name]
    same(program, *arrays, close=2e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parts_of_a_sum_in_half_precision_are_rounded_once(three: None, dtype: str):
    """Two large parts that nearly cancel: rounded before they are added, they would leave next to nothing."""
    a = np.repeat([[10.3] * 4, [-10.3] * 4, [0.01] * 4], [1100, 1100, 800], axis=0)
    x, y = gt.tensor(a).to(dtype), torch.tensor(a).to(getattr(torch, dtype))
    for mine, other in ((x.sum(0), y.sum(0)), (x.sum(), y.sum()), (x.mean(0), y.mean(0))):
        np.testing.assert_allclose(np.asarray(mine.float()), from_torch(other.float()), rtol=0.02)


def test_sharded_tensors_are_saved_and_loaded(three: None, tmp_path: Path):
    gt.save({"a": gt.tensor(A), "parts": [gt.tensor(V), gt.tensor(3.0)]}, tmp_path / "file")
    found = gt.load(tmp_path / "file")
    np.testing.assert_array_equal(found["a"].numpy(), A)
    np.testing.assert_array_equal(found["parts"][0].numpy(), V)


def test_a_sharded_tensor_prints_as_in_pytorch(three: None):
    assert repr(gt.tensor(V)).replace(" ", "") == repr(torch.tensor(V)).replace(" ", "")
    assert str(gt.tensor(A)[50]).replace(" ", "") == str(torch.tensor(A)[50]).replace(" ", "")
