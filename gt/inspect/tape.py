"""Reads an instruction log: the client of each instruction, its worker, and when it was executed.

The page has a reader of its own (frontend/src/cluster/tape.ts): the lines' format is the interface.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from gt.dispatcher.instruction_stream import Entry
from gt.stream.instructions import EXCHANGE_KINDS

_SIZE_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
EXCHANGES = frozenset({*EXCHANGE_KINDS, "ShardOp"})
"""The instructions that move parts of tensors between workers, or combine them, by name."""
COMPUTES_NOTHING = frozenset({"FreeTensor", "Site"})
"""The instructions that compute nothing, by name."""

_TIME = re.compile(r"(\d+(?:\.\d+)?)s")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMG]?B)")
_SUBJECT = re.compile(r"(?:^| )((?:result|tensor_id|site)=\S+)")
_TENSOR = re.compile(r"=(.+)_(\d+)$")
_HOT_MARK = re.compile(r"HotPath(Start|End)$")
_SEQUENCE = re.compile(r"(?:^| )sequence=(\S+)")
_OP = re.compile(r"(?:^| )op=(\S+)")
_SITE = re.compile(r"(?: module=(\S+))?(?: phase=(\w+))?(?: at=(.+))?$")


class Span(msgspec.Struct):
    """One instruction on one worker."""

    command: str
    label: str
    """The op's name, or that of the instruction if it is not an op."""
    client: str
    worker: str
    received: float | None
    """When the dispatcher received it from its client; None if the dispatcher itself added it."""
    sent: float
    start: float
    end: float
    size: int
    details: str
    failed: str = ""
    answered: float = 0.0
    """When the worker reported that the chunk with this instruction is done."""
    module: str = ""
    """The path of the PyTorch module that issued it, or `AdamW.step`; empty if none did."""
    phase: str = ""
    """Empty in a forward pass; else `backward`, or `recompute`."""
    line: str = ""
    """The line of the user's code that issued it: `FILE:LINE`."""
    is_op: bool = False


class HotBand(NamedTuple):
    """A time in which a worker ran a hot path; incomplete if the stream differed from the prediction."""

    worker: str
    sequence: str
    start: float
    end: float
    complete: bool


class Share(NamedTuple):
    """A client's part of the work."""

    client: str
    instructions: int
    size: int
    seconds: float


class Tape(msgspec.Struct):
    """The contents of a log."""

    entries: list[Entry]
    spans: list[Span]
    unread: int
    """How many lines could not be read."""

    @property
    def clients(self) -> list[str]:
        """Their names, in order of first appearance."""
        return self._named("CLIENT")

    @property
    def workers(self) -> list[str]:
        """Their names, in order of first appearance."""
        return self._named("WORKER")

    @property
    def hot_paths(self) -> list[HotBand]:
        """Where workers ran hot paths. Markers are reported with a chunk: a path began when the chunk did."""
        begins: dict[tuple[str, float], float] = {}
        for span in self.spans:
            key = span.worker, span.answered
            begins[key] = min(begins.get(key, span.start), span.start)
        last = self.entries[-1].elapsed if self.entries else 0.0
        bands: list[HotBand] = []
        open_ones: dict[tuple[str, str], int] = {}
        for entry in self.entries:
            mark, found = _HOT_MARK.search(entry.command), _SEQUENCE.search(entry.details)
            if mark is None or found is None or entry.event != "WORKER_RECV":
                continue
            worker, sequence = entry.source.partition(" ")[2], found[1]
            if mark[1] == "Start":
                open_ones[worker, sequence] = len(bands)
                start = begins.get((worker, entry.elapsed), entry.elapsed)
                bands.append(HotBand(worker, sequence, start, last, complete=False))
            elif (number := open_ones.pop((worker, sequence), None)) is not None:
                complete = "complete=False" not in entry.details
                bands[number] = bands[number]._replace(end=entry.elapsed, complete=complete)
        return bands

    def _named(self, role: str) -> list[str]:
        sources = (entry.source.partition(" ") for entry in self.entries)
        return list(dict.fromkeys(name for kind, _, name in sources if kind == role))

    def shares(self) -> list[Share]:
        """Each client's part, the largest first."""
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        seconds: dict[str, float] = defaultdict(float)
        for entry in self.entries:
            if entry.event == "RECV" and entry.command:
                name = entry.source.partition(" ")[2]
                counts[name] += 1
                sizes[name] += entry.size
        for span in self.spans:
            seconds[span.client] += span.end - span.start
        found = [Share(name, counts[name], sizes[name], seconds[name]) for name in self.clients]
        return sorted(found, key=lambda share: -share.seconds)


def read_line(line: str) -> Entry | None:
    """One line of a log; None if it has another format."""
    fields = line.split("|", 6)
    if len(fields) < 7:
        return None
    elapsed, number, event, source, command, size, details = (field.strip() for field in fields)
    time, bytes_ = _TIME.fullmatch(elapsed), _SIZE.fullmatch(size)
    if time is None or bytes_ is None or not number.startswith("#") or not number[1:].isdecimal():
        return None
    return Entry(
        float(time[1]), int(number[1:]), event, source, command,
        int(float(bytes_[1]) * _SIZE_UNITS[bytes_[2]]), details,
    )  # fmt: skip


def read_tape(lines: Iterable[str]) -> Tape:
    """All lines of a log."""
    entries, unread = [], 0
    for line in lines:
        entry = read_line(line)
        if entry is not None:
            entries.append(entry)
        elif line.strip():
            unread += 1
    return Tape(entries, _spans(entries), unread)


def _spans(entries: list[Entry]) -> list[Span]:
    received: dict[str, list[Entry]] = defaultdict(list)
    taken: Counter[tuple[str, str, str]] = Counter()
    waiting: dict[tuple[str, str], dict[str, deque[Span]]] = defaultdict(lambda: defaultdict(deque))
    spans: list[Span] = []
    answered: dict[int, float] = {}
    client = ""
    for entry in entries:
        name = entry.source.partition(" ")[2]
        match = _SUBJECT.search(entry.details)
        about = match[1] if match else ""
        if entry.event == "RECV":
            key, _, value = about.partition("=")
            # Lines about clients have plain tensor ids; lines about workers have the client's name in front.
            received[f"{entry.command} {about if key == 'site' else f'{key}={name}_{value}'}"].append(entry)
        elif _HOT_MARK.search(entry.command):
            continue  # a marker is not an instruction
        elif entry.event == "WORKER_SEND":
            command = entry.command.removeprefix("Worker")
            # Each worker executes instructions in the order they were received; one may be for several
            # workers.
            queue, place = received.get(f"{command} {about}"), taken[name, command, about]
            taken[name, command, about] += 1
            origin = queue[min(place, len(queue) - 1)] if queue else None
            tensor, op = _TENSOR.search(about), _OP.search(entry.details)
            if tensor is not None:
                client = tensor[1]
            elif origin is not None:
                client = origin.source.partition(" ")[2]
            span = Span(
                command, op[1] if op else command, client, name, origin.elapsed if origin else None,
                entry.elapsed, entry.elapsed, entry.elapsed, entry.size, entry.details, is_op=op is not None,
            )  # fmt: skip
            site = _SITE.search(entry.details)
            if op is not None and site is not None:
                span.module, span.phase, span.line = site[1] or "", site[2] or "", site[3] or ""
            waiting[name, entry.command][about].append(span)
            spans.append(span)
        elif entry.event == "WORKER_RECV":
            kinds = waiting[name, entry.command]
            # A reply without a tensor is for the oldest instruction of its kind.
            found = kinds.get(about) if about else next((queue for queue in kinds.values() if queue), None)
            if found:
                span = found.popleft()
                answered[id(span)] = entry.elapsed
                span.failed = entry.details.partition("FAILED ")[2]
    return _with_times(spans, answered, entries[-1].elapsed if entries else 0.0)


def _with_times(spans: list[Span], answered: dict[int, float], last: float) -> list[Span]:
    """Set the spans' times. Instructions that were sent and reported together share the time evenly."""
    free: dict[str, float] = defaultdict(float)
    first_of_chunk = 0
    while first_of_chunk < len(spans):
        first = spans[first_of_chunk]
        end = answered.get(id(first), last)
        after = first_of_chunk
        while (
            after < len(spans)
            and (spans[after].worker, spans[after].sent) == (first.worker, first.sent)
            and answered.get(id(spans[after]), last) == end
        ):
            after += 1
        begin = min(end, max(first.sent, free[first.worker]))
        # Instructions that compute nothing get no time, unless there are no others.
        together = spans[first_of_chunk:after]
        working = sum(span.command not in COMPUTES_NOTHING for span in together)
        each = (end - begin) / (working or len(together))
        now = begin
        for span in together:
            span.start, span.answered = now, end
            now += each if span.command not in COMPUTES_NOTHING or not working else 0.0
            span.end = now
        free[first.worker] = end
        first_of_chunk = after
    return spans
