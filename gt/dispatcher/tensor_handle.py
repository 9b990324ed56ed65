"""Tensor handles: the physical locations of a client's tensors."""

from collections.abc import Sequence
from typing import NamedTuple

from gt.ops import Spec
from gt.stream.instructions import Op
from gt.stream.layouts import Partial, Placement, Replicated, Sharded


class ShardInfo(NamedTuple):
    """Which part of a tensor a shard is: the axis, the number of shards, and its index."""

    axis: int
    num_shards: int
    shard_index: int


class TensorHandle:
    """The location of a tensor: on one worker, or distributed over several.

    The dispatcher maps every `client:tensor` to a handle. The tensors of a client that uses one worker share
    one handle, which has only the worker's name, so that tracking a tensor costs one dictionary entry. With
    several workers each tensor has its own: `placement` is where it is kept, and `versions`
    has all placements in which copies exist, that one included, each with the copy's id on the workers.
    """

    __slots__ = ("derived", "key", "loads", "origin", "placement", "results", "spec", "versions")

    def __init__(
        self, worker: str = "", spec: Spec | None = None, placement: Placement | None = None, number: int = -1
    ) -> None:
        self.spec = spec or Spec((), "float32")
        self.placement = placement or Placement(Replicated(), (worker,))
        self.versions: dict[Placement, int] = {self.placement: number}
        self.origin: Op | None = None
        """The op that made it, if that has no inputs: it can be executed again on any worker."""
        self.results: tuple[tuple[Spec, Placement], ...] | None = None
        """For the value of an op with several results: the spec and placement of each; empty if unknown.

        None for a tensor. Only `item` ops read such a value, on the workers that have it."""
        self.derived: dict[str, int] = {}
        """Tensors derived from this one by lowering, by name; freed together with it."""
        self.loads = False
        """Whether its size is counted in the loads of its worker."""
        self.key = -1
        """The number that `PlanCache.key_of` gave it; -1 if its versions have changed since."""

    @property
    def worker(self) -> str:
        """The worker that has it, or the first of several."""
        return self.placement.workers[0]

    @classmethod
    def of_results(
        cls, number: int, workers: tuple[str, ...], results: tuple[tuple[Spec, Placement], ...] = ()
    ) -> "TensorHandle":
        """The handle of a value that is several tensors, or of unknown shape."""
        # Its results may be sharded, so it is lost with any of its workers, like a partial tensor.
        layout = Replicated() if len(workers) == 1 else Partial("sum")
        handle = cls("", None, Placement(layout, workers), number)
        handle.results = results
        return handle

    @classmethod
    def of_tensors(cls, number: int, tensors: Sequence[int]) -> "TensorHandle":
        """The handle of a value that is several tensors, each of which has an id of its own."""
        handle = cls.of_results(number, ("",))
        handle.versions = {}
        handle.derived = {str(index): tensor for index, tensor in enumerate(tensors)}
        return handle

    def shards(self) -> list[tuple[str, ShardInfo | None, tuple[int, ...]]]:
        """For each worker: its name, its shard (None for all of the tensor), and that shard's shape."""
        layout, workers, shape = self.placement.layout, self.placement.workers, self.spec.shape
        return [
            (
                worker,
                ShardInfo(layout.axis, len(workers), index) if isinstance(layout, Sharded) else None,
                self.placement.local_shape(index, shape),
            )
            for index, worker in enumerate(workers)
        ]

    def add(self, placement: Placement, number: int) -> None:
        """Add a copy with another placement and id."""
        self.versions[placement] = number
        self.key = -1

    def find(self, wanted: Placement) -> int | None:
        """The id of a copy with this placement; None if there is none."""
        number = self.versions.get(wanted)
        if number is None and wanted.whole:
            needed = set(wanted.workers)
            for have, one in self.versions.items():
                if have.whole and needed <= set(have.workers):
                    return one
        return number

    def remove_worker(self, name: str) -> list[tuple[int, tuple[str, ...]]]:
        """Drop the copies that needed a worker; `versions` is empty afterwards if none is left.

        Returns the ids of the dropped copies, and the other workers that have parts of them.
        """
        if not any(name in placement.workers for placement in self.versions):
            return []
        kept: dict[Placement, int] = {}
        dropped: list[tuple[int, tuple[str, ...]]] = []
        for placement, number in self.versions.items():
            rest = tuple(worker for worker in placement.workers if worker != name)
            if len(rest) == len(placement.workers):
                kept[placement] = number
            elif placement.whole and rest:
                kept[Placement(Replicated(), rest)] = number
            elif rest:
                dropped.append((number, rest))
        self.versions, self.key = kept, -1
        if self.placement not in kept:
            # The loads of a worker are dropped together with the worker.
            self.placement, self.loads = next(iter(kept), self.placement), False
        return dropped
