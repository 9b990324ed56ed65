"""Strided views as ops of the op table.

PyTorch describes a view by a size, strides and an offset into its storage. On the server nothing aliases: a
storage is one dense tensor (the *base* of its views), and a view of it is computed by ops. `view_steps`
returns these ops: a reshape of the storage's elements in memory order, a basic index, a permutation, a
reshape and an expansion. The same ops in reverse order write a view's new elements into the storage.

>>> base = Geometry((2, 6), (6, 1), 0)
>>> steps = view_steps(base, Geometry((2, 2, 3), (6, 3, 1), 0))       # x.view(2, 2, 3)
>>> [(step.op, step.attrs) for step in steps]
[('reshape', {'shape': [2, 2, 3]})]
>>> steps = view_steps(base, Geometry((6,), (1,), 6))                 # x[1]
>>> [(step.op, step.attrs) for step in steps]
[('getitem', {'index': [1, [0, 6, 1]]})]
"""

import functools
import itertools
import math
from typing import Any, NamedTuple


class Geometry(NamedTuple):
    """The size, strides and offset of a tensor in its storage, in elements."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.size)


class Step(NamedTuple):
    """One op of a view, and the shape that it is applied to."""

    op: str
    attrs: dict[str, Any]
    shape: tuple[int, ...]


def contiguous_strides(size: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


@functools.lru_cache(65536)
def is_dense(size: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether the elements do not overlap and have no gaps between them, in any order of dimensions."""
    expected = 1
    for step, n in sorted((s, n) for n, s in zip(size, stride, strict=True) if n != 1):
        if step != expected:
            return False
        expected *= n
    return True


@functools.lru_cache(65536)
def memory_order(geometry: Geometry) -> tuple[int, ...]:
    """The dimensions of a dense tensor from the outermost in memory to the innermost."""
    return tuple(
        sorted(range(len(geometry.size)), key=lambda d: (-geometry.stride[d], geometry.size[d] != 1, d))
    )


@functools.lru_cache(65536)
def view_steps(base: Geometry, view: Geometry) -> tuple[Step, ...] | None:
    """The ops that compute a view from the base; None if only `as_strided` can compute it."""
    if view == base:
        return ()
    if not view.numel or not base.numel:
        return None
    order = memory_order(base)
    if view.offset == 0 and sorted(zip(view.stride, view.size, strict=True)) == sorted(
        zip(base.stride, base.size, strict=True)
    ):
        return _permutation(base, view)
    in_memory = tuple(base.size[d] for d in order)
    found = _refine(in_memory, view)
    if found is None:
        return None
    refined, index, dims, pieces = found
    steps = _Steps(base.size)
    steps.add_permute(order)
    steps.add_reshape(refined)
    steps.add_index(index)
    steps.add_permute(dims)
    steps.add_reshape(pieces)
    steps.add_expand(view.size)
    return tuple(steps.steps)


def _permutation(base: Geometry, view: Geometry) -> tuple[Step, ...]:
    """The ops of a view that permutes the base's dimensions."""
    free = list(range(len(base.size)))
    dims = []
    for pair in zip(view.size, view.stride, strict=True):
        dim = next(d for d in free if (base.size[d], base.stride[d]) == pair)
        free.remove(dim)
        dims.append(dim)
    steps = _Steps(base.size)
    steps.add_permute(tuple(dims))
    return tuple(steps.steps)


def _refine(
    shape: tuple[int, ...], view: Geometry
) -> tuple[tuple[int, ...], list[Any], tuple[int, ...], tuple[int, ...]] | None:
    """Split a contiguous shape such that each dimension of the view is made of whole dimensions of it.

    Returns the refined shape, the basic index into it, the order of what the index leaves, and the view's
    size with 1 in place of expanded dimensions.
    """
    if any(s < 0 for s in view.stride):
        return None
    active = sorted(
        (s, n, d) for d, (n, s) in enumerate(zip(view.size, view.stride, strict=True)) if n > 1 and s > 0
    )
    ends, steps = {s * n for s, n, _ in active}, set(contiguous_strides(shape))
    # As few cuts as possible: an op on parts of an axis should still have that axis.
    for optional in (steps, ends | steps):
        cuts = _cuts(math.prod(shape), active, optional)
        found = None if cuts is None else _pieces(cuts, view, active)
        if found is not None:
            return found
    return None


def _pieces(
    cuts: list[int], view: Geometry, active: list[tuple[int, int, int]]
) -> tuple[tuple[int, ...], list[Any], tuple[int, ...], tuple[int, ...]] | None:
    """The result of `_refine` for a refinement with these strides."""
    sizes = [after // cut for cut, after in itertools.pairwise(cuts)]
    starts, rest = [0] * len(sizes), view.offset
    for j in reversed(range(len(sizes))):
        starts[j], rest = divmod(rest, cuts[j])
    pieces: dict[int, list[int]] = {}
    counts: dict[int, int] = {}
    for stride, n, d in active:
        j, made = cuts.index(stride), []
        while n > 1:
            if j == len(sizes) or j in counts:
                return None
            take = sizes[j] if n % sizes[j] == 0 else n
            if take > sizes[j] or starts[j] + take > sizes[j] or (take < sizes[j] and take != n):
                return None
            counts[j] = take
            made.append(j)
            n //= take
            j += 1
        pieces[d] = made[::-1]
    if any(start >= n for start, n in zip(starts, sizes, strict=True)):
        return None
    index: list[Any] = []
    position: dict[int, int] = {}
    for j in reversed(range(len(sizes))):
        if j in counts:
            position[j] = len(position)
            index.append([starts[j], starts[j] + counts[j], 1])
        else:
            index.append(starts[j])
    dims = tuple(position[j] for d in sorted(pieces) for j in pieces[d])
    kept = tuple(1 if s == 0 else n for n, s in zip(view.size, view.stride, strict=True))
    return tuple(reversed(sizes)), index, dims, kept


def _cuts(total: int, active: list[tuple[int, int, int]], optional: set[int]) -> list[int] | None:
    """The strides of a refinement of a contiguous shape that has the view's strides among its own, and of the
    optional ones those that fit."""
    cuts = sorted({1, total} | {s for s, _, _ in active})
    if any(after % cut for cut, after in itertools.pairwise(cuts)):
        return None
    for one in sorted(optional):
        if one in cuts or one > total:
            continue
        trial = sorted([*cuts, one])
        if not any(after % cut for cut, after in itertools.pairwise(trial)):
            cuts = trial
    return cuts


class _Steps:
    """Collects ops, except those without effect."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.steps: list[Step] = []

    def _add(self, op: str, attrs: dict[str, Any], result: tuple[int, ...]) -> None:
        self.steps.append(Step(op, attrs, self.shape))
        self.shape = result

    def add_permute(self, dims: tuple[int, ...]) -> None:
        if dims == tuple(range(len(dims))):
            return
        result = tuple(self.shape[d] for d in dims)
        if [d for d in dims if self.shape[d] != 1] == [d for d in range(len(dims)) if self.shape[d] != 1]:
            self.add_reshape(result)
            return
        swapped = [d for d in range(len(dims)) if dims[d] != d]
        if len(swapped) == 2:
            self._add("transpose", {"dim0": swapped[0], "dim1": swapped[1]}, result)
        else:
            self._add("permute", {"dims": list(dims)}, result)

    def add_reshape(self, shape: tuple[int, ...]) -> None:
        if shape != self.shape:
            self._add("reshape", {"shape": list(shape)}, shape)

    def add_index(self, index: list[Any]) -> None:
        whole = all(entry == [0, n, 1] for entry, n in zip(index, self.shape, strict=True))
        if not whole:
            kept = tuple(entry[1] - entry[0] for entry in index if not isinstance(entry, int))
            self._add("getitem", {"index": index}, kept)

    def add_expand(self, size: tuple[int, ...]) -> None:
        if size != self.shape:
            self._add("expand", {"shape": list(size)}, size)
