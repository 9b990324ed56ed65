"""Changes of layout: the instructions that bring a tensor from one placement to another, and that read it."""

import itertools

from gt.dispatcher.sharding.planning import nbytes
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import Spec
from gt.ops.sharding.split import Shard
from gt.stream.instructions import Exchange, GetData, Part, Placed, ReduceOp, ShardOp
from gt.stream.layouts import Partial, Placement, Replicated, Sharded, even

MIN_READ_IN_PARTS_BYTES = 1 << 16
"""From this size on, partial tensors are reduced in parts, one on each worker, before they are read."""

next_exchange = itertools.count().__next__
"""The number of the next exchange. No two have the same."""


def relayout(
    tensor: int, result: int, spec: Spec, have: Placement, wanted: Placement, epoch: int
) -> tuple[str, Placed]:
    """The instruction that makes `result`, a copy of `tensor` with another placement, and its name."""
    if have.whole and isinstance(wanted.layout, Sharded) and set(wanted.workers) <= set(have.workers):
        return "ShardOp", _slices(tensor, result, wanted)
    number, shape_and_dtype = next_exchange(), (tuple(spec.shape), spec.dtype)
    if isinstance(have.layout, Partial):
        exchange = ReduceOp(tensor, result, number, shape_and_dtype, have, wanted, epoch)
    else:
        kind = _exchange_kind(have, wanted)
        exchange = Exchange(kind, number, tensor, result, *shape_and_dtype, have, wanted, epoch)
    workers = tuple(dict.fromkeys((*have.workers, *wanted.workers)))
    return exchange.kind, Placed(workers, (exchange,) * len(workers))


def _exchange_kind(have: Placement, wanted: Placement) -> str:
    if have.workers != wanted.workers or have.whole:
        return "Move"
    return "AllGather" if wanted.whole else "AllToAll"


def _slices(tensor: int, result: int, wanted: Placement) -> Placed:
    layout, workers = wanted.layout, wanted.workers
    assert isinstance(layout, Sharded)
    each = tuple(
        ShardOp(tensor, len(workers), layout.axis, shard.start, shard.start + shard.size, result)
        for shard in shards_of(layout.sizes)
    )
    return Placed(workers, each)


def shards_of(sizes: tuple[int, ...]) -> tuple[Shard, ...]:
    """The shards of an axis that is divided into parts of these sizes."""
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return tuple(
        Shard(index, start, size, start, size)
        for index, (start, size) in enumerate(zip(starts, sizes, strict=True))
    )


def placement_to_read(handle: TensorHandle) -> Placement:
    """The placement in which a partial tensor is read: a large one is reduced in parts, by all workers."""
    workers, shape = handle.placement.workers, handle.spec.shape
    axis = next((axis for axis, n in enumerate(shape) if n >= len(workers)), None)
    if axis is None or nbytes(handle.spec) < MIN_READ_IN_PARTS_BYTES:
        return Placement(Replicated(), workers[:1])
    return Placement(Sharded(axis, even(shape[axis], len(workers))), workers)


def reads(request: int, tensor: int, shape: tuple[int, ...], have: Placement) -> Placed:
    """The instructions that read a tensor: each worker sends its part."""
    layout = have.layout
    if not isinstance(layout, Sharded) or not shape[layout.axis]:
        return Placed(have.workers[:1], (GetData(request, tensor),))
    used = [index for index, n in enumerate(layout.sizes) if n]
    boxes = [have.box(index, shape) for index in used]
    each = tuple(GetData(request, tensor, Part(box.start, box.shape, shape, len(used))) for box in boxes)
    return Placed(tuple(have.workers[index] for index in used), each)
