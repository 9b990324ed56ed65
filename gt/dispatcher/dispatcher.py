"""The dispatcher: from clients' instructions to workers' instructions, and back.

It does no input or output itself. A socket, or an embedded server, calls `receive` with what a client sent
and `done` with what a worker answered; the dispatcher calls the links it was given.
"""

import itertools
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gt import config
from gt.dispatcher.fair_share import Batch, Chunk, FairShare, Session
from gt.dispatcher.instruction_stream import InstructionStream
from gt.dispatcher.links import ClientLink, MeshLink, WorkerLink
from gt.dispatcher.placed_repeats import PlacedRepeats
from gt.dispatcher.placing import answer_lost, layouts, shares
from gt.dispatcher.policy import SHARD_THRESHOLD, Policy, ShardingPolicy
from gt.dispatcher.sharding_modifier import ShardingStreamModifier
from gt.dispatcher.tensor_handle import TensorHandle
from gt.errors import ProtocolError
from gt.ops import Spec
from gt.transport import modifiers as streams
from gt.transport.describe import debug, without_data
from gt.transport.layouts import Placement
from gt.transport.protocol import (
    CreateTensor,
    Failed,
    GetData,
    LocalInstruction,
    Lost,
    Mark,
    Op,
    Site,
    Upload,
)
from gt.transport.repeats import Repeat, flat

NO_WORKER_SECONDS = 10.0
"""How long work waits for a worker to come, before it fails."""


class Dispatcher:
    """Carries out the streams of many clients on many workers.

    With one worker, or without sharding, all tensors of a client are on one. With several workers they are
    spread by a ShardingStreamModifier for each client, as the policy says.
    """

    def __init__(
        self,
        modifiers: Sequence[streams.StreamModifier] = (),
        enable_sharding: bool = True,
        shard_threshold: int = SHARD_THRESHOLD,
        policy: Policy | None = None,
    ) -> None:
        self.stream = InstructionStream()
        self.modifiers = list(modifiers)
        self.enable_sharding = enable_sharding
        self.policy: Policy = policy or ShardingPolicy(shard_threshold)
        self.epoch = 0
        """Which workers there are: every change of them starts another."""
        self._loads: Counter[str] = Counter()
        self._memory: dict[str, int] = {}
        """What workers were told that their tensors may take."""
        self._capacity: dict[str, int] = {}
        """The same, or else their share of their machine's memory."""
        self.workers: dict[str, WorkerLink] = {}
        self.sessions: dict[str, Session] = {}
        self._shares: dict[str, FairShare] = {}
        self._handles: dict[str, TensorHandle] = {}
        self._client_names = (f"c{n}" for n in itertools.count(1))
        self._in_flight: dict[int, Chunk] = {}
        self._sequence = itertools.count()
        self._pumping = False
        self._bytes_sent = 0
        """How much data clients have read."""

    # --- workers come and go ---

    def add_worker(self, link: WorkerLink) -> None:
        """A worker is ready."""
        self.workers[link.name] = link
        self._shares[link.name] = FairShare(link.name)
        self._handles[link.name] = TensorHandle(link.name)
        if isinstance(link, MeshLink) and link.memory_limit:
            self._memory[link.name] = link.memory_limit
        self.stream.follow_config()
        self.stream.add("CONNECT", f"WORKER {link.name}")
        config.verbose(f"worker {link.name} joined; {len(self.workers)} in all")
        self._new_epoch()
        for session in list(self.sessions.values()):
            if session.sharding is not None:
                session.sharding.add_worker(link.name)
                self._resume(session)
            elif session.share is None:
                self._assign(session)
            elif self._spreads:
                session.switching = True
        self.pump()

    def remove_worker(self, name: str, why: str) -> None:
        """A worker is gone, and with it all tensors it held."""
        share = self._shares.pop(name)
        del self.workers[name], self._handles[name]
        self._memory.pop(name, None)
        self._loads.pop(name, None)
        self.stream.add("DISCONNECT", f"WORKER {name}")
        config.verbose(f"worker {name} left: {why}")
        self._new_epoch()
        lost = [(sequence, chunk) for sequence, chunk in self._in_flight.items() if chunk.share is share]
        alone = list(share.sessions)
        for session in alone:
            session.lose(why)
        for sequence, chunk in lost:
            del self._in_flight[sequence]
            chunk.session.fail(chunk.instructions, why)
            chunk.session.done(chunk.group)
        for session in alone:
            if session.switching:
                session.queue.popleft()  # what it lost is said otherwise now
                waiting = [Batch(b.sequence, b.instructions[b.position :], b.frames) for b in session.queue]
                session.queue.clear()
                session.raw.extendleft(reversed(waiting))
                self._spread(session, {}, session.lost)
                continue
            self._assign(session)
            if session.share is None:
                session.fail_queued()
        for session in list(self.sessions.values()):
            if session.sharding is not None:
                self._lose_worker(session, name, why)
        self.pump()

    def _lose_worker(self, session: Session, name: str, why: str) -> None:
        """A client whose tensors are spread has lost a worker."""
        assert session.sharding is not None
        session.told.pop(name, None)
        for chunk in session.head or ():
            if chunk.share.worker == name:
                session.fail(chunk.instructions, why)
                session.done(chunk.group)
        if session.head is not None:
            session.head = [chunk for chunk in session.head if chunk.share.worker != name]
        rest = list(session.sharding.remove_worker(name, why))
        if rest:
            session.put(-1, rest, ())

    def _new_epoch(self) -> None:
        """Tell everybody who is there. What is under way with somebody who is not fails, and never hangs."""
        self.epoch += 1
        links = [link for link in self.workers.values() if isinstance(link, MeshLink)]
        known = {link.name: link.member for link in links if link.member is not None}
        self._capacity.clear()
        self._capacity.update(shares(known) | self._memory)
        for link in links:
            link.meet(self.epoch, known)
        for session in self.sessions.values():
            if session.sharding is not None:
                session.sharding.epoch = self.epoch

    def _assign(self, session: Session) -> None:
        """Give a client workers: all of them, or, without sharding, the one with the fewest clients."""
        if self._spreads and not session.handles:
            self._spread(session, {}, {})
            return
        shares = sorted(self._shares.values(), key=lambda share: len(share.sessions))
        session.join(shares[0] if shares else None)

    # --- spreading a client's tensors over workers ---

    @property
    def _spreads(self) -> bool:
        if not self.enable_sharding or len(self.workers) < 2:
            return False
        return all(isinstance(link, MeshLink) for link in self.workers.values())

    def _spread(
        self, session: Session, there: Mapping[int, tuple[tuple[int, ...], str]], lost: Mapping[int, str]
    ) -> None:
        """From now on a client's tensors lie over all workers; those that exist stay where they are."""
        worker = session.share.worker if session.share and session.share.worker in self.workers else ""
        homes = Counter(one.sharding.home for one in self.sessions.values() if one.sharding is not None)
        home = worker or min(self.workers, key=lambda name: homes[name], default="")
        sharding = ShardingStreamModifier(
            enable_sharding=True,
            policy=self.policy,
            workers=tuple(self.workers),
            memory=self._memory,
            capacity=self._capacity,
            loads=self._loads,
            home=home,
        )
        sharding.epoch = self.epoch
        if worker:
            session.told[worker] = len(session.sites)
        for tensor, (shape, dtype) in there.items():
            sharding.adopt(tensor, Spec(tuple(shape), dtype), worker)
        sharding.lost.update(lost)
        session.spread(sharding, PlacedRepeats(sharding))
        self._resume(session)

    def specs(
        self, client: str, there: Mapping[int, tuple[tuple[int, ...], str]], lost: Mapping[int, str]
    ) -> None:
        """What a worker holds of a client that is about to be spread."""
        session = self.sessions.get(client)
        if session is not None and session.switching:
            self._spread(session, there, lost)
            self.pump()

    def _resume(self, session: Session) -> None:
        """Go on with what waited."""
        while session.raw and session.sharding is not None and self.workers:
            batch = session.raw.popleft()
            self._put(session, batch.sequence, batch.instructions, batch.frames)

    def _switch(self, session: Session) -> None:
        """Once a client has nothing under way any more, ask what it has; then it can be spread."""
        if session.asked or session.queue or session.groups:
            return
        if session.share is not None:
            link = self.workers[session.share.worker]
            if isinstance(link, MeshLink):
                session.asked = True
                link.ask_specs(session.name)

    # --- clients come and go ---

    def connect(self, link: ClientLink) -> str:
        """Admit a client, with a namespace of its own."""
        name = next(self._client_names)
        session = self.sessions[name] = Session(name, link)
        if self.workers:
            self._assign(session)
        self.stream.follow_config()
        self.stream.add("CONNECT", f"CLIENT {name}", name)
        config.debug("dispatcher", f"client {name} connected")
        return name

    def disconnect(self, client: str) -> None:
        """Forget a client: what it still had to do, and what it still holds."""
        session = self.sessions.pop(client, None)
        if session is None:
            return
        session.join(None)
        session.queue.clear()
        session.raw.clear()
        session.head = None
        session.gone = True
        if session.sharding is not None:
            session.sharding.forget()
        for worker in self.workers.values():
            worker.forget(client)
        self.stream.add("DISCONNECT", f"CLIENT {client}", client)
        config.debug("dispatcher", f"client {client} disconnected")
        self.pump()

    # --- instructions in, instructions out ---

    def receive(
        self, client: str, sequence: int, instructions: Sequence[LocalInstruction], frames: Sequence[Any] = ()
    ) -> None:
        """Take in a batch of a client's instructions, and pass on what workers have room for."""
        self.stream.follow_config()
        session = self.sessions[client]
        shown = without_data(instructions)
        self.stream.add("RECV", f"CLIENT {client}", client, shown)
        if self.modifiers:
            instructions = streams.through(self.modifiers, flat(instructions))
        self._put(session, sequence, instructions, frames)
        self.pump()

    def _put(
        self, session: Session, sequence: int, instructions: Sequence[LocalInstruction], frames: Sequence[Any]
    ) -> None:
        """Queue a client's instructions; over several workers, those that take their place."""
        if session.switching or (session.sharding is not None and not self.workers):
            if not session.raw:
                session.waiting_since = time.monotonic()
            session.raw.append(Batch(sequence, instructions, frames))
            if session.sharding is not None and len(session.raw) == 1:
                answer_lost(session, session.sharding, session.raw[0])
            return
        if session.sharding is not None and session.repeats is not None:
            placed = session.repeats.place(session, instructions, self.sessions.values())
            if not session.queue:
                # A client that rested has not saved up: it starts level with the others.
                session.used = max(session.used, min(share.level for share in self._shares.values()))
            session.put(sequence, placed, frames)
            if laid := session.sharding.laid():
                self.stream.add("LAYOUT", f"CLIENT {session.name}", session.name, laid)
            return
        self._track(session, instructions)
        if session.lost:
            instructions = session.fail_lost(instructions)
        session.put(sequence, instructions, frames)

    def _track(self, session: Session, instructions: Sequence[LocalInstruction]) -> None:
        """Keep account of which tensors exist, and where."""
        handles = session.handles
        handle = self._handles.get(session.share.worker) if session.share else None
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
                elif kind is GetData:
                    handles[instruction.tensor]
                elif kind is Upload or kind is CreateTensor:
                    handles[instruction.result] = handle
                elif kind is Repeat:
                    for tensor in instruction.inputs:
                        handles[tensor]
                    results = instruction.results
                    for step in instruction.kept:
                        handles[results[step]] = handle
                    for tensor in instruction.freed:
                        del handles[tensor]
                elif kind is Site:
                    session.sites.append(instruction)
                elif kind is Lost:
                    handles.update(dict.fromkeys(instruction.tensors, handle))
        except KeyError as error:
            raise ProtocolError(f"Tensor not found: client {session.name} has no tensor {error}") from None

    def pump(self) -> None:
        """Pass on as much as the workers' windows let through."""
        if self._pumping:
            return  # an embedded worker answers at once, from inside the loop below
        self._pumping = True
        try:
            while self._send_next():
                pass
        finally:
            self._pumping = False
        for session in list(self.sessions.values()):
            if session.switching:
                self._switch(session)

    def _send_next(self) -> bool:
        """Send the next chunks of the client that has used least, if the workers they are for have room.

        If they have not, these workers are kept free for it: clients of fewer workers must not starve one
        of many. All chunks of a piece go out together, so all workers see all exchanges in one order.
        """
        waiting = [
            session
            for session in self.sessions.values()
            if session.head is not None or (session.queue and (session.share or session.sharding))
        ]
        reserved: set[str] = set()
        for session in sorted(waiting, key=_used) if len(waiting) > 1 else waiting:
            if session.share is not None and not session.share.has_room:
                reserved.add(session.share.worker)
                continue
            chunks = session.next_chunks(self._shares)
            shares = [chunk.share for chunk in chunks]
            if all(share.has_room and share.worker not in reserved for share in shares):
                session.head = None
                if not chunks:
                    session.done_without()
                for chunk in chunks:
                    chunk.share.sent(chunk)
                    self._send(self.workers[chunk.share.worker], chunk)
                return True
            reserved.update(share.worker for share in shares)
        return False

    def _send(self, worker: WorkerLink, chunk: Chunk) -> None:
        sequence = next(self._sequence)
        self._in_flight[sequence] = chunk
        name = chunk.session.name
        chunk.shown = without_data(chunk.instructions)
        self.stream.add("WORKER_SEND", f"WORKER {worker.name}", name, chunk.shown, count=chunk.weight)
        debug("dispatcher", chunk.instructions, prefix=f"{name} to {worker.name}: ")
        try:
            worker.send(sequence, chunk)
        except Exception as error:  # noqa: BLE001 - whose work cannot even be sent is at fault, and nobody else
            if self._in_flight.pop(sequence, None) is not None:
                chunk.share.finished(chunk, 0.0)
                chunk.session.done(chunk.group)
                self._refuse(chunk.session, f"{type(error).__name__}: {error}")

    def done(
        self,
        sequence: int,
        seconds: float,
        failed: Sequence[Failed],
        data: Sequence[Any],
        marks: Sequence[Mark] = (),
    ) -> None:
        """A worker has carried out what it was sent."""
        chunk, size = self._recv_from_worker(sequence, data)
        if chunk is None:
            return  # of a worker that was given up meanwhile
        self._bytes_sent += size
        session, name = chunk.session, chunk.session.name
        errors = {one.tensor: one.error for one in failed}
        refused: dict[int, str] = {reply.request: reply.error for reply in data if reply.error is not None}
        if refused:
            asked = (one for one in chunk.instructions if isinstance(one, GetData))
            errors |= {one.tensor: refused[one.request] for one in asked if one.request in refused}
        where, count = f"WORKER {chunk.share.worker}", chunk.weight
        if marks:
            self.stream.add("WORKER_RECV", where, name, marks)
        self.stream.add("WORKER_RECV", where, name, chunk.shown, errors, count)
        chunk.share.finished(chunk, seconds)
        if not session.gone:
            self.stream.add("SEND", f"CLIENT {name}", name, chunk.shown, errors, count)
            for reply in data:
                session.link.data(reply)
        session.done(chunk.group)
        self.pump()

    def _recv_from_worker(self, sequence: int, data: Sequence[Any]) -> tuple[Chunk | None, int]:
        """What a worker's answer is about, and how many bytes of data it brings."""
        return self._in_flight.pop(sequence, None), sum(reply.nbytes for reply in data)

    def client_of(self, sequence: int) -> ClientLink | None:
        """Whose work a worker was sent under this number."""
        chunk = self._in_flight.get(sequence)
        return None if chunk is None or chunk.session.gone else chunk.session.link

    def _refuse(self, session: Session, why: str) -> None:
        if not session.gone:
            session.link.refused(why)
            self.disconnect(session.name)

    def tick(self) -> None:
        """Give up what has waited too long for a worker. Called every now and then."""
        now = time.monotonic()
        for session in self.sessions.values():
            alone = session.share is None and not (session.sharding is not None and self.workers)
            queue = session.raw if session.sharding is not None else session.queue
            waits = alone and any(batch.sequence >= 0 for batch in queue)
            if waits and now - session.waiting_since > NO_WORKER_SECONDS:
                why = (
                    f"no worker is connected, and none came within {NO_WORKER_SECONDS:.0f} s. "
                    "Start one: python -m gt.worker --host HOST -p PORT"
                )
                waiting = list(queue)
                queue.clear()
                if session.sharding is None:
                    session.lose(why)
                for batch in waiting:
                    if session.sharding is not None:
                        session.sharding.abandon(flat(batch.instructions), why)
                    session.fail(batch.instructions, why)
                    if batch.sequence >= 0:
                        session.link.ack(batch.sequence)

    def get_stats(self) -> dict[str, Any]:
        """What the dispatcher has done and what it holds."""
        stats: dict[str, Any] = {
            "pid": os.getpid(),
            "clients": len(self.sessions),
            "workers": len(self.workers),
            "handles": sum(session.held for session in self.sessions.values()),
            "bytes_sent": self._bytes_sent,
            "queued_batches": sum(len(session.queue) for session in self.sessions.values()),
            "epoch": self.epoch,
        }
        spread = {
            s.name: s.sharding.get_stats() | s.repeats.get_stats()
            for s in self.sessions.values()
            if s.sharding is not None and s.repeats is not None
        }
        if spread:
            stats["sharding"] = spread
        if self.modifiers:
            stats["modifiers"] = streams.stats(self.modifiers)
        return stats

    def layouts(self, client: str, tensor: int) -> tuple[tuple[int, ...], list[Placement], str | None] | None:
        """Where a tensor lies: its shape, its placements, or why it is nowhere. None while that is open."""
        session = self.sessions[client]
        waits = session.switching or (session.raw and self.workers)
        return None if waits else layouts(session, tensor)


def _used(session: Session) -> float:
    return session.used
