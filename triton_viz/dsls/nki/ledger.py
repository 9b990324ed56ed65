"""The resources of a program: buffers and their lifetimes, engine time, and bytes moved."""

import collections
import dataclasses
from typing import TYPE_CHECKING

from triton_viz.dsls.nki.hardware import PSUM_BYTES, Target

if TYPE_CHECKING:
    from triton_viz.dsls.nki.storage import Storage


@dataclasses.dataclass
class EngineTotals:
    """The totals of one engine."""

    instructions: int = 0
    seconds: float = 0.0
    flops: int = 0


class Ledger:
    """The resources of one launch, over all of its programs; buffers are the current program's."""

    def __init__(self, target: Target):
        self.target = target
        self.engines: dict[str, EngineTotals] = collections.defaultdict(EngineTotals)
        self.moved: dict[tuple[str, str], int] = collections.Counter()
        """Bytes by the memory that they come from and the one that they go to."""
        self.read: dict[str, int] = collections.Counter()
        self.written: dict[str, int] = collections.Counter()
        """Bytes by memory, of all instructions."""
        self.peaks: dict[str, int] = collections.Counter()
        """By memory, the most bytes of a partition that any program had in use at once."""
        self.tick = 0
        """How many instructions the current program has executed."""
        self.buffers: list[Storage] = []

    def begin(self) -> None:
        """The next program."""
        self.tick = 0
        self.buffers = []

    def allocated(self, storage: "Storage") -> None:
        """A buffer on the chip. It is in use from its first write on."""
        storage.born = storage.last = self.tick
        storage.position = len(self.buffers)
        self.buffers.append(storage)

    def limit(self, memory: str) -> int:
        """The bytes that a partition of a memory has."""
        return PSUM_BYTES if memory == "PSUM" else self.target.sbuf_bytes

    def most_in_use(self, memory: str) -> tuple[int, "Storage | None", list["Storage"]]:
        """The most bytes of a partition in use at once, the buffer that made it so many, and all of them."""
        changes: dict[int, list[tuple[int, Storage]]] = collections.defaultdict(list)
        for storage in self.buffers:
            if storage.memory == memory:
                changes[storage.born].append((1, storage))
                changes[storage.last + 1].append((-1, storage))
        live: dict[int, Storage] = {}
        total, peak = 0, 0
        culprit: Storage | None = None
        at_peak: list[Storage] = []
        over = False
        for tick in sorted(changes):
            for sign, storage in sorted(changes[tick], key=lambda change: change[0]):
                total += sign * storage.bytes_per_partition
                if sign > 0:
                    live[id(storage)] = storage
                else:
                    live.pop(id(storage), None)
                if total > peak and not over:
                    peak, culprit, at_peak = total, storage, list(live.values())
                    over = total > self.limit(memory)  # the first buffer that does not fit is shown
                peak = max(peak, total)
        self.peaks[memory] = max(self.peaks[memory], peak)
        return peak, culprit, at_peak
