"""PyTorch's own samples of its ops (`op_db`), forward and backward, on the device and on the CPU.

python -m tests.gt.device.opinfo            # all samples of all ops, as a table
python -m tests.gt.device.opinfo 4 add mul  # up to 4 samples of some
"""

import collections
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

import gt.torch  # noqa: F401 - registers the device

DEVICE = "tapestry"

NOT_COMPARED = {
    **dict.fromkeys(
        ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
        "the elements are whatever memory holds",
    ),
    "as_strided.partial_views": "a tensor that moves leaves the rest of its storage behind",
    **dict.fromkeys(
        (
            *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal"),
            *("normal.in_place", "normal.number_mean", "rand_like", "randint", "randint_like", "randn"),
            *("randn_like", "uniform", "nn.functional.dropout", "nn.functional.dropout2d"),
            *(
                "nn.functional.dropout3d",
                "nn.functional.alpha_dropout",
                "nn.functional.feature_alpha_dropout",
            ),
            *("nn.functional.feature_alpha_dropout.with_train", "nn.functional.rrelu", "svd_lowrank"),
            *("pca_lowrank", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
            *("nn.functional.multi_head_attention_forward", "nn.functional.scaled_dot_product_attention"),
        ),
        "random numbers are others on every device",
    ),
}
"""Ops of which only shapes and dtypes are compared, and why."""


def name_of(op: Any) -> str:
    """An op's name, with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def samples(op: Any, most: int | None) -> Iterator[Any]:
    """PyTorch's samples of an op, in float32 where it takes that."""
    dtypes = op.supported_dtypes("cpu")
    if not dtypes:
        return
    dtype = torch.float32 if torch.float32 in dtypes else sorted(dtypes, key=str)[0]
    grad = op.supports_autograd and dtype.is_floating_point
    for n, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)):
        if most is not None and n >= most:
            return
        yield sample


def compare(op: Any, sample: Any) -> None:
    """Raise if a sample gives something else on the device than on the CPU."""
    given = (sample.input, sample.args, sample.kwargs)
    try:
        expected = op(given[0], *given[1], **given[2])
    except Exception:  # noqa: BLE001 - what the CPU refuses is nothing to compare with
        return
    moved = tree_map(_moved, given)
    found = op(moved[0], *moved[1], **moved[2])
    wanted, got = _tensors(expected), _tensors(found)
    if len(wanted) != len(got):
        raise AssertionError(f"{len(got)} tensors instead of {len(wanted)}")
    values = name_of(op) not in NOT_COMPARED
    for a, b in zip(wanted, got, strict=True):
        _assert_close(b, a, values, 1e-4)
    if op.supports_autograd and values:
        _compare_gradients(given, moved, wanted, got)


def _compare_gradients(given: Any, moved: Any, wanted: list[torch.Tensor], got: list[torch.Tensor]) -> None:
    pairs = [
        (a, b)
        for a, b in zip(tree_leaves(given), tree_leaves(moved), strict=True)
        if isinstance(a, torch.Tensor) and a.requires_grad
    ]
    if not pairs or not any(one.requires_grad for one in wanted):
        return
    here = torch.autograd.grad(_total(wanted), [a for a, _ in pairs], allow_unused=True)
    there = torch.autograd.grad(_total(got), [b for _, b in pairs], allow_unused=True)
    for a, b in zip(here, there, strict=True):
        if (a is None) != (b is None):
            raise AssertionError("one device has a gradient, and the other has none")
        if a is not None:
            _assert_close(b, a, True, 1e-3)


def _total(tensors: list[torch.Tensor]) -> torch.Tensor:
    parts = [one.abs().sum() if one.is_complex() else one.sum() for one in tensors if one.requires_grad]
    return torch.stack(parts).sum()


def _moved(one: Any) -> Any:
    if isinstance(one, torch.Tensor):
        return one.detach().to(DEVICE).requires_grad_(one.requires_grad)
    return torch.device(DEVICE) if isinstance(one, torch.device) or one == "cpu" else one


def _tensors(result: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]


def _assert_close(found: torch.Tensor, expected: torch.Tensor, values: bool, tolerance: float) -> None:
    if found.device.type != DEVICE:
        raise AssertionError(f"the result is on {found.device}")
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        raise AssertionError(
            f"{found.dtype}{list(found.shape)} is not {expected.dtype}{list(expected.shape)}"
        )
    if values:
        exact = expected.dtype.itemsize == 1
        torch.testing.assert_close(
            found.detach().cpu(),
            expected.detach(),
            equal_nan=True,
            rtol=0 if exact else tolerance,
            atol=0 if exact else tolerance / 10,
        )


def main() -> None:
    """Print how many ops agree, and those that do not."""
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    part, parts = 0, 1
    if arguments and arguments[0].startswith("--chunk="):
        part, parts = map(int, arguments.pop(0).removeprefix("--chunk=").split("/"))
    most = int(arguments[0]) if arguments else None
    outcomes: collections.Counter[str] = collections.Counter()
    for op in op_db[part::parts]:
        if arguments[1:] and name_of(op) not in arguments[1:]:
            continue
        why = None
        try:
            for sample in samples(op, most):
                compare(op, sample)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the table is for
            why = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}"
        outcomes["right" if why is None else "wrong" if why.startswith("Assertion") else "refused"] += 1
        if why is not None:
            print(f"| {name_of(op)} | {why} |", flush=True)
    print(dict(outcomes))


if __name__ == "__main__":
    main()
