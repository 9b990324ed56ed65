"""The first samples of every op that PyTorch lists, against the CPU; `tools/torch_ops.py` runs them all."""

import re

import pytest

from tests.programs import run_python
from tools.torch_ops import FILE, listed

PARTS = 2
"""How many tests the ops are divided into."""


@pytest.mark.parametrize("part", range(PARTS))
def test_ops_that_pytorch_lists(part: int) -> None:
    """In processes of their own: the samples try kernels with what no program gives them."""
    pytest.importorskip("expecttest", reason="PyTorch's test utilities need it")
    arguments = ("--processes", "1", "--part", f"{part}/{PARTS}", "--most", "1")
    said = run_python("-m", "tools.torch_ops", *arguments).stdout
    refused = re.findall(r"^refused: (\S+) .*", said, re.MULTILINE)
    assert set(refused) <= set(REFUSED), said
    found = re.search(r"^(\d+) right, \d+ refused, 0 wrong$", said, re.MULTILINE)
    assert found is not None, said
    assert int(found[1]) > 150


REFUSED = {"to_sparse", "sparse.sampled_addmm", "sparse.mm.reduce"}
"""Ops of sparse tensors, which the device does not have."""


def test_the_page_lists_the_ops_that_pytorch_lists_and_none_is_wrong() -> None:
    program = """
from torch.testing._internal.common_methods_invocations import op_db
from tools.torch_samples import name_of
print(*map(name_of, op_db), sep="\\n")
"""
    pytest.importorskip("expecttest", reason="PyTorch's test utilities need it")
    text = FILE.read_text()
    assert listed() == run_python("-c", program).stdout.splitlines(), "run python -m tools.torch_ops"
    assert "| wrong |" not in text
    share = re.search(r"([\d.]+) % of the ops are right", text)
    assert share is not None
    assert float(share[1]) >= 90
    assert set(re.findall(r"^\| `(\S+)` \| refused \|", text, re.MULTILINE)) == REFUSED
