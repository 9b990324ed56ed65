"""Records of chips whose engines and memories are programmed explicitly: instructions, and a launch's totals.

Buffers are recorded as `SbufEvent`. Each backend has its own subclass of `ChipProfile`.
"""

import msgspec

from triton_viz.core.data import Op, Record
from triton_viz.core.records.columns import Numbers


class Instruction(Op, frozen=True, tag=True, kw_only=True):
    """One instruction of one engine. Its number is the unit of time of sbuf events.

    The records up to the next instruction describe its accesses and computations.
    """

    name: str
    engine: str
    number: int
    """Its position among the program's instructions, counted from 1."""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    """The names of the tensors in the kernel, without that of the result."""
    buffers_read: tuple[int, ...] = ()
    buffers_written: tuple[int, ...] = ()
    """The indices of the buffers among the program's sbuf events, from 0. Tensors in HBM have none."""
    picoseconds: Numbers
    """About how long the engine is busy with it."""

    @property
    def seconds(self) -> float:
        """The estimated duration in seconds; that of the first program if there are several."""
        return self.picoseconds.at(0) * 1e-12


class EngineWork(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one engine, over all programs."""

    engine: str
    instructions: int
    seconds: float
    """About how long it was busy."""
    occupancy: float
    """`seconds` as a share of the busiest engine's: engines run concurrently."""
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
    """The peak use in bytes of each partition, in the program that needs most; 0 for HBM."""
    capacity: int
    """The bytes of a partition; 0 for HBM."""


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
    """How long that engine is busy: a lower bound of the run time."""
