"""The policy: chooses the placement of each new tensor. Users can write their own."""

import math
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from gt.ops import Spec
from gt.ops.dtypes import SIZES
from gt.stream.layouts import Placement, Replicated, Sharded, even, proportional

SHARD_THRESHOLD = 2048
"""Tensors with at least this many elements are split."""

MAX_HOME_EXCESS = 1 << 26
"""If a client's home worker has this many bytes more than the least loaded one, that becomes its home."""


class Cluster(NamedTuple):
    """The state of the workers, as a policy sees it."""

    workers: tuple[str, ...]
    memory: Mapping[str, int]
    """By worker: its memory limit in bytes, if it has one."""
    loads: Mapping[str, int]
    """How many bytes of unsplit tensors each has."""
    home: str
    """The worker with this client's small tensors; empty at the start."""
    capacity: Mapping[str, int] = {}
    """By worker: its memory limit, or else its share of its machine's memory, in bytes."""


class Policy(Protocol):
    """Chooses the placement of tensors."""

    def place(self, spec: Spec, cluster: Cluster) -> Placement:
        """The placement of a tensor that is created or uploaded."""
        ...

    def sizes(self, length: int, workers: tuple[str, ...], memory: Mapping[str, int]) -> tuple[int, ...]:
        """How an axis of this length is split over workers."""
        ...


class ShardingPolicy:
    """Large tensors are split along their first axis; small ones of a client stay together."""

    def __init__(self, shard_threshold: int = SHARD_THRESHOLD) -> None:
        self.shard_threshold = shard_threshold

    def place(self, spec: Spec, cluster: Cluster) -> Placement:
        """Split a large tensor; put a small one on the client's home worker."""
        workers = cluster.workers
        if len(workers) > 1 and math.prod(spec.shape) >= self.shard_threshold:
            axis = self._axis(spec, len(workers))
            if axis is not None:
                return Placement(Sharded(axis, self._parts(spec, axis, cluster)), workers)
        return Placement(Replicated(), (self._home(spec, cluster),))

    def _axis(self, spec: Spec, parts: int) -> int | None:
        """The first axis that is long enough for all; without one, a tensor stays whole."""
        return next((axis for axis, n in enumerate(spec.shape) if n >= parts), None)

    def _parts(self, spec: Spec, axis: int, cluster: Cluster) -> tuple[int, ...]:
        """How a tensor is split: if a part would exceed a worker's memory, in proportion to the workers'
        memory."""
        length, workers = spec.shape[axis], cluster.workers
        sizes = self.sizes(length, workers, cluster.memory)
        each = math.prod(spec.shape) * SIZES[spec.dtype] // max(length, 1)
        rooms = [cluster.capacity.get(worker, 0) for worker in workers]
        if all(rooms) and any(size * each > room for size, room in zip(sizes, rooms, strict=True)):
            return proportional(length, rooms)
        return sizes

    def _home(self, spec: Spec, cluster: Cluster) -> str:
        size = math.prod(spec.shape) * SIZES[spec.dtype]
        room = [
            worker
            for worker in cluster.workers
            if not cluster.capacity.get(worker) or cluster.loads[worker] + size <= cluster.capacity[worker]
        ]
        least = min(room or cluster.workers, key=lambda worker: cluster.loads[worker])
        home = cluster.home
        if (
            home in (room or cluster.workers)
            and cluster.loads[home] <= cluster.loads[least] + MAX_HOME_EXCESS
        ):
            return home
        return least

    def sizes(self, length: int, workers: tuple[str, ...], memory: Mapping[str, int]) -> tuple[int, ...]:
        """Evenly; in proportion to the memory limits of the workers, if all have one and they differ."""
        limits = [memory.get(worker, 0) for worker in workers]
        if all(limits) and len(set(limits)) > 1:
            return proportional(length, limits)
        return even(length, len(workers))
