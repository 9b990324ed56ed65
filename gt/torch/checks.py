"""Checks of arguments that PyTorch's kernels make and its meta device does not: at the user's line."""

from collections.abc import Callable
from typing import Any

import torch

_INDEX_DTYPES = (torch.int64, torch.int32, torch.uint8, torch.bool)


def check(name: str, given: dict[str, Any]) -> None:
    """Raise PyTorch's error for an op that does not take these arguments."""
    found = _CHECKS.get(name)
    if found is not None:
        found(given)


def _same_dtype(first: str, second: str) -> Callable[[dict[str, Any]], None]:
    def run(given: dict[str, Any]) -> None:
        a, b = given[first].dtype, given[second].dtype
        if a != b:
            raise RuntimeError(f"{first} and {second} must have the same dtype, but got {a} and {b}")

    return run


def _dim_in_range(given: dict[str, Any]) -> None:
    rank, dim = max(given["self"].dim(), 1), given["dim"]
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
        )


def _integer_index(given: dict[str, Any]) -> None:
    if given["index"].dtype not in _INDEX_DTYPES[:2]:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")


def _integer_indices(given: dict[str, Any]) -> None:
    if any(one is not None and one.dtype not in _INDEX_DTYPES for one in given["indices"]):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def _class_target(given: dict[str, Any]) -> None:
    if given["target"].dtype not in (torch.int64, torch.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {given['target'].dtype}")


def _enough_to_draw(given: dict[str, Any]) -> None:
    if not given["replacement"] and given["self"].dim() and given["num_samples"] > given["self"].shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")


_CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    **{f"aten::{name}": _same_dtype("self", "mat2") for name in ("mm", "bmm")},
    **{f"aten::{name}": _same_dtype("batch1", "batch2") for name in ("baddbmm", "addbmm")},
    "aten::addmm": _same_dtype("mat1", "mat2"),
    "aten::mv": _same_dtype("self", "vec"),
    "aten::addmv": _same_dtype("mat", "vec"),
    "aten::convolution": _same_dtype("input", "weight"),
    **{f"aten::{name}": _dim_in_range for name in ("_softmax", "_log_softmax", "sort", "sort.stable")},
    "aten::index_select": _integer_index,
    "aten::index.Tensor": _integer_indices,
    **{f"aten::{name}": _class_target for name in ("nll_loss_forward", "nll_loss2d_forward")},
    "aten::multinomial": _enough_to_draw,
}
"""By the name of the overload."""
