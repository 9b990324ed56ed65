"""The dispatcher: from clients' instructions to workers' instructions, and back.

It does no input or output itself. A socket, or an embedded server, calls `receive` with what a client sent
and `done` with what a worker answered; the dispatcher calls the links it was given.
"""

import itertools
import os
import time
from collections.abc import Sequence
from typing import Any, Protocol

from gt import config
from gt.dispatcher.fair_share import Chunk, FairShare, Session
from gt.dispatcher.instruction_stream import InstructionStream
from gt.dispatcher.tensor_handle import TensorHandle
from gt.errors import ProtocolError
from gt.transport import modifiers as streams
from gt.transport.describe import debug, without_data
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

NO_WORKER_SECONDS = 10.0
"""How long work waits for a worker to come, before it fails."""


class ClientLink(Protocol):
    """The way to a client."""

    def ack(self, sequence: int) -> None:
        """Every batch up to this one is done."""
        ...

    def data(self, reply: Any) -> None:
        """Data that was asked for."""
        ...

    def failed(self, request: int, error: str) -> None:
        """Data that was asked for, and cannot be had."""
        ...

    def refused(self, error: str) -> None:
        """It is not served any more."""
        ...


class WorkerLink(Protocol):
    """The way to a worker."""

    @property
    def name(self) -> str:
        """What the tape calls it."""
        ...

    def send(self, sequence: int, chunk: Chunk) -> None:
        """Have instructions carried out; `Dispatcher.done` is called with what came of them."""
        ...

    def forget(self, client: str) -> None:
        """Have everything of a client dropped."""
        ...


class Dispatcher:
    """Carries out the streams of many clients on many workers."""

    def __init__(self, modifiers: Sequence[streams.StreamModifier] = ()) -> None:
        self.stream = InstructionStream()
        self.modifiers = list(modifiers)
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
        self.stream.follow_config()
        self.stream.add("CONNECT", f"WORKER {link.name}")
        config.verbose(f"worker {link.name} joined; {len(self.workers)} in all")
        for session in self.sessions.values():
            if session.share is None:
                self._assign(session)
        self.pump()

    def remove_worker(self, name: str, why: str) -> None:
        """A worker is gone, and with it all tensors it held."""
        share = self._shares.pop(name)
        del self.workers[name], self._handles[name]
        self.stream.add("DISCONNECT", f"WORKER {name}")
        config.verbose(f"worker {name} left: {why}")
        lost = [(sequence, chunk) for sequence, chunk in self._in_flight.items() if chunk.share is share]
        for session in list(share.sessions):
            session.lose(why)
        for sequence, chunk in lost:
            del self._in_flight[sequence]
            self._fail(chunk.session, chunk.instructions, why)
            if chunk.ends is not None:
                chunk.session.link.ack(chunk.ends)
        for session in list(share.sessions):
            self._assign(session)
            if session.share is None:
                session.fail_queued()
        self.pump()

    def _assign(self, session: Session) -> None:
        """Give a client a worker: the one with the fewest clients. All its tensors live there."""
        shares = sorted(self._shares.values(), key=lambda share: len(share.sessions))
        session.join(shares[0] if shares else None)

    # --- clients come and go ---

    def connect(self, link: ClientLink) -> str:
        """Admit a client, with a namespace of its own."""
        name = next(self._client_names)
        session = self.sessions[name] = Session(name, link)
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
        session.gone = True
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
            instructions = streams.through(self.modifiers, instructions)
        self._track(session, instructions)
        if session.lost:
            instructions = session.fail_lost(instructions)
        session.put(sequence, instructions, frames)
        self.pump()

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
            progress = True
            while progress:
                progress = False
                for name, share in list(self._shares.items()):
                    chunk = share.next_chunk()
                    if chunk is not None:
                        self._send(self.workers[name], chunk)
                        progress = True
        finally:
            self._pumping = False

    def _send(self, worker: WorkerLink, chunk: Chunk) -> None:
        sequence = next(self._sequence)
        self._in_flight[sequence] = chunk
        name = chunk.session.name
        chunk.shown = without_data(chunk.instructions)
        self.stream.add("WORKER_SEND", f"WORKER {worker.name}", name, chunk.shown)
        debug("dispatcher", chunk.instructions, prefix=f"{name} to {worker.name}: ")
        try:
            worker.send(sequence, chunk)
        except Exception as error:  # noqa: BLE001 - whose work cannot even be sent is at fault, and nobody else
            if self._in_flight.pop(sequence, None) is not None:
                chunk.share.finished(chunk, 0.0)
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
        if marks:
            self.stream.add("WORKER_RECV", f"WORKER {chunk.share.worker}", name, marks)
        self.stream.add("WORKER_RECV", f"WORKER {chunk.share.worker}", name, chunk.shown, errors)
        chunk.share.finished(chunk, seconds)
        if not session.gone:
            self.stream.add("SEND", f"CLIENT {name}", name, chunk.shown, errors)
            for reply in data:
                session.link.data(reply)
            if chunk.ends is not None:
                session.link.ack(chunk.ends)
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

    def _fail(self, session: Session, instructions: Sequence[LocalInstruction], why: str) -> None:
        for instruction in instructions:
            if type(instruction) is GetData and not session.gone:
                session.link.failed(instruction.request, why)

    def tick(self) -> None:
        """Give up what has waited too long for a worker. Called every now and then."""
        now = time.monotonic()
        for session in self.sessions.values():
            waits = session.share is None and any(batch.sequence >= 0 for batch in session.queue)
            if waits and now - session.waiting_since > NO_WORKER_SECONDS:
                why = (
                    f"no worker is connected, and none came within {NO_WORKER_SECONDS:.0f} s. "
                    "Start one: python -m gt.worker --host HOST -p PORT"
                )
                waiting = list(session.queue)
                session.queue.clear()
                session.lose(why)
                for batch in waiting:
                    self._fail(session, batch.instructions, why)
                    if batch.sequence >= 0:
                        session.link.ack(batch.sequence)

    def get_stats(self) -> dict[str, Any]:
        """What the dispatcher has done and what it holds."""
        stats: dict[str, Any] = {
            "pid": os.getpid(),
            "clients": len(self.sessions),
            "workers": len(self.workers),
            "handles": sum(len(session.handles) for session in self.sessions.values()),
            "bytes_sent": self._bytes_sent,
            "queued_batches": sum(len(session.queue) for session in self.sessions.values()),
        }
        if self.modifiers:
            stats["modifiers"] = streams.stats(self.modifiers)
        return stats
