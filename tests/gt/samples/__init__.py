"""Calls of every op in the table, for the tests that compare GT with PyTorch."""

from typing import Any

import pytest

from tests.gt.samples import (
    activations,
    convolution,
    elementwise,
    generated,
    indexing,
    logic,
    losses,
    normalization,
    products,
    reductions,
    shaping,
    training,
)
from tests.gt.samples.base import Sample
from tests.thorough import some, some_of_each

GROUPS = (
    *(generated, elementwise, logic, activations, reductions, shaping, indexing, products),
    *(convolution, normalization, losses, training),
)

SAMPLES: list[Sample] = [sample for group in GROUPS for sample in group.SAMPLES]
"""Ops over tensors. Ops that make a tensor out of nothing, and casts, have tests of their own."""


def some_of_each_op(samples: list[Sample], every: int) -> list[Sample]:
    """One of each op and one in `every` of the others; all of them in `make test-all`."""
    return some_of_each(samples, lambda sample: sample.op, every)


def on_every_system(samples: list[Sample], each_op_on_jax: bool = True) -> list[Any]:
    """Parameters (client, sample): every sample on every engine, and one of each op over real processes.

    What an op computes depends on the engine; that its attributes survive the journey, on the op alone.
    JAX takes longer to compile a sample than all else takes, and shares its functions with NumPy: one of each
    op and a few others run always, the others in `make test-all`. A gradient is made of other ops, so that
    tests of gradients can do with a few samples there.
    """
    once = {sample.op: sample for sample in reversed(samples)}
    chosen = [(engine, sample) for engine in ("pytorch", "numpy") for sample in samples]
    chosen += [("processes", sample) for sample in once.values()]
    on_jax = some_of_each_op(samples, 36) if each_op_on_jax else some(samples, 24)
    chosen += [("jax", sample) for sample in on_jax]
    return [pytest.param(system, sample, id=f"{system}-{sample}") for system, sample in chosen]
