"""Mistakes in programs are errors at the line that makes them, as on other devices, and say the same."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import gt.torch  # noqa: F401 - registers the device
from gt.errors import WorkerError
from tests.programs import run_python

DEVICE = "tapestry"


def _ones(*size: int) -> torch.Tensor:
    return torch.ones(size, device=DEVICE)


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (
            lambda: _ones(2, 2).softmax(2),
            IndexError,
            r"Dimension out of range \(expected .* \[-2, 1\], but got 2",
        ),
        (lambda: _ones(2, 2).log_softmax(-3), IndexError, "but got -3"),
        (lambda: _ones(2, 2).sort(2), IndexError, "Dimension out of range"),
        (
            lambda: nn.Linear(2, 2).to(DEVICE)(_ones(1, 2).double()),
            RuntimeError,
            "mat1 and mat2 must have the same dtype, but got Double and Float",
        ),
        (lambda: _ones(2, 2) @ _ones(2, 2).double(), RuntimeError, "must have the same dtype"),
        (lambda: _ones(2, 2, 2) @ _ones(2, 2, 2).half(), RuntimeError, "must have the same dtype"),
        (lambda: _ones(2, 2) @ _ones(2).double(), RuntimeError, "must have the same dtype"),
        (lambda: F.conv1d(_ones(1, 1, 3), _ones(1, 1, 1).double()), RuntimeError, "the same"),
        (lambda: _ones(3)[_ones(1)], IndexError, "tensors used as indices must be long, int, byte or bool"),
        (lambda: _ones(3).index_select(0, _ones(1)), RuntimeError, "Expected dtype int32 or int64 for index"),
        (
            lambda: F.cross_entropy(_ones(2, 3), _ones(2).int()),
            RuntimeError,
            "target dtype to be Long or Byte",
        ),
        (lambda: torch.multinomial(_ones(3), 4), RuntimeError, "samples without replacement"),
        (lambda: _ones(3).uniform_(3, -1), RuntimeError, r"uniform_ expects to return a \[from, to\) range"),
        (lambda: _ones(3).cauchy_(0, 0), RuntimeError, "cauchy_ expects sigma > 0.0"),
        (lambda: _ones(3).log_normal_(0, 0), RuntimeError, "log_normal_ expects std > 0.0"),
    ],
)
def test_a_mistake_is_an_error_at_once(
    mistake: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        mistake()
    assert not isinstance(caught.value, WorkerError)


@pytest.mark.parametrize("wrong", [[float("nan"), 1.0], [-1.0, 2.0], [0.0, 0.0]])
def test_invalid_probabilities_are_an_error(wrong: list[float]) -> None:
    drawn = torch.multinomial(torch.tensor(wrong, device=DEVICE), 1)
    with pytest.raises(WorkerError, match=r"(?s)test_mistakes\.py:\d+.*probability|invalid multinomial"):
        drawn.tolist()


REFUSALS = """
import sys, warnings, torch, gt.torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map
warnings.simplefilter("ignore")

def moved(one):
    if isinstance(one, torch.Tensor):
        return one.detach().to("tapestry").requires_grad_(one.requires_grad)
    return torch.device("tapestry") if isinstance(one, torch.device) or one == "cpu" else one

def run(op, given):
    for one in tree_leaves(op(given[0], *given[1], **given[2])):
        one.cpu() if isinstance(one, torch.Tensor) else one

def fails(op, given):
    try:
        run(op, given)
    except Exception:
        return True
    return False

count = 0
for op in op_db:
    for one in op.error_inputs("cpu") if op.error_inputs_func is not None else ():
        given = one.sample_input.input, one.sample_input.args, one.sample_input.kwargs
        try:
            there = tree_map(moved, given)
        except Exception:  # a sparse tensor
            continue
        if fails(op, given):
            count += 1
            if not fails(op, there):
                print(op.name)
print(count, file=sys.stderr)
"""

ALLOWED = {
    *("complex", "aminmax", "kthvalue"),  # `out=` of another dtype, or of the memory of an input
    *("masked_select", "gather", "index_select", "take", "bernoulli", "cat"),  # the same
    "multinomial",  # more categories than 2 ** 24, and `out=` of another dtype
}
"""Ops that PyTorch refuses on the CPU with some arguments, and that give a result on the device."""


@pytest.mark.thorough
def test_the_errors_that_pytorch_lists_are_raised_on_the_device() -> None:
    pytest.importorskip("expecttest", reason="PyTorch's test utilities need it")
    done = run_python("-c", REFUSALS)
    assert int(done.stderr.split()[-1]) > 600
    assert set(done.stdout.split()) <= ALLOWED
