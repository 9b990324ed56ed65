"""Calls of aten ops that index, for tests of their sharding rules."""

from collections.abc import Callable
from typing import Any

import torch

Sample = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]
"""A function, and the tensors that it is called with."""


def floats(*size: int) -> torch.Tensor:
    """Numbers between 0.1 and 0.9."""
    return torch.rand(size, generator=torch.Generator().manual_seed(sum(size))) * 0.8 + 0.1


def integers(high: int, *size: int) -> torch.Tensor:
    """Integers below a number."""
    return torch.randint(0, high, size, generator=torch.Generator().manual_seed(sum(size)))


def _putting(name: str, order: list[int | None], accumulate: bool) -> Callable[..., Any]:
    """An index assignment; `order` says which of the indices is for each axis."""

    def put(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        keys = [None if n is None else rest[n] for n in order]
        return getattr(torch.ops.aten, name)(x, keys, rest[-1], accumulate)

    return put


_places = (integers(5, 6), integers(3, 6))


_bags = (floats(5, 4), integers(5, 6), torch.tensor([0, 2, 3]))


def _bag(name: str, mode: int) -> Callable[..., Any]:
    return lambda *tensors: getattr(torch.ops.aten, name)(*tensors, False, mode)[0]


def _bag_gradient(mode: int) -> Sample:
    bags, sizes = torch.tensor([0, 0, 1, 2, 2, 2]), torch.tensor([2, 1, 3])
    tensors = (floats(3, 4), _bags[1], bags, sizes, torch.ops.aten._embedding_bag(*_bags, False, mode)[3])
    return lambda *given: torch.ops.aten._embedding_bag_dense_backward(*given, 5, False, mode, None), tensors


INDEXING: dict[str, list[Sample]] = {
    "_embedding_bag": [(_bag("_embedding_bag", mode), _bags) for mode in range(3)],
    "_embedding_bag_forward_only": [(_bag("_embedding_bag_forward_only", mode), _bags) for mode in range(3)],
    "_embedding_bag_dense_backward": [_bag_gradient(mode) for mode in range(3)],
    "index_select": [(lambda x, i: x.index_select(1, i), (floats(5, 4), integers(4, 6)))],
    "index.Tensor": [
        (lambda x, i: x[:, i], (floats(5, 4, 3), integers(4, 6))),
        (lambda x, i, j: x[i, :, j], (floats(5, 4, 3), integers(5, 6), integers(3, 6))),
    ],
    **{
        name: [
            (_putting(name, [None, 0], False), (floats(5, 4, 3), torch.tensor([3, 0]), floats(2, 3))),
            (_putting(name, [None, 0], True), (floats(5, 4, 3), integers(4, 6), floats(5, 6, 3))),
            (_putting(name, [0, None, 1], True), (floats(5, 4, 3), *_places, floats(6, 1))),
            (
                _putting(name, [0, 1], True),
                (floats(5, 4, 3), integers(5, 6, 1), integers(4, 6), floats()),
            ),
        ]
        for name in ("index_put", "_index_put_impl", "_unsafe_index_put")
    },
    "index_add": [
        (lambda x, i, s: x.index_add(1, i, s, alpha=2), (floats(5, 4), integers(4, 6), floats(5, 6)))
    ],
    "gather": [(lambda x, i: x.gather(1, i), (floats(5, 4), integers(4, 5, 6)))],
    "scatter.src": [(lambda x, i, s: x.scatter(1, i, s), (floats(5, 4), integers(4, 5, 1), floats(5, 1)))],
    "scatter.value": [(lambda x, i: x.scatter(1, i, 2.0), (floats(5, 4), integers(4, 5, 3)))],
    "scatter_add": [
        (lambda x, i, s: x.scatter_add(1, i, s), (floats(5, 4), integers(4, 5, 3), floats(5, 3)))
    ],
}
