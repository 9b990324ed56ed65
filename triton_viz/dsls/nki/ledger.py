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
        """Bytes by source and destination memory."""
        self.read: dict[str, int] = collections.Counter()
        self.written: dict[str, int] = collections.Counter()
        """Bytes by memory, of all instructions."""
        self.peaks: dict[str, int] = collections.Counter()
        """By memory: the peak use in bytes of a partition, of any program."""
        self.tick = 0
        """The number of instructions that the current program has executed."""
        self.buffers: list[Storage] = []

    def begin(self) -> None:
        """Begin the next program."""
        self.tick = 0
        self.buffers = []

    def allocated(self, storage: "Storage") -> None:
        """Add a buffer on the chip. It is in use from its first write on."""
        storage.born = storage.last = self.tick
        storage.position = len(self.buffers)
        self.buffers.append(storage)

    def limit(self, memory: str) -> int:
        """The capacity of a memory in bytes of each partition."""
        return PSUM_BYTES if memory == "PSUM" else self.target.sbuf_bytes

    def most_in_use(self, memory: str) -> tuple[int, "Storage | None", list["Storage"]]:
        """The peak use in bytes of a partition, the buffer that caused it, and all buffers in use at that
        time."""
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
                    over = total > self.limit(memory)  # report the first buffer that does not fit
                peak = max(peak, total)
        self.peaks[memory] = max(self.peaks[memory], peak)
        return peak, culprit, at_peak
