"""The timeline of on-chip memories: the buffers of one program, and when they were in use."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from triton_viz.core.data import Launch, Program, SbufEvent
from triton_viz.visualizer.draw import events_in
from triton_viz.visualizer.payloads import SbufBuffer, SbufMemory, SbufTimeline, SitePayload

MOST = 2000
"""The most buffers in one answer, which keeps it below a megabyte."""


def timeline(launch: Launch, program: Program) -> SbufTimeline:
    """A program's buffers, and the peak use of each memory."""
    events = events_in(launch, program)
    by_memory: dict[str, list[SbufEvent]] = defaultdict(list)
    for event in events:
        by_memory[event.memory].append(event)
    memories = []
    # Keep the largest buffers, in any order of allocation.
    for memory, of_it in sorted(by_memory.items(), key=lambda item: -item[1][0].capacity):
        peak, at = _peak(of_it)
        memories.append(SbufMemory(memory=memory, capacity=of_it[0].capacity, peak=peak, peak_at=at))
    return SbufTimeline(
        memories=memories,
        events=[_payload(event) for event in events[:MOST]],
        total=len(events),
        instructions=max((event.end for event in events), default=0),
    )


def _peak(events: Iterable[SbufEvent]) -> tuple[int, int]:
    """The most bytes of a partition in use at once, and the first instruction at which they are."""
    changes: dict[int, int] = defaultdict(int)
    for event in events:
        changes[event.start] += event.bytes_per_partition
        changes[event.end + 1] -= event.bytes_per_partition
    used = peak = at = 0
    for time in sorted(changes):
        used += changes[time]
        if used > peak:
            peak, at = used, time
    return peak, at


def _payload(event: SbufEvent) -> SbufBuffer:
    return SbufBuffer(
        memory=event.memory,
        name=event.name,
        shape=event.shape,
        dtype=event.dtype,
        partitions=event.partitions,
        bytes_per_partition=event.bytes_per_partition,
        start=event.start,
        end=event.end,
        path=[SitePayload(file=Path(s.file).name, line=s.line, function=s.function) for s in event.call_path],
        iterations=list(event.iterations),
    )
