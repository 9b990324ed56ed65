"""Instructions: the stream between client, dispatcher and worker.

An instruction is data, never code, and is decoded only as one of these types. A tensor has the id that its
client gave it. A worker has a separate id space for each client: in lines about workers, the log shows tensor
42 of client c1 as `c1_42`. Messages, which carry instructions, are in `gt.transport.protocol`.
"""

import math
from typing import NamedTuple

import msgspec
import numpy as np

from gt.ops.dtypes import ITEMSIZE
from gt.stream.layouts import Placement, Replicated, Sharded

MAX_RANK = 64
"""The largest rank of an array."""

MAX_ARRAY = 1 << 36
"""The largest size of an array in bytes."""

Scalar = None | bool | int | float | str
Attribute = Scalar | list[Scalar | list[Scalar | list[Scalar | list[Scalar]]]]
"""An attribute of an op: a number, a string, or a list of these, nested up to four levels."""


class ArrayData(msgspec.Struct, frozen=True, array_like=True):
    """An array in a message."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes | int = 0
    """The bytes themselves, or the index of the frame behind the message that has them."""
    shared: str = ""
    """If not empty: the name of the shared memory that has the bytes."""

    @property
    def is_valid(self) -> bool:
        """Whether the shape and dtype are valid."""
        if self.dtype not in ITEMSIZE or len(self.shape) > MAX_RANK:
            return False
        if not all(0 <= size <= MAX_ARRAY for size in self.shape):
            return False
        return math.prod(self.shape) * ITEMSIZE[self.dtype] <= MAX_ARRAY

    @property
    def nbytes(self) -> int:
        """How many bytes the array has."""
        return math.prod(self.shape) * ITEMSIZE[self.dtype] if self.is_valid else 0

    def __repr__(self) -> str:
        return f"<{self.dtype} {list(self.shape)}, {self.nbytes} bytes>"


class Op(msgspec.Struct, frozen=True, tag=1, array_like=True, gc=False):
    """`TENSOR[result] := OP(inputs)`: one row of the op table, applied."""

    result: int
    op: str
    inputs: tuple[int, ...]
    attrs: dict[str, Attribute] | None
    site: int
    """The number of its site: the line and the module of the user's program that issued it."""


class CreateTensor(msgspec.Struct, frozen=True, tag=2, array_like=True, gc=False):
    """`TENSOR[result] := USER_TENSOR(data)`: data that comes from the user's program."""

    result: int
    array: ArrayData
    part: "Part | None" = None
    """The part of the array to use; None for all of it."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a tensor: its offset and shape, the shape of the tensor, and the number of parts."""

    start: tuple[int, ...]
    shape: tuple[int, ...]
    whole: tuple[int, ...]
    count: int

    @property
    def slices(self) -> tuple[slice, ...]:
        """Its slices in the whole tensor."""
        return tuple(slice(a, a + n) for a, n in zip(self.start, self.shape, strict=True))


class GetData(msgspec.Struct, frozen=True, tag=3, array_like=True, gc=False):
    """Send this tensor's data back. The reply carries the same request number."""

    request: int
    tensor: int
    part: Part | None = None
    """The part that this worker has; None for all of it. The reply repeats it."""


class Site(msgspec.Struct, frozen=True, tag=4, array_like=True, gc=False):
    """The definition of a site: a place in the user's program that ops refer to by number."""

    number: int
    where: str
    """The line of the user's code, as `FILE:LINE`; empty if it is not known."""
    module: str = ""
    """The path of the `torch.nn.Module` that ran (`model.layers.0.self_attn.q_proj`), or `AdamW.step`."""
    phase: str = ""
    """Empty in a forward pass; else `backward`, or `recompute` if a backward pass runs a module again."""

    @property
    def fields(self) -> str:
        """Its text on the tape. The line is last, because the name of a file may have spaces."""
        module = f"module={self.module} " if self.module else ""
        phase = f"phase={self.phase} " if self.phase else ""
        return f"{module}{phase}at={self.where}" if self.where else f"{module}{phase}".rstrip()

    @property
    def text(self) -> str:
        """Its text in an error."""
        prefixes = {"": "", "backward": "the backward pass of ", "recompute": "the recomputation of "}
        where = self.where or "an unknown line"
        if self.module:
            return f"{where} in {prefixes.get(self.phase, '')}{self.module}"
        return f"{where} in the backward pass" if self.phase else where


class Lost(msgspec.Struct, frozen=True, tag=5, array_like=True, gc=False):
    """These tensors are lost, or could not be made: instructions that read them fail with this error."""

    tensors: list[int]
    error: str


class Signal(msgspec.Struct, frozen=True, tag=6, array_like=True, gc=False):
    """Give the tensor that the next instruction makes this layout."""

    tensor: int
    name: str
    """The name of the signal."""
    layout: Replicated | Sharded
    workers: tuple[int, ...] = ()
    """The numbers of the workers; empty for all."""


class ShardOp(msgspec.Struct, frozen=True, tag=7, array_like=True, gc=False):
    """`TENSOR[result] := ` one worker's part of a tensor, all of which is on this worker."""

    tensor: int
    num_shards: int
    axis: int = 0
    start: int = 0
    stop: int = 0
    result: int = -1


class Exchange(msgspec.Struct, frozen=True, tag=8, array_like=True, gc=False):
    """`TENSOR[result] := TENSOR[tensor]`, with another placement: workers send each other its parts.

    Every worker of both meshes gets the same instruction, in the same order among all exchanges, and computes
    by itself what to send and what to receive. A worker whose input failed sends the error instead.
    """

    kind: str
    """Its name on the tape: one of EXCHANGE_KINDS."""
    number: int
    tensor: int
    result: int
    shape: tuple[int, ...]
    dtype: str
    source: Placement
    target: Placement
    epoch: int = 0
    """The epoch in which the names of workers are valid."""


EXCHANGE_KINDS = ("AllGather", "ReduceScatter", "AllReduce", "AllToAll", "Move", "Reduce")
"""The kinds of exchange: parts to all; terms to parts; terms to all; parts to other parts; to other workers;
terms to other workers."""


class Placed(NamedTuple):
    """Instructions for some workers, one for each. Never sent as such."""

    workers: tuple[str, ...]
    each: "tuple[Instruction | Upload, ...]"


def MatmulOp(left: int, right: int, result: int, site: int = 0) -> Op:
    """`TENSOR[result] := TENSOR[left] @ TENSOR[right]`."""
    return Op(result, "matmul", (left, right), None, site)


def ReduceOp(
    tensor: int,
    result: int,
    number: int,
    spec: tuple[tuple[int, ...], str],
    source: Placement,
    target: Placement,
    epoch: int = 0,
) -> Exchange:
    """`TENSOR[result] := ` the sum (or maximum, or minimum) of the terms that workers have."""
    if source.workers != target.workers:
        kind = "Reduce"
    else:
        kind = "AllReduce" if target.whole else "ReduceScatter"
    return Exchange(kind, number, tensor, result, *spec, source, target, epoch)


class WorkerHotPathStart(msgspec.Struct, frozen=True, tag=9, array_like=True, gc=False):
    """The next instructions are predicted to be this known sequence."""

    sequence: str


class WorkerHotPathEnd(msgspec.Struct, frozen=True, tag=10, array_like=True, gc=False):
    """The end of a predicted sequence: whether it was complete."""

    sequence: str
    complete: bool


Mark = WorkerHotPathStart | WorkerHotPathEnd
"""The markers of a hot path detector."""


class Boundary(msgspec.Struct, frozen=True, tag=13, array_like=True, gc=False):
    """The beginning or end of a region that is compiled as one sequence."""

    name: str
    """The name of the signal."""
    begins: bool


class Define(msgspec.Struct, frozen=True, tag=11, array_like=True, gc=False):
    """Defines the sequence that a number stands for: see repeats.py."""

    sequence: int
    steps: list[tuple[str, tuple[int, ...], dict[str, Attribute] | None]]
    """For each op: its name, its inputs and its attributes. An input is the index of an earlier step
    or, below 0, a tensor from outside."""
    sites: list[int]
    signals: list[tuple[int, Signal]] = []
    explicit: bool = False
    """Whether the user marked where it begins and ends."""
    result_indices: list[int] = []
    """For each op: the index of its result among the ids of a Replay; empty if the ids are in order."""


class Replay(msgspec.Struct, frozen=True, tag=12, array_like=True, gc=False):
    """A repeat: the number of its sequence, and the values that differ in this occurrence."""

    sequence: int
    inputs: list[int]
    """The tensors from outside."""
    results: list[int]
    """The ids of the results, or the ids they are picked from, as ranges: `[start, count, ...]`."""
    kept: list[int]
    """The steps whose results are kept; the others are freed."""
    freed: list[int]
    """The tensors from outside that are freed."""
    changed: dict[int, dict[str, Attribute]] = {}
    """By step: its attributes, where they differ from the sequence's."""


class Upload(NamedTuple):
    """A CreateTensor whose array is in the same process, and is not encoded."""

    result: int
    array: np.ndarray


FreeTensor = int
"""A bare tensor id: the client has freed the tensor. Half of all instructions are frees."""

Instruction = (
    FreeTensor
    | Op
    | CreateTensor
    | GetData
    | Site
    | Lost
    | Signal
    | ShardOp
    | Exchange
    | Define
    | Replay
    | Boundary
)
"""The instructions that are sent between processes."""

LocalInstruction = Instruction | Upload | Mark
"""The instructions within a process."""


class Injected(msgspec.Struct, frozen=True, array_like=True):
    """The description of an instruction that a worker's modifier added to the stream."""

    command: str
    subject: str
    """The tensor it is about."""
    details: str


encode = msgspec.msgpack.Encoder().encode
