"""In a compiled graph, run-time numbers are tensors, with the results of Python numbers."""

from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gt.stream.sequences import HotSequence, Step
from gt.worker.compile.graph import Graph, function_of, mapping_of
from gt.worker.engine.base import load_engine
from gt.worker.engine.torch import aten

ENGINE = load_engine("pytorch")
FUNCTIONS = {**ENGINE.functions, **{op: form for op, (_, form) in aten.COMPILED_FORMS.items()}}
OPS: dict[str, tuple[int, tuple[str, ...]]] = {
    **dict.fromkeys(("add", "sub", "mul", "truediv", "gt", "le", "eq", "mod"), (1, ("scalar",))),
    "weighted_sum": (2, ("x_scale", "y_scale")),
    "average_of_squares": (2, ("decay",)),
    "adaptive_step": (3, ("rate", "shrink", "correction", "eps")),
    "aten::addcmul": (3, ("value",)),
    "aten::addcdiv": (3, ("value",)),
    "aten::add.Tensor": (2, ("alpha",)),
    "aten::sub.Tensor": (2, ("alpha",)),
    "aten::lerp.Scalar": (2, ("weight",)),
}
"""For each op that is given numbers: how many tensors it takes, and its numbers."""


def compiled(op: str, tensors: list[torch.Tensor], attrs: dict[str, Any]) -> torch.Tensor:
    """What the graph that is compiled computes."""
    mapping = mapping_of(
        HotSequence([Step(op, tuple(-1 - n for n in range(len(tensors))), attrs)]), ENGINE.functions
    )
    assert len(mapping.numbers) == len(OPS[op][1])
    functions = {op: FUNCTIONS.get(op) or ENGINE.functions[op]}
    numbers = torch.tensor([attrs[name] for _, name in mapping.numbers], dtype=torch.float64)
    graph = Graph(nodes=tuple(mapping.nodes), inputs=(), outputs=(0,), numbers=len(mapping.numbers))
    return function_of(graph, functions)(*tensors, numbers)[0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("op", OPS)
@settings(max_examples=8)
@given(
    number=st.sampled_from([0.999, 0.1, 1.0, 1e-8, 1e-3, 131072.0]),
    shape=st.sampled_from([(), (5,), (2, 3)]),
    first=st.sampled_from([0.0, 0.25, 100.0]),
    seed=st.integers(0, 3),
)
@example(number=0.999, shape=(5,), first=0.0, seed=0)
def test_a_run_time_number_gives_the_result_of_a_constant(
    op: str, dtype: torch.dtype, number: float, shape: tuple[int, ...], first: float, seed: int
):
    count, names = OPS[op]
    number = number if count == 1 else min(number, 10.0)  # PyTorch refuses an alpha that overflows
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.rand(shape, generator=generator).add(0.125).to(dtype) for _ in range(count)]
    tensors[0] = (tensors[0] * first).to(dtype)
    attrs: dict[str, Any] = dict.fromkeys(names, number)
    if op == "adaptive_step":
        attrs |= {"correction": 0.9, "eps": 1e-3}
    attrs |= {"reflected": False} if names == ("scalar",) else {}
    expected, found = ENGINE.run(op, tensors, attrs), compiled(op, tensors, attrs)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    eps = torch.finfo(dtype).eps
    # Eagerly, an op of several steps rounds after each of them.
    scale = max([float(one.abs().max()) * max(number, 1) for one in tensors])
    torch.testing.assert_close(found, expected, rtol=4 * eps, atol=eps * scale * (count > 1), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_an_average_in_half_precision_does_not_stand_still(dtype: torch.dtype):
    """In bfloat16, 0.999 is 1: Adam's average of squares stayed at zero, and its steps exploded."""
    average = other = torch.zeros(3, dtype=dtype)
    gradient = torch.full((3,), 0.5, dtype=dtype)
    for _ in range(100):
        average = ENGINE.run("average_of_squares", [average, gradient], {"decay": 0.999})
        other = compiled("average_of_squares", [other, gradient], {"decay": 0.999})
    assert average[0] > 0.02
    torch.testing.assert_close(other, average, rtol=0.1, atol=0)
