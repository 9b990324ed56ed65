"""The worker: names to values, and one instruction after the other."""

import dataclasses
import functools
from collections.abc import Callable
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
            case protocol.WorkerOp(result, op, names, attrs, where):
                inputs = [self.tensors[name] for name in names]
                value = next((value for value in inputs if isinstance(value, Failure)), None)
                if value is None:
                    value = self._try(
                        lambda: self.engine.run(TABLE[op], inputs, attrs),
                        lambda: f"{op}({_shapes(inputs)}), asked for at {where},",
                    )
                self.tensors[result] = value
                return _ack(value)
            case protocol.WorkerCreateTensor(result, array):
                value = self._try(lambda: self.engine.put(array.unpack()), lambda: f"taking in {array!r}")
                self.tensors[result] = value
                return _ack(value)
            case protocol.WorkerFreeTensor(tensor):
                del self.tensors[tensor]
                return protocol.Ack()
            case protocol.WorkerGetData(tensor):
                value = self.tensors[tensor]
                if not isinstance(value, Failure):
                    value = self._try(
                        lambda: protocol.ArrayData.of(self.engine.get(value)), lambda: "giving out data"
                    )
                if isinstance(value, Failure):
                    return protocol.Data(0, None, value.message)
                return protocol.Data(0, value)

    def _try(self, compute: Callable[[], Any], what: Callable[[], str]) -> Any:
        """A value, or the Failure to compute it; `what` says what failed."""
        try:
            return compute()
        except Exception as error:  # noqa: BLE001 - whatever the engine raises reaches the user, as data
            where = f"{self.name} ({self.engine_name})"
            return Failure(f"{what()} failed on {where}: {type(error).__name__}: {error}")

    def get_stats(self) -> dict[str, Any]:
        """What this worker has done and what it holds."""
        return {
            "engine": self.engine_name,
            "total_instructions": self.total_instructions,
            "tensors": len(self.tensors),
        }


def _ack(value: Any) -> protocol.Ack:
    return protocol.Ack(value.message if isinstance(value, Failure) else None)


def _shapes(values: list[Any]) -> str:
    return ", ".join(str(list(value.shape)) for value in values)
