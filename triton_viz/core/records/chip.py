"""Records of chips whose engines and memories a kernel programs itself: instructions, and a launch's totals.

The buffers are `SbufEvent`. A backend subclasses `ChipProfile` under a name of its own.
"""

import msgspec

from triton_viz.core.data import Op, Record
from triton_viz.core.records.columns import Numbers


class Instruction(Op, frozen=True, tag=True, kw_only=True):
    """One instruction of one engine. Its number is the time that sbuf events count in.

    What it did comes after it, as records of other types, up to the next instruction.
    """

    name: str
    engine: str
    number: int
    """Among the instructions of its program, from 1."""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    """The tensors, by their names in the kernel; a result's own is not among them."""
    buffers_read: tuple[int, ...] = ()
    buffers_written: tuple[int, ...] = ()
    """Which of the program's sbuf events these are, in their order from 0; what is in HBM is none."""
    picoseconds: Numbers
    """About how long the engine is busy with it."""

    @property
    def seconds(self) -> float:
        """The same in seconds, of the first program if there are several."""
        return self.picoseconds.at(0) * 1e-12


class EngineWork(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one engine, over all programs."""

    engine: str
    instructions: int
    seconds: float
    """About how long it was busy."""
    occupancy: float
    """That, as a share of the time of the busiest engine: engines run side by side."""
    flops: int


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Transfers from one memory to another, over all programs."""

    source: str
    destination: str
    bytes: int


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that instructions read from and wrote to a memory, and its peak use."""

    memory: str
    read: int
    written: int
    peak: int
    """Bytes of each partition, of the program that needs most; of HBM 0."""
    capacity: int
    """The bytes that a partition has; of HBM 0."""


class ChipProfile(Record, frozen=True, tag=True, kw_only=True):
    """The totals of a launch, over all of its programs, on one core of the target."""

    target: str
    engines: tuple[EngineWork, ...]
    moves: tuple[Move, ...]
    memories: tuple[MemoryUse, ...]
    flops: int
    hbm_bytes: int
    """Moved to or from HBM."""
    intensity: float
    """Flops for each of these bytes."""
    bound: str
    """The engine that is busy for longest."""
    seconds: float
    """How long that is: no run is much faster."""
