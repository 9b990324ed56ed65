"""The worker: names to values, and one instruction after the other."""

import dataclasses
import functools
from typing import Any

from gt.config import debug
from gt.ops import TABLE
from gt.transport import protocol
from gt.worker.engine.base import Engine, load_engine


@dataclasses.dataclass(frozen=True)
class Failure:
    """What stands in place of a value that could not be computed, and of all that depends on it."""

    message: str


class Worker:
    """Carries out instructions on one engine.

    A failing instruction never stops the worker: its result becomes a Failure, which spreads to
    whatever is computed from it and is reported when somebody asks for the data.
    """

    def __init__(self, name: str = "worker_0", engine: str = "pytorch", backend: str | None = None):
        self.name = name
        self.engine_name = backend or engine
        self.tensors: dict[str, Any] = {}
        self.total_instructions = 0

    @functools.cached_property
    def engine(self) -> Engine:
        """The engine, loaded on first use: importing torch takes a second that not every program needs."""
        debug("worker", [f"loading the {self.engine_name} engine"], prefix=f"{self.name}: ")
        return load_engine(self.engine_name)

    def receive(self, batch: bytes) -> bytes:
        """Carry out a batch of encoded instructions and encode the replies, one each."""
        instructions = protocol.decode_worker_batch(batch)
        debug("worker", instructions, prefix=f"{self.name}: ")
        self.total_instructions += len(instructions)
        return protocol.encode([self.execute(instruction) for instruction in instructions])

    def execute(self, instruction: protocol.WorkerInstruction) -> protocol.Reply:
        """Carry out one instruction."""
        match instruction:
            case protocol.WorkerOp():
                self.tensors[instruction.result] = value = self._run(instruction)
                return protocol.Ack(value.message if isinstance(value, Failure) else None)
            case protocol.WorkerCreateTensor():
                self.tensors[instruction.result] = self.engine.put(instruction.array.unpack())
                return protocol.Ack()
            case protocol.WorkerFreeTensor():
                del self.tensors[instruction.tensor]
                return protocol.Ack()
            case protocol.WorkerGetData():
                value = self.tensors[instruction.tensor]
                if isinstance(value, Failure):
                    return protocol.Data(0, None, value.message)
                return protocol.Data(0, protocol.ArrayData.of(self.engine.get(value)))

    def _run(self, instruction: protocol.WorkerOp) -> Any:
        inputs = [self.tensors[name] for name in instruction.inputs]
        for value in inputs:
            if isinstance(value, Failure):
                return value
        try:
            return self.engine.run(TABLE[instruction.op], inputs, instruction.attrs)
        except Exception as error:  # noqa: BLE001 - the engine's errors are the user's, and reach them as data
            shapes = ", ".join(str(list(value.shape)) for value in inputs)
            return Failure(
                f"{instruction.op}({shapes}) failed on {self.name} ({self.engine_name}): "
                f"{type(error).__name__}: {error}\n  asked for at {instruction.where}"
            )

    def get_stats(self) -> dict[str, Any]:
        """What this worker has done and what it holds."""
        return {
            "engine": self.engine_name,
            "total_instructions": self.total_instructions,
            "tensors": len(self.tensors),
        }
