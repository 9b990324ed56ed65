"""Every op of the table, with each input in every layout, over one to four workers; none is left out.

`test_sharded_ops.py` chooses layouts at random; this file enumerates them.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.ops import TABLE, Spec, dtypes
from gt.stream.layouts import Layout, Partial, Placement, Replicated, Sharded, even
from tests.gt.helpers.spread import AnyLayout, Servers
from tests.gt.samples import SAMPLES, Sample
from tests.gt.samples.base import assert_same, from_torch, to_torch
from tests.thorough import THOROUGH

WORKERS = (1, 2, 3, 4)
MANY = 60 if THOROUGH else 12
"""Of an op with more combinations of layouts, each layout of each input is taken, and not all pairs."""

CREATION: dict[str, Callable[[], gt.Tensor]] = {
    "arange": lambda: gt.arange(3, 17, 2),
    "bernoulli": lambda: gt.bernoulli(gt.full((5, 7), 0.5)),
    "eye": lambda: gt.eye(5, 7),
    "full": lambda: gt.full((5, 7), 2.5),
    "linspace": lambda: gt.linspace(0, 1, 11),
    "rand": lambda: gt.rand(5, 7),
    "randint": lambda: gt.randint(0, 9, (5, 7)),
    "randn": lambda: gt.randn(5, 7),
    "randperm": lambda: gt.randperm(11),
}
INTERNAL = {"put_along": "take_along"}
"""Ops that only the gradient of another uses."""


def layouts(spec: Spec, workers: int) -> list[Layout]:
    """Every layout that a tensor can have: in equal parts, or unequal, the first or last of them empty."""
    found: list[Layout] = [Replicated()]
    if workers == 1:
        return found
    if dtypes.is_float(spec.dtype):
        found.append(Partial("sum"))
    for axis, n in enumerate(spec.shape):
        equal, rest = even(n, workers), even(n, workers - 1)
        found += [Sharded(axis, sizes) for sizes in {equal, (0, *rest), (*rest, 0), rest[::-1] + (0,)}]
    return found


class InTurn(AnyLayout):
    """A policy that gives new tensors the layouts in a list, and then whatever follows."""

    def __init__(self) -> None:
        super().__init__()
        self.layouts: list[Layout] = []

    def place(self, spec: Spec, cluster: Any) -> Placement:
        if self.layouts:
            return Placement(self.layouts.pop(0), cluster.workers)
        return super().place(spec, cluster)


class EveryLayout(Servers):
    """Servers whose tensors have given placements."""

    def __init__(self) -> None:
        super().__init__("numpy")
        self.policy = self.in_turn = InTurn()


@pytest.fixture(scope="module")
def servers() -> Iterator[EveryLayout]:
    servers = EveryLayout()
    yield servers
    servers.close()


def chosen() -> Mapping[str, Sample]:
    """Of each op, the sample with the most elements, if possible one with a gradient."""
    best: dict[str, Sample] = {}

    def worth(sample: Sample) -> tuple[bool, bool, int]:
        sizes = [array.size for array in sample.arrays]
        return sample.smooth, min(sizes) > 0, sum(sizes) if sum(sizes) < 2000 else 0

    for sample in SAMPLES:
        if sample.op not in best or worth(sample) > worth(best[sample.op]):
            best[sample.op] = sample
    return best


CHOSEN = chosen()


def test_no_op_is_left_out():
    assert CHOSEN.keys() | CREATION.keys() | INTERNAL.keys() == set(TABLE)
    assert set(INTERNAL.values()) <= CHOSEN.keys()


def combinations(sample: Sample, workers: int) -> Iterator[list[Layout]]:
    """All of them; if those are too many, each layout of each input, and the others' differ every time."""
    every = [layouts(Spec(array.shape, array.dtype.name), workers) for array in sample.arrays]
    if math.prod(map(len, every)) <= MANY:
        yield from map(list, itertools.product(*every))
        return
    for own, of_one in enumerate(every):
        for turn, layout in enumerate(of_one):
            yield [
                layout if number == own else others[(turn * 7 + number) % len(others)]
                for number, others in enumerate(every)
            ]


def numbers_of_workers(op: str) -> Sequence[int]:
    """Over how many workers an op is tested: another number for each, in `make test` only one."""
    return WORKERS if THOROUGH else [2 + sorted(CHOSEN).index(op) % 3]


def is_float(array: np.ndarray) -> bool:
    return dtypes.is_float(array.dtype.name)


@pytest.mark.parametrize("op", sorted(CHOSEN))
def test_an_op_on_every_layout_of_each_input(servers: EveryLayout, op: str):
    sample = CHOSEN[op]
    smooth = sample.smooth and TABLE[op].differentiable
    theirs = [to_torch(a).requires_grad_(smooth and is_float(a)) for a in sample.arrays]
    expected = sample.call(*theirs)
    weights = np.linspace(-1, 1, expected.numel()).reshape(expected.shape).astype(np.float32)
    if expected.requires_grad:
        expected.backward(torch.from_numpy(weights).to(expected.dtype))
    for workers in numbers_of_workers(op):
        for number, chosen in enumerate(combinations(sample, workers)):
            with servers.use(workers, number):
                servers.in_turn.layouts = list(chosen)
                ours = [gt.from_numpy(a, requires_grad=smooth and is_float(a)) for a in sample.arrays]
                ours[0]._value.client.flush()
                assert servers.in_turn.layouts == [] or workers == 1, "all placements are used"
                try:
                    _compare(sample, ours, theirs, expected, weights)
                except AssertionError as error:
                    raise AssertionError(
                        f"{sample} over {workers}, {list(map(str, chosen))}: {error}"
                    ) from None


def _compare(sample: Sample, ours: list[Any], theirs: list[Any], expected: Any, weights: np.ndarray) -> None:
    out = sample.call(*ours)
    assert_same(out, expected)
    if not expected.requires_grad:
        return
    out.backward(gt.from_numpy(weights).to(out.dtype))
    for mine, other in zip(ours, theirs, strict=True):
        if other.grad is not None:
            assert mine.grad is not None
            close = {"float16": 4e-3, "bfloat16": 4e-2}.get(mine.dtype, 1e-5)
            np.testing.assert_allclose(np.asarray(mine.grad), from_torch(other.grad), rtol=close, atol=close)


@pytest.mark.parametrize("op", sorted(CREATION))
def test_ops_without_inputs_give_the_same_in_every_layout(servers: EveryLayout, op: str):
    def make(workers: int, chosen: list[Layout]) -> np.ndarray:
        with servers.use(workers, 0):
            gt.manual_seed(5)
            servers.in_turn.layouts = list(chosen)
            return CREATION[op]().numpy()

    whole = make(1, [])
    for workers in WORKERS[1:]:
        for layout in layouts(Spec(whole.shape, whole.dtype.name), workers):
            np.testing.assert_array_equal(make(workers, [layout]), whole, err_msg=f"{layout} of {workers}")
