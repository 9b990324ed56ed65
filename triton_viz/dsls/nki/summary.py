"""A launch's totals and its timeline of buffers as text, for a terminal."""

from triton_viz.core.data import Launch, Program, SbufEvent
from triton_viz.dsls.nki.nki_records import NeuronProfile
from triton_viz.errors import UnsupportedError

_WIDTH = 40


def summary(launch: Launch, program: Program = (0, 0, 0)) -> str:
    """A text summary: bytes by memory, work by engine, and one program's buffers over time."""
    profiles = [record for record in launch.records if isinstance(record, NeuronProfile)]
    if not profiles:
        raise UnsupportedError(f"{launch.kernel} is not an NKI kernel")
    profile = profiles[0]
    lines = [
        f"{launch.kernel} on {profile.target}: {profile.flops:,} flops, {profile.hbm_bytes:,} bytes to and "
        f"from HBM, {profile.intensity:.3g} flops per byte, bound by {profile.bound}",
        "",
        *(
            f"{work.engine:>8}  {work.instructions:>7,} instructions  {work.occupancy:>4.0%} busy  "
            f"{work.flops:,} flops"
            for work in profile.engines
        ),
        "",
        *(f"{move.source:>8} to {move.destination:<4}  {move.bytes:,} bytes" for move in profile.moves),
        "",
        *(
            f"{memory.memory:>8}  {memory.peak:,} of {memory.capacity:,} bytes of each partition in use "
            "at most"
            for memory in profile.memories
            if memory.capacity
        ),
        "",
        *_timeline([event for event in launch.at(program) if isinstance(event, SbufEvent)]),
    ]
    return "\n".join(lines)


def _timeline(events: list[SbufEvent]) -> list[str]:
    """A line for each buffer, with a bar from its first use to its last."""
    end = max((event.end for event in events), default=0) + 1
    lines = []
    for event in events:
        first, last = (round(tick * _WIDTH / end) for tick in (event.start, event.end + 1))
        bar = " " * first + "#" * max(last - first, 1)
        line = event.call_path[-1].line if event.call_path else 0
        size = f"{event.bytes_per_partition:,}"
        lines.append(f"{line:>6}  {event.memory} {event.name:<16.16} {size:>9}  |{bar:<{_WIDTH}.{_WIDTH}}|")
    return lines
