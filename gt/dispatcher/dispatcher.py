"""The dispatcher: from clients' instructions to workers' instructions, and back."""

import itertools
from typing import Any, Protocol

from gt.config import debug, verbose
from gt.dispatcher.instruction_stream import InstructionStream
from gt.dispatcher.tensor_handle import TensorHandle
from gt.errors import ProtocolError
from gt.transport import protocol


class WorkerLink(Protocol):
    """What the dispatcher needs of a worker: a name, and messages in and out."""

    @property
    def name(self) -> str:
        """What the tape calls it."""
        ...

    def receive(self, batch: bytes) -> bytes:
        """Carry out a batch of encoded instructions and encode the replies, one each."""
        ...

    def get_stats(self) -> dict[str, Any]:
        """What it has done and what it holds."""
        ...


class Dispatcher:
    """Carries out the streams of many clients on a worker."""

    def __init__(self, worker: WorkerLink):
        self.worker = worker
        self.stream = InstructionStream()
        self._handles: dict[str, dict[int, TensorHandle]] = {}
        self._names = (f"c{n}" for n in itertools.count(1))
        verbose(f"dispatcher ready with {worker.name}")

    # --- what a connection calls ---

    def connect(self) -> str:
        """Admit a client, with a namespace of its own."""
        client = next(self._names)
        self._handles[client] = {}
        self.stream.follow_config()
        self.stream.add("CONNECT", f"CLIENT {client}")
        debug("dispatcher", [f"client {client} connected"])
        return client

    def receive(self, client: str, batch: bytes) -> bytes | None:
        """Carry out a batch of a client's instructions; the reply is that of a GetData at its end."""
        self.stream.follow_config()
        instructions = protocol.decode_client_batch(batch)
        translated = []
        for instruction in instructions:
            self.stream.add("RECV", f"CLIENT {client}", instruction)
            translated.append(self._translate(client, instruction))
        replies = self._carry_out(translated)
        if not instructions or not isinstance(instructions[-1], protocol.GetData):
            return None
        data = replies[-1]
        assert isinstance(data, protocol.Data)
        reply = protocol.Data(instructions[-1].request, data.array, data.error)
        self.stream.add("SEND", f"CLIENT {client}", reply)
        return protocol.encode(reply)

    def disconnect(self, client: str) -> None:
        """Free everything a client still holds, and forget it."""
        left = [protocol.FreeTensor(tensor) for tensor in self._handles[client]]
        self._carry_out([self._translate(client, instruction) for instruction in left])
        del self._handles[client]
        self.stream.add("DISCONNECT", f"CLIENT {client}")
        debug("dispatcher", [f"client {client} disconnected"])
        if not self._handles:
            self.stream.close()

    # --- the way to the workers ---

    def _translate(self, client: str, instruction: protocol.ClientInstruction) -> protocol.WorkerInstruction:
        """The same instruction in physical names; keeps track of what exists."""
        handles = self._handles[client]
        match instruction:
            case protocol.CreateTensor(result, array):
                handle = handles[result] = self._place(client, result)
                return protocol.WorkerCreateTensor(handle.name, array)
            case protocol.Op(result, op, inputs, attrs, where):
                names = tuple(self._find(client, tensor).name for tensor in inputs)
                handle = handles[result] = self._place(client, result)
                return protocol.WorkerOp(handle.name, op, names, attrs, where)
            case protocol.FreeTensor(tensor):
                name = self._find(client, tensor).name
                del handles[tensor]
                return protocol.WorkerFreeTensor(name)
            case protocol.GetData(_, tensor):
                return protocol.WorkerGetData(self._find(client, tensor).name)

    def _place(self, client: str, tensor: int) -> TensorHandle:
        return TensorHandle(client, tensor, self.worker.name)

    def _find(self, client: str, tensor: int) -> TensorHandle:
        try:
            return self._handles[client][tensor]
        except KeyError:
            raise ProtocolError(f"Tensor not found: client {client} has no tensor {tensor}") from None

    def _carry_out(self, instructions: list[protocol.WorkerInstruction]) -> list[protocol.Reply]:
        if not instructions:
            return []
        source = f"WORKER {self.worker.name}"
        debug("dispatcher", instructions, prefix=f"to {self.worker.name}: ")
        for instruction in instructions:
            self.stream.add("WORKER_SEND", source, instruction)
        replies, _ = self._recv_from_worker(protocol.encode(instructions))
        for instruction, reply in zip(instructions, replies, strict=True):
            self.stream.add("WORKER_RECV", source, reply, about=instruction)
        return replies

    def _recv_from_worker(self, batch: bytes) -> tuple[list[protocol.Reply], int]:
        """The worker's replies to a batch, one each, and their size in bytes."""
        replies = self.worker.receive(batch)
        return protocol.decode_replies(replies), len(replies)

    def get_stats(self) -> dict[str, dict[str, Any]]:
        """Every worker's statistics, by name."""
        return {self.worker.name: self.worker.get_stats()}
