"""Every op gives the same, however its inputs lie over workers, gradients included."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gt
from gt.ops import TABLE
from tests.samples import SAMPLES, Sample
from tests.samples.base import BFLOAT16, assert_same, from_torch, to_torch
from tests.spread import Servers


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    servers = Servers("numpy")
    yield servers
    servers.close()


def is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype == BFLOAT16


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@settings(max_examples=3)
@given(workers=st.integers(1, 4), seed=st.integers(0, 1 << 20))
def test_an_op_gives_the_same_however_its_inputs_lie(
    servers: Servers, sample: Sample, workers: int, seed: int
):
    smooth = sample.smooth and TABLE[sample.op].differentiable
    with servers.use(workers, seed):
        ours = [gt.from_numpy(a, requires_grad=smooth and is_float(a)) for a in sample.arrays]
        theirs = [to_torch(a).requires_grad_(smooth and is_float(a)) for a in sample.arrays]
        out, expected = sample.call(*ours), sample.call(*theirs)
        assert_same(out, expected)
        if not expected.requires_grad:
            return
        weights = np.linspace(-1, 1, out.numel()).reshape(out.shape).astype(np.float32)
        out.backward(gt.from_numpy(weights).to(out.dtype))
        expected.backward(torch.from_numpy(weights).to(expected.dtype))
        for mine, other in zip(ours, theirs, strict=True):
            if other.grad is None:
                assert mine.grad is None
                continue
            assert mine.grad is not None
            close = {"float16": 4e-3, "bfloat16": 4e-2}.get(mine.dtype, 1e-5)
            np.testing.assert_allclose(np.asarray(mine.grad), from_torch(other.grad), rtol=close, atol=close)
