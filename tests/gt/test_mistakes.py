"""Where PyTorch raises, GT raises too: at once, at the user's line, and an error of the same family."""

from typing import Any

import pytest
import torch

import gt

FAMILIES = (IndexError, TypeError, ValueError, RuntimeError)

MISTAKES: list[tuple[Any, str]] = [
    # shapes
    (lambda lib: lib.ones(3) + lib.ones(4), "must match the size of tensor b"),
    (lambda lib: lib.ones(2, 3).maximum(lib.ones(2)), "non-singleton dimension 1"),
    (lambda lib: lib.where(lib.ones(2) > 0, lib.ones(3), 1), "must match"),
    (lambda lib: lib.ones(3).masked_fill(lib.ones(2) > 0, 1), "must match"),
    (lambda lib: lib.ones(3).lerp(lib.ones(2), 0.5), "must match"),
    # dimensions
    (lambda lib: lib.ones(3).sum(1), "Dimension out of range"),
    (lambda lib: lib.ones(3).max(5), "Dimension out of range"),
    (lambda lib: lib.ones(3).argmax(dim=-2), "Dimension out of range"),
    (lambda lib: lib.ones(3).softmax(3), "Dimension out of range"),
    (lambda lib: lib.ones(3).cumsum(1), "Dimension out of range"),
    (lambda lib: lib.ones(3, 3).sum(dim=(0, -2)), "more than once"),
    (lambda lib: lib.ones(3, 3).var(dim=(0, 0)), "more than once"),
    (lambda lib: lib.ones(0).max(), "max|numel"),
    (lambda lib: lib.ones(0).amin(), "numel"),
    (lambda lib: lib.ones(0).argmax(), "numel"),
    (lambda lib: lib.ones(0, 2).max(0), "non-zero size"),
    (lambda lib: lib.ones(2, 3).argmax((0, 1)), "'dim'"),
    (lambda lib: lib.ones(2).cumsum(), "dim"),
    # dtypes
    (lambda lib: lib.arange(3).mean(), "could not infer output dtype"),
    (lambda lib: lib.ones(3).mean(dtype=lib.int64), "could not infer output dtype"),
    (lambda lib: lib.arange(3).std(), "std and var only support floating point"),
    (lambda lib: lib.arange(3).norm(), "Expected a floating point"),
    (lambda lib: lib.arange(3).softmax(0), "not implemented for 'Long'"),
    (lambda lib: lib.full((2,), True) // lib.full((2,), True), "not implemented for 'Bool'"),
    (lambda lib: lib.full((2,), True) % lib.full((2,), True), "not implemented for 'Bool'"),
    (lambda lib: lib.full((2,), True) - lib.full((2,), True), "Subtraction, the `-` operator"),
    (lambda lib: -lib.full((2,), True), "Negation"),
    (lambda lib: +lib.full((2,), True), r"The `\+` operator"),
    (lambda lib: lib.full((2,), True).abs(), "not implemented for 'Bool'"),
    (lambda lib: lib.full((2,), True).argmax(), "argmax"),
    (lambda lib: lib.ones(2) & lib.ones(2), "not implemented for 'Float'"),
    (lambda lib: lib.ones(2) << 1, "not implemented for 'Float'"),
    (lambda lib: ~lib.ones(2), "only implemented on integer and Boolean-type"),
    (lambda lib: lib.arange(3) ** -1, "Integers to negative integer powers"),
    (lambda lib: lib.arange(3).lerp(lib.arange(3), 0.5), "not implemented for 'Long'"),
    (lambda lib: lib.ones(3).lerp(lib.ones(3).double(), 0.5), "for `end`"),
    (lambda lib: lib.ones(2).where(lib.ones(2), 3.0), "where expected condition to be a boolean tensor"),
    (lambda lib: lib.ones(3).masked_fill(lib.ones(3), 2.5), "only supports boolean masks"),
    (lambda lib: lib.allclose(lib.ones(2), lib.ones(2).double()), "Float did not match Double"),
    (lambda lib: lib.arange(3).add(1, alpha=1.5), "alpha must not be a floating point number"),
    (lambda lib: lib.ones(3).add(1, alpha=True), "Boolean alpha"),
    (lambda lib: lib.ones(3, dtype=lib.int64, requires_grad=True), "floating point"),
    (lambda lib: lib.arange(3).normal_(), "not implemented for 'Long'"),
    (lambda lib: lib.randn(2, dtype=lib.int64), "not int64"),
    # arguments
    (lambda lib: lib.ones(3).clamp(), "At least one of 'min' or 'max' must not be None"),
    (lambda lib: lib.ones(3).div(2, rounding_mode="up"), "one of None, 'trunc', or 'floor' but found 'up'"),
    (lambda lib: lib.ones(3).normal_(0, -1), "std >= 0.0"),
    (lambda lib: lib.ones(3).uniform_(2, 1), "from=2 > to=1"),
    (lambda lib: lib.ones(3).bernoulli_(1.5), r"in \[0, 1\], but got p=1.5"),
    (lambda lib: lib.arange(1, 3, -1), "inconsistent with step sign"),
    (lambda lib: lib.arange(1, 3, 0), "step must be nonzero"),
    (lambda lib: lib.linspace(0, 1, -1), "number of steps must be non-negative"),
    (lambda lib: lib.randint(3, 3, (2,)), "'from' to be less than 'to', but got from=3 >= to=3"),
    (lambda lib: lib.randperm(-1), "negative dimension -1"),
    (lambda lib: lib.eye(-1), "n must be greater or equal to 0, got -1"),
    (lambda lib: lib.tensor([[1], [1, 2]]), r"expected sequence of length 1 at dim 1 \(got 2\)"),
    (lambda lib: lib.zeros(-1), "negative"),
    (lambda lib: lib.full((2,), float("nan"), dtype=lib.int64), "convert"),
    (lambda lib: lib.exp(2.0), r"argument 'input' \(position 1\) must be Tensor, not float"),
    (lambda lib: lib.ones(2).maximum(1), "must be Tensor, not int"),
    (lambda lib: lib.ones(2).add("one"), "must be Tensor"),
    (lambda lib: lib.ones(2).atan2(1.0), "must be Tensor, not float"),
    (lambda lib: lib.ones(2) + "one", "unsupported operand"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_a_mistake_raises_pytorchs_error(call: Any, message: str):
    with pytest.raises(FAMILIES) as theirs:
        call(torch)
    family = next(kind for kind in FAMILIES if isinstance(theirs.value, kind))
    with pytest.raises(family, match=message):
        call(gt)
