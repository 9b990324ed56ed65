"""Fair shares: which client's instructions a worker gets next.

Every client has a queue, and a worker's time is shared evenly among those that have something in it: the
next instructions are those of the client that has used the worker least. How long instructions take is
measured, and they are handed out a few hundredths of a second's worth at a time, so that a client with
a million instructions, or with huge ones, does not starve a client with ten.
"""

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gt.dispatcher.uploads import cut_frame
from gt.transport.describe import Described
from gt.transport.protocol import CreateTensor, GetData, LocalInstruction, Lost, Op, Placed, Site
from gt.transport.repeats import Repeat, cut_after, flat, weight

if TYPE_CHECKING:
    from gt.dispatcher.links import ClientLink
    from gt.dispatcher.placed_repeats import PlacedRepeats
    from gt.dispatcher.sharding_modifier import ShardingStreamModifier
    from gt.dispatcher.tensor_handle import TensorHandle

QUANTUM = 0.02
"""How many seconds of work are handed out at a time, about."""

WINDOW = 16
"""How many such pieces a worker has at once, at the most; of long ones only two, which is enough."""

MOST = 512
"""How many instructions a piece has at the most."""

RECENTLY = 1.0
"""Who asked for something so many seconds ago is likely to do so again."""

TOO_LONG = 1.0
"""Nobody who comes should have to wait so many seconds for what could have been cut."""


class Batch:
    """Instructions that a client sent together, and how far they have been handed out."""

    __slots__ = ("frames", "instructions", "position", "sequence")

    def __init__(self, sequence: int, instructions: Sequence[Any], frames: Sequence[Any]) -> None:
        self.sequence = sequence
        self.instructions = instructions
        """Over several workers, each says whom it is for: see Placed."""
        self.frames = frames
        self.position = 0


class Group:
    """The chunks of one piece of a stream: one for each worker that has to do with it."""

    __slots__ = ("ends", "size", "waiting")

    def __init__(self, ends: int | None, size: int) -> None:
        self.ends = ends
        """The batch that is done when this, and all before it, is."""
        self.size = self.waiting = size


class Chunk:
    """A piece of a client's stream, on its way to a worker."""

    __slots__ = ("estimate", "frames", "group", "instructions", "session", "share", "shown", "weight")

    def __init__(
        self,
        session: "Session",
        share: "FairShare",
        instructions: Sequence[LocalInstruction],
        frames: Sequence[Any],
        group: Group,
    ) -> None:
        self.session = session
        self.share = share
        self.instructions = instructions
        self.frames = frames
        self.group = group
        self.weight = max(1, weight(instructions))
        """How many instructions it stands for."""
        self.estimate = session.cost * self.weight
        self.shown: Sequence[LocalInstruction | Described] = ()
        """The same instructions, as the tape shows them."""


class Session:
    """One client, as the dispatcher sees it: what it holds, what it has to do, what it has used."""

    def __init__(self, name: str, link: "ClientLink") -> None:
        self.name = name
        self.link = link
        self.handles: dict[int, TensorHandle | None] = {}
        """Where each of its tensors is; None before a worker has come."""
        self.lost: dict[int, str] = {}
        """While it has no worker: the tensors that went with the last one, and why."""
        self.sites: list[Site] = []
        """Lines of the user's code, for the next worker, should this one go."""
        self.told: dict[str, int] = {}
        """Over several workers: how many of them each has been told of."""
        self.queue: deque[Batch] = deque()
        self.groups: deque[Group] = deque()
        """What has been handed out and is not done."""
        self.share: FairShare | None = None
        """The worker that has all its tensors, unless they are spread over several."""
        self.sharding: ShardingStreamModifier | None = None
        """What spreads them."""
        self.repeats: PlacedRepeats | None = None
        """How what it repeats was spread."""
        self.switching = False
        """Whether it waits to be spread: what it sends meanwhile is in `raw`."""
        self.asked = False
        """Whether its worker has been asked, for that, what it holds."""
        self.raw: deque[Batch] = deque()
        self.head: list[Chunk] | None = None
        """What goes out next, as soon as all workers it is for have room."""
        self.leases: Counter[str] = Counter()
        """How many workers use a piece of the client's shared memory, where it is more than one."""
        self.gone = False
        self.used = 0.0
        """Seconds of a worker's time, for comparing with others'."""
        self.cost = QUANTUM / 16
        """Seconds that an instruction takes, about. The first guess is on the safe side."""
        self.waiting_since = time.monotonic()

    def put(self, sequence: int, instructions: Sequence[Any], frames: Sequence[Any]) -> None:
        """Queue a batch."""
        if not self.queue:
            self.waiting_since = time.monotonic()
            if self.share is not None:
                # A client that rested has not saved up: it starts level with the others.
                self.used = max(self.used, self.share.level)
        self.queue.append(Batch(sequence, instructions, frames))

    def join(self, share: "FairShare | None") -> None:
        """Move to a worker, or to none."""
        if self.share is not None:
            self.share.sessions.remove(self)
        self.share = share
        if share is not None:
            self.lost = {}
            self.used = share.level
            share.sessions.append(self)

    def spread(self, sharding: "ShardingStreamModifier", repeats: "PlacedRepeats") -> None:
        """From now on its tensors lie over several workers."""
        self.join(None)
        self.sharding, self.repeats = sharding, repeats
        self.handles = {}
        self.switching = False

    @property
    def held(self) -> int:
        """How many tensors it has."""
        if self.sharding is not None:
            return len(self.sharding.tensor_sharded) + len(self.sharding.lost)
        return len(self.handles)

    @property
    def idle(self) -> bool:
        """Whether everything it asked for has been handed out."""
        return not self.queue and self.head is None and not self.raw

    def lose(self, why: str) -> None:
        """All tensors are gone: what is still to be done must learn so first."""
        self.lost = dict.fromkeys(self.handles, why)
        made: set[int] = set()
        for batch in self.queue:
            batch.instructions, batch.position = flat(batch.instructions[batch.position :]), 0
            for instruction in batch.instructions:
                if isinstance(instruction, Op):
                    # What it reads may be freed further on in the queue, and so have no handle any more.
                    self.lost |= dict.fromkeys(set(instruction.inputs) - made, why)
                    if not self.lost.keys().isdisjoint(instruction.inputs):
                        continue
                if isinstance(instruction, Op | CreateTensor):  # not lost: it does not exist yet
                    made.add(instruction.result)
                    self.lost.pop(instruction.result, None)
        told: list[LocalInstruction] = [*self.sites, Lost(list(self.lost), why)]
        self.queue.appendleft(Batch(-1, told, ()))

    def fail_queued(self) -> None:
        """Answer what is queued, as far as it can be answered without a worker."""
        for batch in self.queue:
            batch.instructions = self.fail_lost(batch.instructions[batch.position :])
            batch.position = 0

    def fail_lost(self, instructions: Sequence[LocalInstruction]) -> list[LocalInstruction]:
        """Answer what can be answered without a worker: that a tensor is lost. The result is the rest."""
        rest: list[LocalInstruction] = []
        for instruction in flat(instructions):
            if isinstance(instruction, GetData) and instruction.tensor in self.lost:
                self.link.failed(instruction.request, self.lost[instruction.tensor])
                continue
            if isinstance(instruction, Op):
                why = next((self.lost[one] for one in instruction.inputs if one in self.lost), None)
                if why is not None:
                    self.lost[instruction.result] = why
            rest.append(instruction)
        return rest

    def fail(self, instructions: Sequence[LocalInstruction], why: str) -> None:
        """Nobody will carry these out: whoever waits for data is told."""
        for instruction in instructions:
            if type(instruction) is GetData and not self.gone:
                part = instruction.part
                self.link.failed(instruction.request, why, *(() if part is None else (part,)))

    # --- handing out ---

    def next_chunks(self, shares: Mapping[str, "FairShare"]) -> list[Chunk]:
        """What goes out next: a chunk for each worker that has to do with it."""
        if self.head is None:
            self.head = self._cut(shares)
        return self.head

    def _cut(self, shares: Mapping[str, "FairShare"]) -> list[Chunk]:
        batch = self.queue[0]
        self._take_apart(batch)
        count = max(1, min(MOST, int(QUANTUM / self.cost)))
        start, end = batch.position, cut_after(batch.instructions, batch.position, count)
        whole = start == 0 and end == len(batch.instructions)
        part = batch.instructions if whole else batch.instructions[start:end]
        batch.position = end
        frames = batch.frames
        ends = None
        if end == len(batch.instructions):
            self.queue.popleft()
            ends = batch.sequence if batch.sequence >= 0 else None
        if self.sharding is not None:
            return self._fan_out(part, frames, ends, shares)
        if frames and not whole:
            part, frames = with_own_frames(part, frames)
        assert self.share is not None
        group = Group(ends, 1)
        self.groups.append(group)
        return [Chunk(self, self.share, part, frames, group)]

    def _take_apart(self, batch: Batch) -> None:
        first = batch.instructions[batch.position] if batch.position < len(batch.instructions) else None
        if type(first) is Repeat and self.share is not None and self.should_cut(first, self.share.sessions):
            batch.instructions = [*first.expanded(), *batch.instructions[batch.position + 1 :]]
            batch.position = 0

    def should_cut(self, repeat: Repeat, sessions: Iterable["Session"]) -> bool:
        """Whether others would have to wait for many large ops because they are one instruction now.

        A step of something is worth more whole than apart; a few ops again and again can end anywhere.
        """
        seconds = self.cost * repeat.size
        if seconds <= QUANTUM or not repeat.sequence.little:
            return False
        since = time.monotonic() - RECENTLY
        others = (one.queue or one.waiting_since > since for one in sessions if one is not self)
        return seconds > TOO_LONG or any(others)

    def _fan_out(
        self,
        placed: Sequence[Placed],
        frames: Sequence[Any],
        ends: int | None,
        shares: Mapping[str, "FairShare"],
    ) -> list[Chunk]:
        parts: dict[str, list[Any]] = {}
        for workers, each in placed:
            for worker, instruction in zip(workers, each, strict=True):
                part = parts.get(worker)
                if part is None:
                    part = parts[worker] = []
                part.append(instruction)
        for worker in parts.keys() - shares.keys():
            self.fail(parts.pop(worker), f"{worker} is gone, and its tensors with it")
        group = Group(ends, len(parts))
        self.groups.append(group)
        return [self._part(shares[worker], part, frames, group) for worker, part in parts.items()]

    def _part(
        self, share: "FairShare", instructions: list[Any], frames: Sequence[Any], group: Group
    ) -> Chunk:
        own: Sequence[Any] = ()
        if frames:
            instructions, own = with_own_frames(instructions, frames)
        for instruction in instructions:
            if type(instruction) is CreateTensor and instruction.array.shared:
                self.leases[instruction.array.shared] += 1
        told = self.told.get(share.worker, 0)
        if told < len(self.sites):
            instructions = [*self.sites[told:], *instructions]
            self.told[share.worker] = len(self.sites)
        return Chunk(self, share, instructions, own, group)

    def done(self, group: Group) -> None:
        """One of a group's chunks is done. Batches are acknowledged in order."""
        group.waiting -= 1
        if group.waiting:
            return
        while self.groups and not self.groups[0].waiting:
            ends = self.groups.popleft().ends
            if ends is not None and not self.gone:
                self.link.ack(ends)

    def done_without(self) -> None:
        """A piece turned out to be for nobody: all its workers are gone."""
        if self.groups and not self.groups[-1].size:
            self.groups[-1].waiting = 1
            self.done(self.groups[-1])

    def released(self, names: Sequence[str]) -> list[str]:
        """Of the client's shared memory that a worker is done with: what all workers are done with."""
        free = []
        for name in names:
            if self.leases[name] > 1:
                self.leases[name] -= 1
            else:
                del self.leases[name]
                free.append(name)
        return free


class FairShare:
    """One worker's time, and the clients who share it."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.sessions: list[Session] = []
        self._out = 0
        self._out_seconds = 0.0
        self.level = 0.0
        """How much the least served of those at work has used: where one that comes, or comes back, begins.
        It only rises, so that nobody is ahead because the others happened to have nothing queued."""

    @property
    def has_room(self) -> bool:
        """Whether the worker should get more."""
        return self._out < 2 or (self._out < WINDOW and self._out_seconds < QUANTUM)

    def sent(self, chunk: Chunk) -> None:
        """The worker has been sent a piece."""
        chunk.session.used += chunk.estimate / chunk.group.size
        self._out += 1
        self._out_seconds += chunk.estimate

    def finished(self, chunk: Chunk, seconds: float) -> None:
        """The worker is done with a piece that took this long."""
        self._out -= 1
        self._out_seconds -= chunk.estimate
        session = chunk.session
        session.used += (seconds - chunk.estimate) / chunk.group.size
        self.level = max(
            self.level, min(one.used for one in [session, *self.sessions] if one.queue or one is session)
        )
        measured = seconds / chunk.weight
        # Up at once, down slowly: guessing too high costs little, guessing too low makes others wait.
        session.cost = max(1e-7, measured, 0.7 * session.cost + 0.3 * measured)


def with_own_frames(
    instructions: Sequence[LocalInstruction], frames: Sequence[Any]
) -> tuple[list[LocalInstruction], list[Any]]:
    """Part of a batch, with only the arrays that this part mentions behind it."""
    own: list[Any] = []
    result: list[LocalInstruction] = []
    for instruction in instructions:
        if isinstance(instruction, CreateTensor):
            array = instruction.array
            if isinstance(array.data, int) and not array.shared and 0 <= array.data < len(frames):
                frame = frames[array.data]
                if instruction.part is not None:
                    instruction, frame = cut_frame(instruction, getattr(frame, "buffer", frame))
                own.append(frame)
                moved = msgspec.structs.replace(instruction.array, data=len(own) - 1)
                instruction = CreateTensor(instruction.result, moved, instruction.part)
        result.append(instruction)
    return result, own
