"""Fair shares: which client's instructions a worker gets next.

Every client has a queue, and a worker's time is shared evenly among those that have something in it: the
next instructions are those of the client that has used the worker least. How long instructions take is
measured, and they are handed out a few hundredths of a second's worth at a time, so that a client with
a million instructions, or with huge ones, does not starve a client with ten.
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gt.transport.describe import Described
from gt.transport.protocol import CreateTensor, GetData, LocalInstruction, Lost, Op, Site

if TYPE_CHECKING:
    from gt.dispatcher.dispatcher import ClientLink
    from gt.dispatcher.tensor_handle import TensorHandle

QUANTUM = 0.02
"""How many seconds of work are handed out at a time, about."""

WINDOW = 16
"""How many such pieces a worker has at once, at the most; of long ones only two, which is enough."""

MOST = 512
"""How many instructions a piece has at the most."""


class Batch:
    """Instructions that a client sent together, and how far they have been handed out."""

    __slots__ = ("frames", "instructions", "position", "sequence")

    def __init__(
        self, sequence: int, instructions: Sequence[LocalInstruction], frames: Sequence[Any]
    ) -> None:
        self.sequence = sequence
        self.instructions = instructions
        self.frames = frames
        self.position = 0


class Chunk:
    """A piece of a client's stream, on its way to a worker."""

    __slots__ = ("ends", "estimate", "frames", "instructions", "session", "share", "shown")

    def __init__(
        self,
        session: "Session",
        share: "FairShare",
        instructions: Sequence[LocalInstruction],
        frames: Sequence[Any],
        ends: int | None,
    ) -> None:
        self.session = session
        self.share = share
        self.instructions = instructions
        self.frames = frames
        self.ends = ends
        """The batch that is done when this is."""
        self.estimate = session.cost * len(instructions)
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
        self.queue: deque[Batch] = deque()
        self.share: FairShare | None = None
        self.gone = False
        self.used = 0.0
        """Seconds of the worker's time, for comparing with others'."""
        self.cost = QUANTUM / 16
        """Seconds that an instruction takes, about. The first guess is on the safe side."""
        self.waiting_since = time.monotonic()

    def put(self, sequence: int, instructions: Sequence[LocalInstruction], frames: Sequence[Any]) -> None:
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

    def lose(self, why: str) -> None:
        """All tensors are gone: what is still to be done must learn so first."""
        self.lost = dict.fromkeys(self.handles, why)
        made: set[int] = set()
        for batch in self.queue:
            for instruction in batch.instructions[batch.position :]:
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
        for instruction in instructions:
            if isinstance(instruction, GetData) and instruction.tensor in self.lost:
                self.link.failed(instruction.request, self.lost[instruction.tensor])
                continue
            if isinstance(instruction, Op):
                why = next((self.lost[one] for one in instruction.inputs if one in self.lost), None)
                if why is not None:
                    self.lost[instruction.result] = why
            rest.append(instruction)
        return rest


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

    def next_chunk(self) -> Chunk | None:
        """What the worker should get next; None if it has enough, or if there is nothing."""
        if self._out >= 2 and (self._out >= WINDOW or self._out_seconds >= QUANTUM):
            return None
        session = min((s for s in self.sessions if s.queue), key=lambda s: s.used, default=None)
        if session is None:
            return None
        batch = session.queue[0]
        count = max(1, min(MOST, int(QUANTUM / session.cost)))
        start, end = batch.position, min(batch.position + count, len(batch.instructions))
        whole = start == 0 and end == len(batch.instructions)
        part = batch.instructions if whole else batch.instructions[start:end]
        batch.position = end
        frames = batch.frames
        if frames and not whole:
            part, frames = _with_own_frames(part, frames)
        ends = None
        if end == len(batch.instructions):
            session.queue.popleft()
            ends = batch.sequence if batch.sequence >= 0 else None
        chunk = Chunk(session, self, part, frames, ends)
        session.used += chunk.estimate
        self._out += 1
        self._out_seconds += chunk.estimate
        return chunk

    def finished(self, chunk: Chunk, seconds: float) -> None:
        """The worker is done with a piece that took this long."""
        self._out -= 1
        self._out_seconds -= chunk.estimate
        session = chunk.session
        session.used += seconds - chunk.estimate
        self.level = max(
            self.level, min(one.used for one in [session, *self.sessions] if one.queue or one is session)
        )
        measured = seconds / max(len(chunk.instructions), 1)
        # Up at once, down slowly: guessing too high costs little, guessing too low makes others wait.
        session.cost = max(1e-7, measured, 0.7 * session.cost + 0.3 * measured)


def _with_own_frames(
    instructions: Sequence[LocalInstruction], frames: Sequence[Any]
) -> tuple[list[LocalInstruction], list[Any]]:
    """Part of a batch, with only the arrays that this part mentions behind it."""
    own: list[Any] = []
    result: list[LocalInstruction] = []
    for instruction in instructions:
        if isinstance(instruction, CreateTensor):
            array = instruction.array
            if isinstance(array.data, int) and not array.shared and 0 <= array.data < len(frames):
                own.append(frames[array.data])
                moved = msgspec.structs.replace(array, data=len(own) - 1)
                instruction = CreateTensor(instruction.result, moved)
        result.append(instruction)
    return result, own
