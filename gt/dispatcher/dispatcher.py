"""The dispatcher: receives instructions from many clients, and sends them to workers.

It does no input or output itself. A server calls `receive` with a client's batch and `done` with a worker's
results; the dispatcher calls the links that the server gave it.
"""

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from gt import logs
from gt.dispatcher.fair_share import Batch, Chunk
from gt.dispatcher.instruction_stream import InstructionStream, Reply
from gt.dispatcher.links import ClientLink, MeshLink, WorkerLink
from gt.dispatcher.session import Session
from gt.dispatcher.sharding.placed_repeats import PlacedRepeats
from gt.dispatcher.sharding.placing import answer_lost, layouts
from gt.dispatcher.sharding.policy import SHARD_THRESHOLD, Policy, ShardingPolicy
from gt.dispatcher.worker_pool import WorkerPool
from gt.ops import Spec
from gt.stream import modifiers as streams
from gt.stream.describe import debug, without_data
from gt.stream.instruction_table import check_from_client
from gt.stream.instructions import LocalInstruction, Mark, Site
from gt.stream.layouts import Placement
from gt.stream.repeats import flat
from gt.stream.tape_entries import Injected
from gt.stream.tensor_ids import dispatcher_id
from gt.transport.protocol import Failed

NO_WORKER_SECONDS = 10.0
"""How many seconds instructions wait for a worker to join before they fail."""


class Dispatcher:
    """Executes the streams of many clients on many workers.

    With one worker, or without sharding, all tensors of a client are on one worker. With several, each client
    has a ShardingStreamModifier, which places its tensors according to the policy.
    """

    def __init__(
        self,
        modifiers: Sequence[streams.ModifierLike] | streams.Installed = (),
        enable_sharding: bool = True,
        shard_threshold: int = SHARD_THRESHOLD,
        policy: Policy | None = None,
    ) -> None:
        self.stream = InstructionStream()
        self.modifiers = streams.Installed(modifiers)
        """Creates the modifiers of each client."""
        self.enable_sharding = enable_sharding
        self.policy: Policy = policy or ShardingPolicy(shard_threshold)
        self.pool = WorkerPool()
        self.workers = self.pool.links
        self.sessions: dict[str, Session] = {}
        self._client_names = (f"c{n}" for n in itertools.count(1))
        self._in_flight: dict[int, Chunk] = {}
        self._sequence = itertools.count()
        self._pumping = False
        self._bytes_sent = 0
        """How many bytes of data clients have read."""

    # --- workers join and leave ---

    def add_worker(self, link: WorkerLink) -> None:
        """Use another worker from now on."""
        self.pool.add(link)
        self.stream.follow_config()
        self.stream.add("CONNECT", f"WORKER {link.name}")
        logs.verbose(f"worker {link.name} joined; {len(self.workers)} in all")
        logs.debug("dispatcher", f"worker {link.name} registered; {len(self.workers)} in all")
        self.pool.begin_epoch(self.sessions.values())
        for session in list(self.sessions.values()):
            if session.sharding is not None:
                session.sharding.add_worker(link.name)
                self._resume(session)
            elif session.share is None:
                self._assign(session)
            elif self._shards:
                session.switching = True
        self.pump()

    def remove_worker(self, name: str, why: str) -> None:
        """Remove a worker that has left. The tensors that only it held are lost; `why` is their error."""
        share = self.pool.remove(name)
        self.stream.add("DISCONNECT", f"WORKER {name}")
        logs.verbose(f"worker {name} left: {why}")
        logs.debug("dispatcher", f"worker {name} left: {why}; {len(self.workers)} remain")
        self.pool.begin_epoch(self.sessions.values())
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
                session.queue.popleft()  # the Lost instruction: the sharding modifier is given `session.lost`
                waiting = [Batch(b.sequence, b.instructions[b.position :], b.frames) for b in session.queue]
                session.queue.clear()
                session.unplaced.extendleft(reversed(waiting))
                self._start_sharding(session, {}, session.lost)
                continue
            self._assign(session)
            if session.share is None:
                session.fail_queued()
        for session in list(self.sessions.values()):
            if session.sharding is not None:
                self._lose_worker(session, name, why)
        self.pump()

    def _lose_worker(self, session: Session, name: str, why: str) -> None:
        """Remove a worker that a client's tensors are sharded over."""
        assert session.sharding is not None
        session.sites_sent.pop(name, None)
        for chunk in session.next_group or ():
            if chunk.share.worker == name:
                session.fail(chunk.instructions, why)
                session.done(chunk.group)
        if session.next_group is not None:
            session.next_group = [chunk for chunk in session.next_group if chunk.share.worker != name]
        rest = list(session.sharding.remove_worker(name, why))
        if rest:
            session.put(-1, rest, ())

    def _assign(self, session: Session) -> None:
        """Assign a client to all workers or, without sharding, to the one with the fewest clients."""
        if self._shards and not session.handles:
            self._start_sharding(session, {}, {})
            return
        session.join(self.pool.least_used)

    # --- from one worker to several ---

    @property
    def _shards(self) -> bool:
        """Whether clients' tensors are placed on several workers."""
        return self.enable_sharding and self.pool.can_share_tensors

    def _start_sharding(
        self, session: Session, specs: Mapping[int, tuple[tuple[int, ...], str]], lost: Mapping[int, str]
    ) -> None:
        """Place a client's new tensors on all workers from now on; existing tensors are not moved."""
        sharding = self.pool.sharding_for(session, self.policy, self.sessions.values())
        worker = session.share.worker if session.share and session.share.worker in self.workers else ""
        if worker:
            session.sites_sent[worker] = len(session.sites)
        for tensor, (shape, dtype) in specs.items():
            sharding.adopt(tensor, Spec(tuple(shape), dtype), worker)
        sharding.lost.update(lost)
        session.shard_over_workers(sharding, PlacedRepeats(sharding))
        self._resume(session)

    def receive_specs(
        self, client: str, tensors: Mapping[int, tuple[tuple[int, ...], str]], lost: Mapping[int, str]
    ) -> None:
        """Receive the specs of a client's tensors, which `request_specs` requested from its worker."""
        session = self.sessions.get(client)
        if session is not None and session.switching:
            self._start_sharding(session, tensors, lost)
            self.pump()

    def _resume(self, session: Session) -> None:
        """Queue the batches that waited for workers."""
        while session.unplaced and session.sharding is not None and self.workers:
            batch = session.unplaced.popleft()
            self._enqueue(session, batch.sequence, batch.instructions, batch.frames)

    def _switch(self, session: Session) -> None:
        """Request the specs of a client's tensors from its worker, once all its instructions are done."""
        if session.requested_specs or session.queue or session.groups:
            return
        if session.share is not None:
            link = self.workers[session.share.worker]
            if isinstance(link, MeshLink):
                session.requested_specs = True
                link.request_specs(session.name)

    # --- clients connect and leave ---

    def connect(self, link: ClientLink) -> str:
        """Add a client; returns its name, which no other client has."""
        name = next(self._client_names)
        modifiers = self.modifiers.for_client("dispatcher", dispatcher_id)
        session = self.sessions[name] = Session(name, link, self.stream, modifiers)
        if self.workers:
            self._assign(session)
        self.stream.follow_config()
        self.stream.add("CONNECT", f"CLIENT {name}", name)
        where = (
            "all workers" if session.sharding else session.share.worker if session.share else "no worker yet"
        )
        logs.debug("dispatcher", f"client {name} connected; it uses {where}")
        return name

    def unfinished(self, client: str) -> bool:
        """Whether a client that leaves has instructions that must still be executed, for the log file.

        Without a log file they are dropped, since nothing can read their results.
        """
        session = self.sessions.get(client)
        return session is not None and session.busy and bool(self.workers) and self.stream.has_file

    def disconnect(self, client: str) -> None:
        """Remove a client, its queue and its tensors."""
        session = self.sessions.pop(client, None)
        if session is None:
            return
        session.join(None)
        session.queue.clear()
        session.unplaced.clear()
        session.next_group = None
        session.gone = True
        if session.sharding is not None:
            session.sharding.forget()
        for worker in self.workers.values():
            worker.forget(client)
        self.stream.add("DISCONNECT", f"CLIENT {client}", client)
        logs.debug("dispatcher", f"client {client} disconnected")
        self.pump()

    # --- instructions in, instructions out ---

    def receive(
        self, client: str, sequence: int, instructions: Sequence[LocalInstruction], frames: Sequence[Any] = ()
    ) -> None:
        """Queue a batch of a client's instructions, and send chunks to workers that have room.

        Raises ProtocolError, before any of it is executed, if a client may not send one of them.
        """
        self.stream.follow_config()
        session = self.sessions[client]
        check_from_client(instructions)
        shown = without_data(instructions)
        if Site in map(type, instructions):
            session.site_texts |= {one.number: one.fields for one in instructions if type(one) is Site}
        self.stream.add("RECV", f"CLIENT {client}", client, shown, sites=session.site_texts)
        session.unanswered.append((sequence, shown))
        if session.modifiers:
            instructions = session.modifiers.process(flat(instructions))
        self._enqueue(session, sequence, instructions, frames)
        self.pump()

    def _enqueue(
        self, session: Session, sequence: int, instructions: Sequence[LocalInstruction], frames: Sequence[Any]
    ) -> None:
        """Queue a client's instructions; with several workers, place them first."""
        if session.switching or (session.sharding is not None and not self.workers):
            if not session.unplaced:
                session.waiting_since = time.monotonic()
            session.unplaced.append(Batch(sequence, instructions, frames))
            if session.sharding is not None and len(session.unplaced) == 1:
                answer_lost(session, session.sharding, session.unplaced[0])
            return
        if session.sharding is not None and session.repeats is not None:
            placed = session.repeats.place(session, instructions, self.sessions.values())
            if not session.queue:
                # A client that was idle gets no credit for that time: it continues at the level of the
                # others.
                session.used = max(session.used, self.pool.lowest_level)
            session.put(sequence, placed, frames)
            if events := session.sharding.layout_events():
                self.stream.add("LAYOUT", f"CLIENT {session.name}", session.name, events)
            return
        session.track(instructions, self.pool.handles.get(session.share.worker) if session.share else None)
        if session.lost:
            instructions = session.fail_lost(instructions)
        session.put(sequence, instructions, frames)

    def pump(self) -> None:
        """Send chunks until no worker has room, or nothing is queued."""
        if self._pumping:
            return  # an embedded worker calls `done` from inside the loop below
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
        """Send the next group of chunks of the client that has used least, if all its workers have room.

        If they have not, they are reserved for it: clients that use fewer workers must not starve it. The
        chunks of a group are sent together, so all workers see all exchanges in the same order.
        """
        waiting = [
            session
            for session in self.sessions.values()
            if session.next_group is not None or (session.queue and (session.share or session.sharding))
        ]
        reserved: set[str] = set()
        for session in sorted(waiting, key=_used) if len(waiting) > 1 else waiting:
            if session.share is not None and not session.share.has_room:
                reserved.add(session.share.worker)
                continue
            chunks = session.next_chunks(self.pool.shares)
            shares = [chunk.share for chunk in chunks]
            if all(share.has_room and share.worker not in reserved for share in shares):
                session.next_group = None
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
        sites = chunk.session.site_texts
        self.stream.add("WORKER_SEND", f"WORKER {worker.name}", name, chunk.shown, sites=sites)
        debug("dispatcher", chunk.instructions, f"{name} to {worker.name}: ", sites)
        try:
            worker.send(sequence, chunk)
        except Exception as error:  # noqa: BLE001 - the chunk's client is refused
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
        marks: Sequence[tuple[int, Mark]] = (),
        injected: Sequence[Injected] = (),
    ) -> None:
        """Receive a worker's results for a chunk: failures, and replies to reads.

        `marks` are the hot paths that the worker detected, each with the index of the instruction it
        precedes.
        """
        chunk, size = self._recv_from_worker(sequence, data)
        if chunk is None:
            return  # from a worker that was removed meanwhile
        self._bytes_sent += size
        session, name = chunk.session, chunk.session.name
        errors = {one.tensor: one.error for one in failed}
        replies = {reply.request: Reply(reply.nbytes, reply.error) for reply in data}
        where = f"WORKER {chunk.share.worker}"
        if injected:
            self.stream.add("WORKER_RUN", where, name, injected)
        self.stream.add("WORKER_RECV", where, name, chunk.shown, errors, replies, marks)
        chunk.share.finished(chunk, seconds)
        if not session.gone:
            session.record(errors, replies)
        session.done(chunk.group)  # before the data, so that the tape has the read when the client gets it
        for reply in data if not session.gone else ():
            session.link.data(reply)
        self.pump()

    def _recv_from_worker(self, sequence: int, data: Sequence[Any]) -> tuple[Chunk | None, int]:
        """The chunk that a worker's results are for, and the size of the data in bytes."""
        return self._in_flight.pop(sequence, None), sum(reply.nbytes for reply in data)

    def client_of(self, sequence: int) -> ClientLink | None:
        """The link to the client whose chunk was sent with this number; None if it has left."""
        chunk = self._in_flight.get(sequence)
        return None if chunk is None or chunk.session.gone else chunk.session.link

    def _refuse(self, session: Session, why: str) -> None:
        if not session.gone:
            session.link.refused(why)
            self.disconnect(session.name)

    def tick(self) -> None:
        """Fail batches that have waited too long for a worker. Servers call it several times a second."""
        now = time.monotonic()
        for session in self.sessions.values():
            alone = session.share is None and not (session.sharding is not None and self.workers)
            queue = session.unplaced if session.sharding is not None else session.queue
            waits = alone and any(batch.sequence >= 0 for batch in queue)
            if waits and now - session.waiting_since > NO_WORKER_SECONDS:
                why = (
                    f"no worker is connected, and none joined within {NO_WORKER_SECONDS:.0f} s. "
                    "Start one: python -m gt.worker --host HOST -p PORT"
                )
                session.give_up(queue, why)

    def get_stats(self, client: str = "") -> dict[str, Any]:
        """Statistics of the dispatcher; for modifiers, those of this client's instances."""
        stats: dict[str, Any] = {
            "pid": os.getpid(),
            "clients": len(self.sessions),
            "workers": len(self.workers),
            "handles": sum(session.held for session in self.sessions.values()),
            "bytes_sent": self._bytes_sent,
            "queued_batches": sum(len(session.queue) for session in self.sessions.values()),
            "epoch": self.pool.epoch,
        }
        spread = {
            s.name: s.sharding.get_stats() | s.repeats.get_stats()
            for s in self.sessions.values()
            if s.sharding is not None and s.repeats is not None
        }
        if spread:
            stats["sharding"] = spread
        if self.modifiers and client in self.sessions:
            stats["modifiers"] = self.sessions[client].modifiers.get_stats()
        return stats

    def layouts(self, client: str, tensor: int) -> tuple[tuple[int, ...], list[Placement], str | None] | None:
        """A tensor's shape and placements, or the error if it has none; None while that is not known yet."""
        session = self.sessions[client]
        waits = session.switching or (session.unplaced and self.workers)
        return None if waits else layouts(session, tensor)


def _used(session: Session) -> float:
    return session.used
