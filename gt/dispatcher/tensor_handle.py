"""Where a client's tensor physically is."""

from typing import NamedTuple

from gt.ops import Spec
from gt.transport.layouts import Placement, Replicated, Sharded
from gt.transport.protocol import Op


class ShardInfo(NamedTuple):
    """Which part of a tensor a shard is: along which axis, of how many, and the how-manieth."""

    axis: int
    num_shards: int
    shard_index: int


class TensorHandle:
    """Where a tensor is: on one worker, or laid out over several.

    The dispatcher maps every `client:tensor` to a handle. On a server with one worker, tensors share one that
    says nothing but its name, so that placing a tensor costs a dictionary entry and nothing else. Over
    several workers each tensor has its own: `home` is how it lies, and `versions` are its copies that lie
    otherwise, each with the number that workers know it by.
    """

    __slots__ = ("facts", "home", "key", "loads", "origin", "spec", "versions")

    def __init__(
        self, worker: str = "", spec: Spec | None = None, home: Placement | None = None, number: int = -1
    ) -> None:
        self.spec = spec or Spec((), "float32")
        self.home = home or Placement(Replicated(), (worker,))
        self.versions: dict[Placement, int] = {self.home: number}
        self.origin: Op | None = None
        """The instruction that makes it out of nothing, if one does: it can be made again anywhere."""
        self.facts: dict[str, int] = {}
        """Tensors that say something about this one, by what they say; freed with it."""
        self.loads = False
        """Whether it counts among what its worker has to bear."""
        self.key = -1
        """The same for tensors that are alike and lie alike; -1 while it has to be looked up."""

    @property
    def worker(self) -> str:
        """The worker that has it, or the first of those that do."""
        return self.home.workers[0]

    def shards(self) -> list[tuple[str, ShardInfo | None, tuple[int, ...]]]:
        """What each worker has: its name, which shard (None for all of the tensor), and its shape."""
        layout, workers, shape = self.home.layout, self.home.workers, self.spec.shape
        return [
            (
                worker,
                ShardInfo(layout.axis, len(workers), index) if isinstance(layout, Sharded) else None,
                self.home.local_shape(index, shape),
            )
            for index, worker in enumerate(workers)
        ]

    def add(self, placement: Placement, number: int) -> None:
        """It lies so too, under this number."""
        self.versions[placement] = number
        self.key = -1

    def find(self, wanted: Placement) -> int | None:
        """The number under which it lies as wanted, if it does."""
        number = self.versions.get(wanted)
        if number is None and wanted.whole:
            needed = set(wanted.workers)
            for have, one in self.versions.items():
                if have.whole and needed <= set(have.workers):
                    return one
        return number
