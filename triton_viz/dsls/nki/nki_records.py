"""The records that the language adds to an NKI launch: its buffers and its totals."""

from typing import TYPE_CHECKING

from triton_viz.core.data import SbufEvent, Site
from triton_viz.core.records.chip import ChipProfile, EngineWork, Instruction, MemoryUse, Move
from triton_viz.core.records.columns import Programs
from triton_viz.dsls.nki.hardware import ENGINES

__all__ = ["Instruction", "NeuronProfile", "events_of", "profile_of"]

if TYPE_CHECKING:
    from triton_viz.dsls.nki.nki_machine import Launched, Machine


class NeuronProfile(ChipProfile, frozen=True, tag=True, kw_only=True):
    """The totals of a launch on a NeuronCore."""


def events_of(machine: "Machine") -> list[SbufEvent]:
    """The records of the buffers of the last program, in the order of their allocation."""
    ledger = machine.launched.ledger
    return [
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
            assigned=tuple(storage.assigned),
        )
        for storage in ledger.buffers
    ]


def profile_of(launched: "Launched", site: Site) -> NeuronProfile:
    """The totals of a launch that has ended."""
    ledger = launched.ledger
    longest = max((totals.seconds for totals in ledger.engines.values()), default=0.0)
    found = [(name, ledger.engines[name]) for name in ENGINES if name in ledger.engines]
    hbm = sum(count for pair, count in ledger.moved.items() if "HBM" in pair)
    flops = sum(totals.flops for _, totals in found)
    return NeuronProfile(
        programs=Programs.all_of(launched.grid),
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
