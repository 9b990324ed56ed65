"""What a launch of an NKI kernel leaves behind besides the clients' records: its buffers, and its totals."""

from typing import TYPE_CHECKING, Any

import msgspec

from triton_viz.core.columns import Numbers, Programs
from triton_viz.core.data import Op, SbufEvent, Site
from triton_viz.dsls.nki.hardware import ENGINES

if TYPE_CHECKING:
    from triton_viz.dsls.nki.machine import Launched, Machine


class Instruction(Op, frozen=True, tag=True, kw_only=True):
    """One instruction of one engine. Its number is the time that sbuf events count in."""

    name: str
    """As `nki.isa` has it, also where `nki.language` was used."""
    engine: str
    number: int
    """Among the instructions of its program, from 1."""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    """The tensors, by their names in the kernel; a result's own is not among them."""
    seconds: float
    """About how long the engine is busy with it."""


class EngineWork(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine did, over all programs."""

    engine: str
    instructions: int
    seconds: float
    """About how long it was busy."""
    occupancy: float
    """That, as a share of the time of the busiest engine: engines run side by side."""
    flops: int


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What went from one memory to another, over all programs."""

    source: str
    destination: str
    bytes: int


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """What instructions read from and wrote to a memory, and how much of it was in use at most."""

    memory: str
    read: int
    written: int
    peak: int
    """Bytes of each partition, of the program that needs most; of HBM 0."""
    capacity: int
    """The bytes that a partition has; of HBM 0."""


class NeuronProfile(Op, frozen=True, tag=True, kw_only=True):
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


def events_of(machine: "Machine") -> list[Op]:
    """The instructions of the program that has just run, then its buffers, both in their order."""
    ledger = machine.launched.ledger
    instructions: list[Op] = [
        Instruction(programs=machine.programs, **fields) for fields in ledger.instructions
    ]
    return instructions + [
        SbufEvent(
            programs=machine.programs,
            call_path=storage.path,
            iterations=storage.iterations,
            memory=storage.memory,
            name=storage.name,
            shape=storage.array.shape,
            dtype=storage.array.dtype.name,
            partitions=storage.array.shape[storage.partition_axis] if storage.array.ndim else 1,
            bytes_per_partition=storage.bytes_per_partition,
            start=storage.born,
            end=storage.last,
            capacity=ledger.limit(storage.memory),
        )
        for storage in ledger.buffers
    ]


def profile_of(launched: "Launched", site: Site, programs: int) -> NeuronProfile:
    """The totals of a launch that is over."""
    ledger = launched.ledger
    longest = max((totals.seconds for totals in ledger.engines.values()), default=0.0)
    found = [(name, ledger.engines[name]) for name in ENGINES if name in ledger.engines]
    hbm = sum(count for pair, count in ledger.moved.items() if "HBM" in pair)
    flops = sum(totals.flops for _, totals in found)
    everyone: Any = Programs(launched.grid, Numbers(programs, 0, 1 if programs > 1 else 0))
    return NeuronProfile(
        programs=everyone,
        call_path=(site,),
        target=ledger.target.name,
        engines=tuple(
            EngineWork(
                engine=name,
                instructions=totals.instructions,
                seconds=totals.seconds,
                occupancy=totals.seconds / longest if longest else 0.0,
                flops=totals.flops,
            )
            for name, totals in found
        ),
        moves=tuple(
            Move(source=source, destination=destination, bytes=count)
            for (source, destination), count in sorted(ledger.moved.items())
        ),
        memories=tuple(
            MemoryUse(
                memory=memory,
                read=ledger.read[memory],
                written=ledger.written[memory],
                peak=ledger.peaks.get(memory, 0),
                capacity=0 if memory == "HBM" else ledger.limit(memory),
            )
            for memory in ("HBM", "SBUF", "PSUM")
        ),
        flops=flops,
        hbm_bytes=hbm,
        intensity=flops / hbm if hbm else 0.0,
        bound=max(found, key=lambda one: one[1].seconds)[0] if found else "",
        seconds=longest,
    )
