"""Indexing ops for PyTorch."""

from collections.abc import Sequence
from typing import Any

import torch


def _basic(index: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(*entry) if isinstance(entry, list | tuple) else entry for entry in index)


def _by_arrays(dims: Sequence[int], picks: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * (dims[-1] + 1)
    for dim, pick in zip(dims, picks, strict=True):
        key[dim] = pick
    return tuple(key)


def getitem(x: torch.Tensor, index: Sequence[Any]) -> torch.Tensor:
    return x[_basic(index)]


def getitem_grad(g: torch.Tensor, index: Sequence[Any], shape: Sequence[int]) -> torch.Tensor:
    result = g.new_zeros(tuple(shape))
    result[_basic(index)] = g
    return result


def setitem(x: torch.Tensor, y: Any = None, *, index: Sequence[Any], value: float = 0) -> torch.Tensor:
    result = x.clone(memory_format=torch.contiguous_format)
    result[_basic(index)] = value if y is None else y
    return result


def index(x: torch.Tensor, *picks: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    return x[_by_arrays(dims, picks)]


def index_grad(
    g: torch.Tensor, *picks: torch.Tensor, dims: Sequence[int], shape: Sequence[int]
) -> torch.Tensor:
    return index_put(g.new_zeros(tuple(shape)), g, *picks, dims=dims, accumulate=True)


def index_put(
    x: torch.Tensor, *rest: torch.Tensor, dims: Sequence[int], accumulate: bool, value: float | None = None
) -> torch.Tensor:
    y, picks = (rest[0], rest[1:]) if value is None else (torch.tensor(value, dtype=x.dtype), rest)
    key = [None if isinstance(pick, slice) else pick for pick in _by_arrays(dims, picks)]
    return torch.ops.aten.index_put(x, key, y, accumulate)


def gather(x: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
    return x.gather(dim, index.long())


def gather_grad(g: torch.Tensor, index: torch.Tensor, dim: int, shape: Sequence[int]) -> torch.Tensor:
    return g.new_zeros(tuple(shape)).scatter_add_(dim, index.long(), g)


def scatter(
    x: torch.Tensor, index: torch.Tensor, source: Any = None, *, dim: int, value: float = 0
) -> torch.Tensor:
    return x.scatter(dim, index.long(), value if source is None else source)


def scatter_add(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, dim: int) -> torch.Tensor:
    return x.scatter_add(dim, index.long(), source)


def embedding(weight: torch.Tensor, index: torch.Tensor, padding_idx: int) -> torch.Tensor:
    return torch.embedding(weight, index)


def embedding_grad(g: torch.Tensor, index: torch.Tensor, rows: int, padding_idx: int) -> torch.Tensor:
    return torch.ops.aten.embedding_dense_backward(g, index, rows, padding_idx, False)


def argsort(x: torch.Tensor, dim: int, descending: bool) -> torch.Tensor:
    return torch.sort(x, dim=dim, descending=descending, stable=True).indices


def topk(x: torch.Tensor, k: int, dim: int, largest: bool) -> torch.Tensor:
    # torch.topk is faster, but which of several equal elements it returns is not specified.
    return argsort(x, dim, largest).narrow(dim, 0, k) if x.ndim else argsort(x, dim, largest)


def one_hot(x: torch.Tensor, num_classes: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(x, num_classes)
