"""Sessions: one client, as the dispatcher sees it.

A session has the client's queue and its tensors, cuts the queue into chunks for workers, and acknowledges
batches in order.
"""

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gt.dispatcher.fair_share import (
    CHUNK_SECONDS,
    MAX_CHUNK_INSTRUCTIONS,
    Batch,
    Chunk,
    FairShare,
    Group,
)
from gt.dispatcher.instruction_stream import InstructionStream, Reply
from gt.dispatcher.sharding.uploads import cut_frame
from gt.errors import ProtocolError
from gt.stream.describe import tensor_of
from gt.stream.instruction_table import INSTRUCTION_TABLE, made_by
from gt.stream.instructions import CreateTensor, GetData, LocalInstruction, Lost, Op, Placed, Site
from gt.stream.repeats import Repeat, cut_after, flat
from gt.stream.tape_entries import UploadEntry

if TYPE_CHECKING:
    from gt.dispatcher.links import ClientLink
    from gt.dispatcher.sharding.modifier import ShardingStreamModifier
    from gt.dispatcher.sharding.placed_repeats import PlacedRepeats
    from gt.dispatcher.tensor_handle import TensorHandle
    from gt.stream.modifiers import ClientModifiers

RECENT_SECONDS = 1.0
"""A client that sent something within this time is likely to send more."""

MAX_UNCUT_SECONDS = 1.0
"""A repeat of a few ops that takes longer is cut even if no other client waits."""


class Session:
    """One client: its tensors, its queue, and the time it has used."""

    def __init__(
        self, name: str, link: "ClientLink", stream: InstructionStream, modifiers: "ClientModifiers"
    ) -> None:
        self.name = name
        self.link = link
        self._stream = stream
        self.modifiers = modifiers
        """This client's modifiers at the dispatcher."""
        self.unanswered: deque[tuple[int, Sequence[LocalInstruction | UploadEntry]]] = deque()
        """The batches that are not done: their numbers, and their instructions as the tape shows them."""
        self._errors: dict[int, str] = {}
        """The failures in these batches, by tensor."""
        self._replies: dict[int, Reply] = {}
        """The replies to reads in these batches, by request."""
        self.handles: dict[int, TensorHandle | None] = {}
        """The location of each of its tensors; None before a worker has joined."""
        self.lost: dict[int, str] = {}
        """While it has no worker: the tensors that were on the last one, and the reason why they are lost."""
        self.sites: list[Site] = []
        """All sites it has sent, for workers that join later."""
        self.site_texts: dict[int, str] = {}
        """The text of each site on the tape, by number."""
        self.sites_sent: dict[str, int] = {}
        """With several workers: how many of `sites` each worker has been sent."""
        self.queue: deque[Batch] = deque()
        self.groups: deque[Group] = deque()
        """The groups of chunks that were sent and are not done."""
        self.share: FairShare | None = None
        """The share of the worker that has all its tensors, unless these are sharded over several."""
        self.sharding: ShardingStreamModifier | None = None
        """Places its instructions on several workers."""
        self.repeats: PlacedRepeats | None = None
        """The placements of its repeats."""
        self.switching = False
        """Whether it waits for its tensors' specs to change from one worker to several."""
        self.requested_specs = False
        """Whether these specs have been requested from its worker."""
        self.unplaced: deque[Batch] = deque()
        """The batches received while it is switching, or has no workers; not yet placed on workers."""
        self.next_group: list[Chunk] | None = None
        """The chunks that are sent next, as soon as all their workers have room."""
        self.leases: Counter[str] = Counter()
        """By segment of the client's shared memory: how many workers use it."""
        self.gone = False
        self.used = 0.0
        """Seconds of worker time, relative to the level of its FairShare."""
        self.cost = CHUNK_SECONDS / 16
        """The estimated seconds per instruction. The initial estimate is high."""
        self.waiting_since = time.monotonic()

    def track(self, instructions: Sequence[LocalInstruction], handle: "TensorHandle | None") -> None:
        """Update the locations of its tensors for instructions that a single worker will execute.

        Raises ProtocolError if one refers to a tensor that does not exist.
        """
        handles = self.handles
        instruction: Any
        try:
            for instruction in instructions:
                kind = type(instruction)
                if kind is Op:
                    for tensor in instruction.inputs:
                        handles[tensor]
                    handles[instruction.result] = handle
                elif kind is int:
                    del handles[instruction]
                else:
                    row = INSTRUCTION_TABLE[kind]
                    for tensor in row.reads(instruction):
                        handles[tensor]
                    for tensor in row.makes(instruction):
                        handles[tensor] = handle
                    for tensor in row.frees(instruction):
                        del handles[tensor]
                    if kind is Site:
                        self.sites.append(instruction)
        except KeyError as error:
            raise ProtocolError(f"Tensor not found: client {self.name} has no tensor {error}") from None

    def put(self, sequence: int, instructions: Sequence[Any], frames: Sequence[Any]) -> None:
        """Queue a batch."""
        if not self.queue:
            self.waiting_since = time.monotonic()
            if self.share is not None:
                # A client that was idle gets no credit for that time: it continues at the level of the
                # others.
                self.used = max(self.used, self.share.level)
        self.queue.append(Batch(sequence, instructions, frames))

    def join(self, share: FairShare | None) -> None:
        """Assign the client to a worker, or to none."""
        if self.share is not None:
            self.share.sessions.remove(self)
        self.share = share
        if share is not None:
            self.lost = {}
            self.used = share.level
            share.sessions.append(self)

    def shard_over_workers(self, sharding: "ShardingStreamModifier", repeats: "PlacedRepeats") -> None:
        """Place its tensors on several workers from now on."""
        self.join(None)
        self.sharding, self.repeats = sharding, repeats
        self.handles = {}
        self.switching = False

    @property
    def held(self) -> int:
        """The number of tensors that the client has."""
        if self.sharding is not None:
            return len(self.sharding.tensor_sharded) + len(self.sharding.lost)
        return len(self.handles)

    @property
    def idle(self) -> bool:
        """Whether all its instructions have been sent to workers."""
        return not self.queue and self.next_group is None and not self.unplaced

    @property
    def busy(self) -> bool:
        """Whether some of its instructions are not done."""
        return bool(self.groups) or not self.idle

    def lose(self, why: str) -> None:
        """Mark all its tensors as lost, and queue that information before everything else."""
        self.lost = dict.fromkeys(self.handles, why)
        made: set[int] = set()
        for batch in self.queue:
            batch.instructions, batch.position = flat(batch.instructions[batch.position :]), 0
            for instruction in batch.instructions:
                if isinstance(instruction, Op):
                    # Its inputs may be freed further on in the queue, and so have no handle any more.
                    self.lost |= dict.fromkeys(set(instruction.inputs) - made, why)
                    if not self.lost.keys().isdisjoint(instruction.inputs):
                        continue
                for result in made_by(instruction):  # it does not exist yet, so it is not lost
                    made.add(result)
                    self.lost.pop(result, None)
        first: list[LocalInstruction] = [*self.sites, Lost(list(self.lost), why)]
        self.queue.appendleft(Batch(-1, first, ()))

    def fail_queued(self) -> None:
        """Answer queued reads of lost tensors."""
        for batch in self.queue:
            batch.instructions = self.fail_lost(batch.instructions[batch.position :])
            batch.position = 0

    def fail_lost(self, instructions: Sequence[LocalInstruction]) -> list[LocalInstruction]:
        """Answer reads of lost tensors, which needs no worker; returns the other instructions."""
        rest: list[LocalInstruction] = []
        for instruction in flat(instructions):
            if isinstance(instruction, GetData) and instruction.tensor in self.lost:
                self.refuse(instruction, self.lost[instruction.tensor])
                continue
            if isinstance(instruction, Op):
                why = next((self.lost[one] for one in instruction.inputs if one in self.lost), None)
                if why is not None:
                    self.lost[instruction.result] = why
            rest.append(instruction)
        return rest

    def fail(self, instructions: Sequence[LocalInstruction], why: str) -> None:
        """Fail instructions that will not be executed: answer reads, and remember errors for the tape."""
        if self.gone:
            return
        for instruction in instructions:
            if type(instruction) is GetData:
                self.refuse(instruction, why)
            else:
                self._errors.update(dict.fromkeys(made_by(instruction), why))

    def give_up(self, queue: deque[Batch], why: str) -> None:
        """Fail and acknowledge all batches of a queue (`queue` or `unplaced`), which no worker will
        execute."""
        batches = list(queue)
        queue.clear()
        if self.sharding is None:
            self.lose(why)
        for batch in batches:
            if self.sharding is not None:
                self.sharding.abandon(flat(batch.instructions), why)
            self.fail(batch.instructions, why)
            if batch.sequence >= 0:
                self.ack(batch.sequence)

    def refuse(self, read: GetData, why: str) -> None:
        """Answer a read with an error."""
        self._replies[read.request] = Reply(0, why)
        self.link.failed(read.request, why, *(() if read.part is None else (read.part,)))

    def record(self, errors: Mapping[int, str], replies: Mapping[int, Reply]) -> None:
        """Record a worker's replies for the tape. The parts of one tensor are one reply."""
        self._errors.update(errors)
        for request, reply in replies.items():
            before = self._replies.get(request, Reply(0))
            self._replies[request] = Reply(before.nbytes + reply.nbytes, before.error or reply.error)

    def ack(self, sequence: int) -> None:
        """Acknowledge all batches up to this one, and log one reply for each of their instructions."""
        while self.unanswered and self.unanswered[0][0] <= sequence:
            shown = self.unanswered.popleft()[1]
            errors, replies = self._answers(shown) if self._errors or self._replies else ({}, {})
            self._stream.add("SEND", f"CLIENT {self.name}", self.name, shown, errors, replies)
        if not self.unanswered:
            self._errors.clear()  # those of tensors that the dispatcher created
        self.link.ack(sequence)

    def _answers(self, shown: Sequence[Any]) -> tuple[dict[int, str], dict[int, Reply]]:
        """Take the recorded errors and replies of these instructions."""
        replies = {
            one.request: self._replies.pop(one.request)
            for one in shown
            if type(one) is GetData and one.request in self._replies
        }
        failed = set(map(tensor_of, flat(shown))) & self._errors.keys() if self._errors else ()
        return {tensor: self._errors.pop(tensor) for tensor in failed}, replies

    # --- cutting the queue into chunks ---

    def next_chunks(self, shares: Mapping[str, FairShare]) -> list[Chunk]:
        """The next piece of the queue: a chunk for each worker involved."""
        if self.next_group is None:
            self.next_group = self._cut(shares)
        return self.next_group

    def _cut(self, shares: Mapping[str, FairShare]) -> list[Chunk]:
        batch = self.queue[0]
        self._expand_first(batch)
        count = max(1, min(MAX_CHUNK_INSTRUCTIONS, int(CHUNK_SECONDS / self.cost)))
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

    def _expand_first(self, batch: Batch) -> None:
        """Expand the repeat at the front of a batch if it should be cut."""
        first = batch.instructions[batch.position] if batch.position < len(batch.instructions) else None
        if type(first) is Repeat and self.share is not None and self.should_cut(first, self.share.sessions):
            batch.instructions = [*first.expanded(), *batch.instructions[batch.position + 1 :]]
            batch.position = 0

    def should_cut(self, repeat: Repeat, sessions: Iterable["Session"]) -> bool:
        """Whether to expand a repeat, because other clients would have to wait for it too long.

        Only a loop of a few ops is cut, which can end anywhere: a training step is faster as one repeat.
        """
        seconds = self.cost * repeat.size
        if seconds <= CHUNK_SECONDS or not repeat.sequence.is_tiny:
            return False
        since = time.monotonic() - RECENT_SECONDS
        others = (one.queue or one.waiting_since > since for one in sessions if one is not self)
        return seconds > MAX_UNCUT_SECONDS or any(others)

    def _fan_out(
        self,
        placed: Sequence[Placed],
        frames: Sequence[Any],
        ends: int | None,
        shares: Mapping[str, FairShare],
    ) -> list[Chunk]:
        parts: dict[str, list[Any]] = {}
        for workers, each in placed:
            for worker, instruction in zip(workers, each, strict=True):
                part = parts.get(worker)
                if part is None:
                    part = parts[worker] = []
                part.append(instruction)
        for worker in parts.keys() - shares.keys():
            self.fail(parts.pop(worker), f"{worker} is gone, and its tensors are lost")
        group = Group(ends, len(parts))
        self.groups.append(group)
        return [self._part(shares[worker], part, frames, group) for worker, part in parts.items()]

    def _part(self, share: FairShare, instructions: list[Any], frames: Sequence[Any], group: Group) -> Chunk:
        own: Sequence[Any] = ()
        if frames:
            instructions, own = with_own_frames(instructions, frames)
        for instruction in instructions:
            if type(instruction) is CreateTensor and instruction.array.shared:
                self.leases[instruction.array.shared] += 1
        sent = self.sites_sent.get(share.worker, 0)
        if sent < len(self.sites):
            instructions = [*self.sites[sent:], *instructions]
            self.sites_sent[share.worker] = len(self.sites)
        return Chunk(self, share, instructions, own, group)

    def done(self, group: Group) -> None:
        """Account for a finished chunk of a group, and acknowledge the batches that are now done."""
        group.waiting -= 1
        if group.waiting:
            return
        while self.groups and not self.groups[0].waiting:
            ends = self.groups.popleft().ends
            if ends is not None and not self.gone:
                self.ack(ends)

    def done_without(self) -> None:
        """Finish the last group if it has no chunks, because all its workers have left."""
        if self.groups and not self.groups[-1].size:
            self.groups[-1].waiting = 1
            self.done(self.groups[-1])

    def released(self, names: Sequence[str]) -> list[str]:
        """Of the segments that a worker has released: those that all workers have."""
        free = []
        for name in names:
            if self.leases[name] > 1:
                self.leases[name] -= 1
            else:
                del self.leases[name]
                free.append(name)
        return free


def with_own_frames(
    instructions: Sequence[LocalInstruction], frames: Sequence[Any]
) -> tuple[list[LocalInstruction], list[Any]]:
    """A part of a batch, with only the frames (array bytes behind the message) that it refers to."""
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
