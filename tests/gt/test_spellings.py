"""GT accepts every spelling of a call that PyTorch accepts, with the same result."""

from typing import Any

import numpy as np
import pytest
import torch

import gt
from gt.ops import TABLE
from gt.ops.dtypes import DType
from tests.gt.helpers.spellings import Call, names_in, spellings

NOT_CALLS = {
    *("backward", "cuda", "grad", "is_grad_enabled", "item", "manual_seed", "retain_grad", "save"),
    *("set_grad_enabled", "device"),
}
"""Names that are not functions of tensors, or that depend on the library."""

NOT_HERE = {
    "randint_like": "high=bool[]: GT takes bounds that are numbers, and no tensors",
    "repeat_interleave": "repeats alone: GT takes a tensor and how often to repeat it",
    "result_type": "scalar=: GT has one name for either operand, be it a tensor or a number",
    "rsub": "alpha by position: an old way to write it",
    "subtract": "alpha by position: an old way to write it",
    "subtract_": "alpha by position: an old way to write it",
    "to": "to(True): PyTorch takes a number for a dtype's",
    "view": "dtype=: GT does not reinterpret bytes",
}
"""Names with calls that PyTorch accepts and GT refuses, and which."""

RANDOM = {
    *("bernoulli", "bernoulli_", "empty", "empty_like", "multinomial", "new_empty", "normal", "normal_"),
    *("rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "uniform_"),
}
"""Functions whose values differ from call to call."""


def is_elsewhere(call: Call) -> bool:
    """Whether this is a call that NOT_HERE is about."""
    if call.method and "x2" in call.kwargs:
        return True  # a method's other operand: see `methods_with_numpy_names`
    arguments = [*call.args[int(call.method) :], *call.kwargs.values()]
    tensors = [one for one in arguments if isinstance(one, np.ndarray)]
    return {
        "randint_like": any(one.ndim == 0 for one in tensors),
        "repeat_interleave": not call.method and len(call.args) + len(call.kwargs) == 1,
        "result_type": not {"scalar", "scalar1", "scalar2"}.isdisjoint(call.kwargs)
        or (bool(call.args) and "tensor" in call.kwargs),
        "rsub": len(call.args) > 2,
        "subtract": len(call.args) > 2,
        "subtract_": len(call.args) > 2,
        "to": any(isinstance(one, bool) for one in call.args[1:2]),
        "view": "dtype" in call.kwargs,
    }.get(call.name, False)


def described(result: Any, values: bool) -> Any:
    """All of a result that both libraries can be compared by."""
    if isinstance(result, gt.Tensor | torch.Tensor):
        shown = result.detach().numpy() if values else None
        return tuple(result.shape), str(result.dtype).rpartition(".")[2], result.requires_grad, shown
    if isinstance(result, tuple | list):
        return [described(one, values) for one in result]
    return str(result).rpartition(".")[2] if isinstance(result, torch.dtype | DType) else result


def check(name: str, method: bool) -> None:
    calls = [call for call in spellings(name, method) if not is_elsewhere(call)]
    for call in calls:
        expected = call.on(torch)
        try:
            result = call.on(gt)
        except Exception as error:
            raise AssertionError(f"PyTorch accepts {call}, and GT does not: {error}") from error
        mine, theirs = (described(one, name not in RANDOM) for one in (result, expected))
        try:
            np.testing.assert_equal(_rounded(mine), _rounded(theirs))
        except AssertionError as error:
            raise AssertionError(f"{call} is another thing for PyTorch: {error}") from None


def _rounded(one: Any) -> Any:
    if isinstance(one, np.ndarray) and one.dtype.kind == "f":
        return np.round(one.astype("float64"), 4) + 0.0
    return type(one)([_rounded(part) for part in one]) if isinstance(one, tuple | list) else one


@pytest.mark.parametrize("name", [name for name in names_in(gt) if name not in NOT_CALLS])
def test_a_function_takes_the_arguments_of_pytorchs(name: str):
    check(name, method=False)


@pytest.mark.parametrize("name", [name for name in names_in(gt.Tensor) if name not in NOT_CALLS])
def test_a_method_takes_the_arguments_of_pytorchs(name: str):
    check(name, method=True)


@pytest.mark.parametrize("row", [row.name for row in TABLE.values() if row.kind == "ReduceOp"])
def test_reductions_take_numpys_names(row: str):
    """So the tests above are not vacuous: for each row, PyTorch accepts these names."""
    for method, library in ((False, gt), (True, gt.Tensor)):
        builtin = type(getattr(torch, row)) is type(torch.sum)  # PyTorch's Python functions take no others
        if hasattr(library, row) and builtin:
            calls = spellings(row, method)
            assert any("axis" in call.kwargs for call in calls), row
            if any("keepdim" in call.kwargs for call in calls):
                assert any({"axis", "keepdims"} <= call.kwargs.keys() for call in calls), row


@pytest.mark.parametrize("row", [row.name for row in TABLE.values() if row.kind == "CreateTensor"])
def test_factories_take_all_their_arguments_by_name(row: str):
    if hasattr(gt, row):
        assert any(not call.args for call in spellings(row, method=False)), row


def test_a_dimension_under_two_names_is_refused():
    x: Any = gt.ones(2, 3)  # no type checker knows NumPy's names: PyTorch's own declarations lack them, too
    with pytest.raises(TypeError, match=r"sum\(\) got 'dim' twice: as 'dim' and as 'axis'"):
        x.sum(dim=0, axis=0)
    with pytest.raises(TypeError, match="'dim'"):
        x.sum(0, axis=0)
    with pytest.raises(TypeError, match="given twice"):
        gt.zeros(2, size=(2,))
    with pytest.raises(TypeError, match="keepdimensions"):
        x.sum(keepdimensions=True)
