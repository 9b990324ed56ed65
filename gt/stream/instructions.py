"""Instructions: the stream between client, dispatcher and worker.

Above each type is its row of the instruction table: see `instruction_table.py`.
An instruction is data, never code, and is decoded only as one of these types. A tensor has the id that its
client gave it. A worker has a separate id space for each client: in lines about workers, the log shows tensor
42 of client c1 as `c1_42`. Messages, which carry instructions, are in `gt.transport.protocol`.
"""

import functools
import math
import operator
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from gt.ops import TABLE as OPS
from gt.ops.dtypes import ITEMSIZE
from gt.stream.instruction_table import (
    ANY_SENDER,
    DISPATCHER,
    INSTRUCTION_TABLE,
    WORKER,
    EntryText,
    Row,
    field,
    its_result,
    its_tensor,
    not_sent,
    register,
    row,
)
from gt.stream.layouts import Placement, Replicated, Sharded
from gt.stream.tape_entries import UploadEntry

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


class Sent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An instruction that is sent between processes. Its tag is its number there."""


FreeTensor = int
"""A bare tensor id: the client has freed the tensor. Half of all instructions are frees."""


def _itself(tensor: int) -> Sequence[int]:
    return (tensor,)


register(
    Row(
        FreeTensor,
        ANY_SENDER,
        lambda tensor, prefix: ("FreeTensor", f"tensor_id={prefix}{tensor}", ""),
        reads=_itself,
        frees=_itself,
        in_sequence=True,
        overlaps=True,
    )
)


@row(*ANY_SENDER, reads=attrgetter("inputs"), makes=its_result, in_sequence=True)
class Op(Sent, frozen=True, tag=1):
    """`TENSOR[result] := OP(inputs)`: one row of the op table, applied."""

    result: int
    op: str
    inputs: tuple[int, ...]
    attrs: dict[str, Attribute] | None
    site: int
    """The number of its site: the line and the module of the user's program that issued it."""

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        inputs, op = self.inputs, OPS.get(self.op)
        kind = op.kind if op is not None else "Op"
        key = "tensor_id" if kind == "CreateTensor" else "result"
        if len(inputs) == 2:
            rest = f"op={self.op} left={prefix}{inputs[0]} right={prefix}{inputs[1]}"
        else:
            rest = " ".join([f"op={self.op}", *[f"input={prefix}{tensor}" for tensor in inputs]])
        if self.attrs:
            rest = " ".join([rest, *[f"{name}={field(value)}" for name, value in self.attrs.items()]])
        return kind, f"{key}={prefix}{self.result}", rest


def _refuse_part(one: "CreateTensor | GetData") -> str | None:
    return None if one.part is None else "with a part of a tensor, which only the dispatcher may do"


def _create_without_data(one: "CreateTensor") -> UploadEntry:
    shape = one.array.shape if one.part is None else one.part.shape
    return UploadEntry(one.result, shape, one.array.dtype, one.array.nbytes)


@row(*ANY_SENDER, makes=its_result, refuse=_refuse_part, in_sequence=True, without_data=_create_without_data)
class CreateTensor(Sent, frozen=True, tag=2):
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


@row(*ANY_SENDER, reads=its_tensor, refuse=_refuse_part)
class GetData(Sent, frozen=True, tag=3):
    """Send this tensor's data back. The reply carries the same request number."""

    request: int
    tensor: int
    part: Part | None = None
    """The part that this worker has; None for all of it. The reply repeats it."""

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        return "GetData", f"tensor_id={prefix}{self.tensor}", f"request={self.request}"


@row(*ANY_SENDER, in_sequence=True, overlaps=True)
class Site(Sent, frozen=True, tag=4):
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

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        return "Site", f"site={self.number}", self.fields


@row(*ANY_SENDER, makes=attrgetter("tensors"))
class Lost(Sent, frozen=True, tag=5):
    """These tensors are lost, or could not be made: instructions that read them fail with this error."""

    tensors: list[int]
    error: str

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        return "Lost", f"tensors={len(self.tensors)}", f"ERROR {self.error}"


@row(*ANY_SENDER, in_sequence=True)
class Signal(Sent, frozen=True, tag=6):
    """Give the tensor that the next instruction makes this layout."""

    tensor: int
    name: str
    """The name of the signal."""
    layout: Replicated | Sharded
    workers: tuple[int, ...] = ()
    """The numbers of the workers; empty for all."""

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        where = f"layout={self.layout} workers={field(self.workers) if self.workers else 'all'}"
        return "Signal", f"tensor_id={prefix}{self.tensor}", f"signal={self.name} {where}"


@row(DISPATCHER, reads=its_tensor, makes=its_result)
class ShardOp(Sent, frozen=True, tag=7):
    """`TENSOR[result] := ` one worker's part of a tensor, all of which is on this worker."""

    tensor: int
    num_shards: int
    axis: int = 0
    start: int = 0
    stop: int = 0
    result: int = -1

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        rest = (
            f"input={prefix}{self.tensor} num_shards={self.num_shards} axis={self.axis} start={self.start} "
            f"stop={self.stop}"
        )
        return "ShardOp", f"result={prefix}{self.result}", rest


@row(DISPATCHER, reads=its_tensor, makes=its_result)
class Exchange(Sent, frozen=True, tag=8):
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

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        rest = (
            f"input={prefix}{self.tensor} shape={field(self.shape)} from={self.source} to={self.target} "
            f"number={self.number}"
        )
        return self.kind, f"result={prefix}{self.result}", rest


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


@row(WORKER, size=not_sent)
class WorkerHotPathStart(msgspec.Struct, frozen=True, tag=9, array_like=True, gc=False):
    """The next instructions are predicted to be this known sequence."""

    sequence: str

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        return "HotPathStart", f"sequence={self.sequence}", ""


@row(WORKER, size=not_sent)
class WorkerHotPathEnd(msgspec.Struct, frozen=True, tag=10, array_like=True, gc=False):
    """The end of a predicted sequence: whether it was complete."""

    sequence: str
    complete: bool

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        return "HotPathEnd", f"sequence={self.sequence} complete={self.complete}", ""


Mark = WorkerHotPathStart | WorkerHotPathEnd
"""The markers of a hot path detector."""


@row(*ANY_SENDER)
class Boundary(Sent, frozen=True, tag=13):
    """The beginning or end of a region that is compiled as one sequence."""

    name: str
    """The name of the signal."""
    begins: bool

    def words(self, prefix: str) -> EntryText:
        """Its text for the tape."""
        return "Boundary", f"signal={self.name}", f"begins={self.begins}"


# On the wire only: a RepeatDecoder turns these into repeats on receipt.
@row()
class Define(Sent, frozen=True, tag=11):
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


@row()
class Replay(Sent, frozen=True, tag=12):
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


def _upload_without_data(one: "Upload") -> UploadEntry:
    return UploadEntry(one.result, one.array.shape, one.array.dtype.name, one.array.nbytes)


@row(*ANY_SENDER, makes=its_result, in_sequence=True, overlaps=True, without_data=_upload_without_data)
class Upload(NamedTuple):
    """A CreateTensor whose array is in the same process, and is not encoded."""

    result: int
    array: np.ndarray


if TYPE_CHECKING:
    Instruction = FreeTensor | Sent
else:
    _sent = [kind for kind in INSTRUCTION_TABLE if issubclass(kind, Sent)]
    Instruction = functools.reduce(operator.or_, _sent, FreeTensor)
"""The instructions that are sent between processes."""

LocalInstruction = Instruction | Upload | Mark
"""The instructions within a process."""
