"""Long random programs give PyTorch's numbers, for random placements of their tensors, gradients included."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from tests.gt.helpers.spread import Servers

Pair = tuple[Any, Any]
"""The same tensor, GT's and PyTorch's."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    servers = Servers("pytorch")
    yield servers
    servers.close()


class Program:
    """Tensors of both libraries, and random steps that are done to both."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.leaves = [self._leaf() for _ in range(4)]
        self.tensors: list[Pair] = list(self.leaves)
        self.steps: list[str] = []

    def _leaf(self) -> Pair:
        shape = [self.random.randint(1, 6) for _ in range(self.random.randint(1, 3))]
        array = np.random.default_rng(self.random.randint(0, 999)).uniform(-1, 1, shape)
        return gt.from_numpy(array, requires_grad=True), torch.from_numpy(array).requires_grad_()

    def _some(self, condition: Callable[[Any], bool] = lambda _: True) -> Pair | None:
        found = [pair for pair in self.tensors if condition(pair[1])]
        return self.random.choice(found) if found else None

    def step(self) -> None:
        """Do one thing to both, if there is something it can be done to."""
        kind = self.random.choice(list(STEPS))
        made = STEPS[kind](self)
        if made is not None and 0 < made[1].numel() < 5000:
            self.tensors.append(made)
            self.steps.append(f"{kind} -> {list(made[1].shape)}")
            if len(self.tensors) > 12:
                self.tensors.pop(self.random.randrange(len(self.tensors)))


def _both(pair: Pair | None, call: Callable[[Any], Any]) -> Pair | None:
    return None if pair is None else (call(pair[0]), call(pair[1]))


def _unary(p: Program) -> Pair | None:
    name = p.random.choice(["tanh", "sigmoid", "relu", "neg", "square", "exp", "sin", "abs"])
    return _both(p._some(), lambda x: getattr(x.clamp(-3, 3), name)())


def _binary(p: Program) -> Pair | None:
    first = p._some()
    assert first is not None

    def fits(x: Any) -> bool:
        try:
            torch.broadcast_shapes(x.shape, first[1].shape)
        except RuntimeError:
            return False
        return True

    second = p._some(fits)
    if second is None:
        return None
    op = p.random.choice([lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b])
    return op(first[0], second[0]), op(first[1], second[1])


def _matmul(p: Program) -> Pair | None:
    first = p._some(lambda x: x.ndim >= 2)
    if first is None:
        return None
    second = p._some(lambda x: x.ndim == 2 and x.shape[0] == first[1].shape[-1])
    if second is None:
        return _both(first, lambda x: x @ x.mT)
    return first[0] @ second[0], first[1] @ second[1]


def _reduce(p: Program) -> Pair | None:
    name, keep = p.random.choice(["sum", "mean", "amax", "logsumexp"]), p.random.random() < 0.5
    pair = p._some(lambda x: x.ndim >= 1)
    if pair is None:
        return None
    dim = p.random.randrange(pair[1].ndim)
    return _both(pair, lambda x: getattr(x, name)(dim, keepdim=keep))


def _reshape(p: Program) -> Pair | None:
    pair = p._some(lambda x: x.numel() > 1)
    if pair is None:
        return None
    n = pair[1].numel()
    divisor = p.random.choice([d for d in range(1, n + 1) if n % d == 0])
    shape = p.random.choice([(n,), (divisor, n // divisor), (1, divisor, -1), (divisor, -1, 1)])
    return _both(pair, lambda x: x.reshape(shape))


def _index(p: Program) -> Pair | None:
    pair = p._some(lambda x: x.ndim >= 1 and x.shape[0] > 1)
    if pair is None:
        return None
    n = pair[1].shape[0]
    start, step = p.random.randrange(n), p.random.randint(1, 2)
    key: Any = p.random.choice([start, slice(start, None, step), slice(0, start + 1), [0, n - 1, start]])
    return _both(pair, lambda x: x[key])


def _turn(p: Program) -> Pair | None:
    pair = p._some(lambda x: x.ndim >= 2)
    if pair is None:
        return None
    i, j = p.random.sample(range(pair[1].ndim), 2)
    return _both(pair, lambda x: x.transpose(i, j))


def _join(p: Program) -> Pair | None:
    first = p._some(lambda x: x.ndim >= 1)
    if first is None:
        return None
    second = p._some(lambda x: x.shape == first[1].shape)
    assert second is not None
    dim = p.random.randrange(first[1].ndim)
    name = p.random.choice(["cat", "stack"])
    return getattr(gt, name)([first[0], second[0]], dim), getattr(torch, name)([first[1], second[1]], dim)


def _softmax(p: Program) -> Pair | None:
    pair = p._some(lambda x: x.ndim >= 1)
    if pair is None:
        return None
    dim = p.random.randrange(pair[1].ndim)
    return _both(pair, lambda x: p.random.choice([x.softmax(dim)]) * 2)


def _segment(p: Program) -> Pair | None:
    pair = p._some(lambda x: x.ndim >= 1)
    return _both(pair, lambda x: x.unsqueeze(0).expand(3, *x.shape))


STEPS: dict[str, Callable[[Program], Pair | None]] = {
    "unary": _unary,
    "binary": _binary,
    "matmul": _matmul,
    "reduce": _reduce,
    "reshape": _reshape,
    "index": _index,
    "turn": _turn,
    "join": _join,
    "softmax": _softmax,
    "segment": _segment,
}


@settings(max_examples=25)
@given(workers=st.integers(1, 4), seed=st.integers(0, 1 << 30))
def test_a_random_program_gives_the_same(servers: Servers, workers: int, seed: int):
    with servers.use(workers, seed):
        program = Program(seed)
        for _ in range(30):
            program.step()
        loss: list[Any] = [
            sum((x.tanh().mean() for x in side), 0.0) for side in zip(*program.tensors, strict=True)
        ]
        loss[0].backward()
        loss[1].backward()
        for mine, other in program.tensors:
            np.testing.assert_allclose(
                np.asarray(mine.detach()),
                other.detach().numpy(),
                rtol=1e-6,
                atol=1e-8,
                err_msg=str(program.steps),
            )
        for mine, other in program.leaves:
            if other.grad is not None:
                np.testing.assert_allclose(
                    np.asarray(mine.grad),
                    other.grad.numpy(),
                    rtol=1e-5,
                    atol=1e-8,
                    err_msg=str(program.steps),
                )
