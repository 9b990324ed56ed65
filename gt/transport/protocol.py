"""The instructions: what a client sends to the dispatcher, and the dispatcher to a worker.

An instruction is data, never code: it is decoded against these types and nothing else. The client's
instructions name tensors by the client's own numbers; the worker's name them by physical names such
as `c1_42`, since many clients share a worker.
"""

from typing import Any

import msgspec
import numpy as np


class ArrayData(msgspec.Struct, frozen=True, array_like=True):
    """An array as it travels."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> "ArrayData":
        """An array, packed."""
        return cls(array.shape, array.dtype.name, array.tobytes())

    def unpack(self) -> np.ndarray:
        """The array, writable and its own."""
        return np.frombuffer(self.data, dtype=self.dtype).reshape(self.shape).copy()

    def __repr__(self) -> str:
        return f"<{self.dtype} {list(self.shape)}, {len(self.data)} bytes>"


class CreateTensor(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """`TENSOR[result] := USER_TENSOR(data)`: data that comes from the user's program."""

    result: int
    array: ArrayData


class Op(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """`TENSOR[result] := OP(inputs)`: one row of the op table, applied."""

    result: int
    op: str
    inputs: tuple[int, ...]
    attrs: dict[str, Any]
    where: str
    """The line of the user's code that asked for it, for error messages."""


class FreeTensor(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The client will not use this tensor again."""

    tensor: int


class GetData(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Send this tensor's data back. The reply carries the same request number."""

    request: int
    tensor: int


class WorkerCreateTensor(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Hold this data under this name."""

    result: str
    array: ArrayData


class WorkerOp(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Compute one op of the table over tensors the worker holds."""

    result: str
    op: str
    inputs: tuple[str, ...]
    attrs: dict[str, Any]
    where: str


class WorkerFreeTensor(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Drop this tensor."""

    tensor: str


class WorkerGetData(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Send this tensor's data."""

    tensor: str


class Ack(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """An instruction was carried out, or `error` says why not."""

    error: str | None = None


class Data(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A tensor's data, or `error` says why there is none."""

    request: int
    array: ArrayData | None
    error: str | None = None


ClientInstruction = CreateTensor | Op | FreeTensor | GetData
WorkerInstruction = WorkerCreateTensor | WorkerOp | WorkerFreeTensor | WorkerGetData
Reply = Ack | Data

encode = msgspec.msgpack.Encoder().encode
decode_client_batch = msgspec.msgpack.Decoder(list[ClientInstruction]).decode
decode_worker_batch = msgspec.msgpack.Decoder(list[WorkerInstruction]).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
decode_replies = msgspec.msgpack.Decoder(list[Reply]).decode


def size(message: ClientInstruction | WorkerInstruction | Reply | None) -> int:
    """How many bytes a message takes, counted without copying the data it carries."""
    if message is None:
        return 0
    array: ArrayData | None = getattr(message, "array", None)
    if array is None:
        return len(encode(message))
    empty = msgspec.structs.replace(array, data=b"")
    return len(encode(msgspec.structs.replace(message, array=empty))) + len(array.data)
