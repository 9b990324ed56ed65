"""The first samples of every op that PyTorch lists, against the CPU; `opinfo.py` runs them all."""

import pytest

from tests.programs import run_python

CHUNKS = 4
"""How many tests the ops are divided into."""

KNOWN = {
    "as_strided.partial_views": "a tensor that moves leaves the rest of its storage behind",
    "as_strided_copy": "workers refuse it: strides could lead beyond a value",
    "sparse.sampled_addmm": "sparse tensors do not travel yet",
    "sparse.mm.reduce": "sparse tensors do not travel yet",
    "to_sparse": "sparse tensors do not travel yet",
    "tensor_split": "it takes its indices from the CPU, on every device",
    "native_batch_norm": "in evaluation, results that only training uses have another size",
    "_native_batch_norm_legit": "in evaluation, results that only training uses have another size",
}
"""Ops with samples that do not agree, and why."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_ops_that_pytorch_lists(chunk: int) -> None:
    """In a process of its own: the samples try kernels with what no program gives them."""
    pytest.importorskip("expecttest", reason="PyTorch's test utilities need it")
    said = run_python("-m", "tests.gt.device.opinfo", f"--chunk={chunk}/{CHUNKS}", "2").stdout
    failed = [
        line for line in said.splitlines() if line.startswith("|") and line.split("|")[1].strip() not in KNOWN
    ]
    assert not failed, "\n".join(failed)
    assert "'right'" in said
