"""Every op gives the same result for all placements of its inputs, gradients included."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from gt.ops import TABLE
from tests.gt.helpers.spread import Servers
from tests.gt.samples import SAMPLES, Sample, some_of_each_op
from tests.gt.samples.base import assert_same, assert_same_gradients, is_float, to_torch


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    servers = Servers("numpy")
    yield servers
    servers.close()


@pytest.mark.parametrize("sample", some_of_each_op(SAMPLES, 3), ids=str)
@settings(max_examples=3)
@given(workers=st.integers(1, 4), seed=st.integers(0, 1 << 20))
def test_an_op_gives_the_same_for_all_placements_of_its_inputs(
    servers: Servers, sample: Sample, workers: int, seed: int
):
    smooth = sample.smooth and TABLE[sample.op].differentiable
    with servers.use(workers, seed):
        ours = [gt.from_numpy(a, requires_grad=smooth and is_float(a)) for a in sample.arrays]
        theirs = [to_torch(a).requires_grad_(smooth and is_float(a)) for a in sample.arrays]
        out, expected = sample.call(*ours), sample.call(*theirs)
        assert_same(out, expected)
        if expected.requires_grad:
            assert_same_gradients(out, ours, expected, theirs)
