"""What travels between client, dispatcher and worker.

An instruction is data, never code: it is decoded against these types and nothing else. Tensors go by
the numbers their client gave them, and a worker keeps each client's numbers apart; the tape writes
tensor 42 of client c1 as `c1_42` where it speaks to a worker.

A message is one encoded struct, and behind it the raw bytes of the arrays it mentions.
"""

import math
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from gt.ops.dtypes import ITEMSIZE
from gt.transport.layouts import Placement, Replicated, Sharded

VERSION = 5
"""Both ends must speak the same one. Raise it when a struct below changes."""

MAX_MESSAGE = 1 << 26
"""How many bytes a message may have, the arrays behind it not counted."""

MAX_RANK = 64
"""How many dimensions an array may have."""

MAX_INSTRUCTIONS = 1 << 16
"""How many instructions a batch may have."""

MAX_ARRAY = 1 << 36
"""How many bytes an array may have."""


# --- instructions: the stream itself ---

Scalar = None | bool | int | float | str
Attribute = Scalar | list[Scalar | list[Scalar | list[Scalar | list[Scalar]]]]
"""What an op may be told besides its inputs: numbers, names, and lists of them, not nested without end."""


class ArrayData(msgspec.Struct, frozen=True, array_like=True):
    """An array as it travels."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes | int = 0
    """The bytes themselves, or their place behind the message."""
    shared: str = ""
    """If not empty: the bytes are in the shared memory of this name."""

    @property
    def sound(self) -> bool:
        """Whether an array can have this shape and dtype."""
        if self.dtype not in ITEMSIZE or len(self.shape) > MAX_RANK:
            return False
        if not all(0 <= size <= MAX_ARRAY for size in self.shape):
            return False
        return math.prod(self.shape) * ITEMSIZE[self.dtype] <= MAX_ARRAY

    @property
    def nbytes(self) -> int:
        """How many bytes the array has."""
        return math.prod(self.shape) * ITEMSIZE[self.dtype] if self.sound else 0

    def __repr__(self) -> str:
        return f"<{self.dtype} {list(self.shape)}, {self.nbytes} bytes>"


class Op(msgspec.Struct, frozen=True, tag=1, array_like=True, gc=False):
    """`TENSOR[result] := OP(inputs)`: one row of the op table, applied."""

    result: int
    op: str
    inputs: tuple[int, ...]
    attrs: dict[str, Attribute] | None
    site: int
    """The line of the user's code that asked for it, by number: see Site."""


class CreateTensor(msgspec.Struct, frozen=True, tag=2, array_like=True, gc=False):
    """`TENSOR[result] := USER_TENSOR(data)`: data that comes from the user's program."""

    result: int
    array: ArrayData
    part: "Part | None" = None
    """If not all of it is wanted: which part."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of a tensor: where it begins, its own shape, that of the whole, and how many parts there are."""

    start: tuple[int, ...]
    shape: tuple[int, ...]
    whole: tuple[int, ...]
    count: int

    @property
    def place(self) -> tuple[slice, ...]:
        """Where it is in the whole."""
        return tuple(slice(a, a + n) for a, n in zip(self.start, self.shape, strict=True))


class GetData(msgspec.Struct, frozen=True, tag=3, array_like=True, gc=False):
    """Send this tensor's data back. The reply carries the same request number."""

    request: int
    tensor: int
    part: Part | None = None
    """If the worker has only a part: which. The reply says so too."""


class Site(msgspec.Struct, frozen=True, tag=4, array_like=True, gc=False):
    """From here on, this number means this line of the user's code."""

    number: int
    where: str


class Lost(msgspec.Struct, frozen=True, tag=5, array_like=True, gc=False):
    """These tensors are gone, or never came to be, and why: what reads them fails with this cause."""

    tensors: list[int]
    error: str


class Signal(msgspec.Struct, frozen=True, tag=6, array_like=True, gc=False):
    """The user wants this tensor, which the next instruction makes, to lie so."""

    tensor: int
    name: str
    """What the user calls the signal."""
    layout: Replicated | Sharded
    workers: tuple[int, ...] = ()
    """Over which workers, by number; none for all."""


class ShardOp(msgspec.Struct, frozen=True, tag=7, array_like=True, gc=False):
    """`TENSOR[result] := ` the part of a tensor that is this worker's; all of it is here already."""

    tensor: int
    num_shards: int
    axis: int = 0
    start: int = 0
    stop: int = 0
    result: int = -1


class Exchange(msgspec.Struct, frozen=True, tag=8, array_like=True, gc=False):
    """`TENSOR[result] := TENSOR[tensor]`, laid out otherwise: workers send each other what they lack.

    Every worker of both meshes gets the same instruction, in the same order among all exchanges, and works
    out by itself what to send and what to wait for. One whose input failed says so to those who wait.
    """

    kind: str
    """What the tape calls it: one of KINDS."""
    number: int
    tensor: int
    result: int
    shape: tuple[int, ...]
    dtype: str
    source: Placement
    target: Placement
    epoch: int = 0
    """Which workers are meant by their names: those of this epoch."""


KINDS = ("AllGather", "ReduceScatter", "AllReduce", "AllToAll", "Move", "Reduce")
"""The kinds of exchange: parts to all; terms to parts; terms to all; parts to other parts; to other workers;
terms to other workers."""


class Placed(NamedTuple):
    """An instruction for some workers, the same or another for each. Never travels as such."""

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
    """`TENSOR[result] := ` the sum (or what the layout says) of the terms that workers have."""
    if source.workers != target.workers:
        kind = "Reduce"
    else:
        kind = "AllReduce" if target.whole else "ReduceScatter"
    return Exchange(kind, number, tensor, result, *spec, source, target, epoch)


class WorkerHotPathStart(msgspec.Struct, frozen=True, tag=9, array_like=True, gc=False):
    """What follows is expected to be this sequence, which was seen before."""

    sequence: str


class WorkerHotPathEnd(msgspec.Struct, frozen=True, tag=10, array_like=True, gc=False):
    """Here the sequence ends: all of it came, or something else did."""

    sequence: str
    complete: bool


Mark = WorkerHotPathStart | WorkerHotPathEnd
"""What a worker's detector puts into the stream."""


class Boundary(msgspec.Struct, frozen=True, tag=13, array_like=True, gc=False):
    """Here begins, or ends, what the user wants compiled by itself."""

    name: str
    """What the user calls the signal."""
    begins: bool


class Define(msgspec.Struct, frozen=True, tag=11, array_like=True, gc=False):
    """From here on, this number means these ops: see repeats.py."""

    sequence: int
    steps: list[tuple[str, tuple[int, ...], dict[str, Attribute] | None]]
    """Of each op its name, its inputs and its attributes. An input is the number of an earlier step or, below
    0, a tensor from outside."""
    sites: list[int]
    signals: list[tuple[int, Signal]] = []
    explicit: bool = False
    """Whether the user said where it begins and ends."""
    places: list[int] = []
    """Which of the numbers that a Replay says is which op's result; if empty, each in turn."""


class Replay(msgspec.Struct, frozen=True, tag=12, array_like=True, gc=False):
    """The ops of a sequence once more, and what is different this time."""

    sequence: int
    inputs: list[int]
    """The tensors from outside."""
    results: list[int]
    """What the steps make, or are picked from: numbers that follow each other, as the first and how many."""
    kept: list[int]
    """The steps whose results are needed afterwards."""
    freed: list[int]
    """Tensors from outside that are not."""
    changed: dict[int, dict[str, Attribute]] = {}
    """By step: its attributes, if they are others."""


class Upload(NamedTuple):
    """A CreateTensor whose array is in this very process, and has not been packed."""

    result: int
    array: np.ndarray


FreeTensor = int
"""A bare number: the client will not use this tensor again. Half of all instructions are this one."""

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
"""What travels."""

LocalInstruction = Instruction | Upload | Mark
"""The same inside a process."""


# --- replies ---


class Data(msgspec.Struct, frozen=True, tag=10, array_like=True):
    """A tensor's data, or `error` says why there is none."""

    request: int
    array: ArrayData | None
    error: str | None = None
    part: Part | None = None
    door: str = ""
    """If not empty: this worker has handed the bytes out at its door."""


class Fetched(NamedTuple):
    """A Data whose array is in this very process."""

    request: int
    array: np.ndarray | None
    error: str | None = None
    part: Part | None = None

    @property
    def nbytes(self) -> int:
        """How many bytes of data it brings."""
        return 0 if self.array is None else self.array.nbytes


class Failed(msgspec.Struct, frozen=True, array_like=True):
    """A tensor could not be made, and why."""

    tensor: int
    error: str


class Ack(msgspec.Struct, frozen=True, tag=11, array_like=True):
    """Every batch up to this one was carried out."""

    sequence: int
    returned: list[str] = []
    """The client's shared memory that is free again."""


class Refused(msgspec.Struct, frozen=True, tag=12, array_like=True):
    """The server will not talk to this peer any more, and says why."""

    error: str


class Welcome(msgspec.Struct, frozen=True, tag=13, array_like=True):
    """You are in, under this name."""

    name: str
    shared_memory: bool
    """Whether both sides see the same shared memory."""


class Doors(msgspec.Struct, frozen=True, tag=16, array_like=True):
    """Where workers on other hosts hand out data from now on, by name; and what to show there."""

    ticket: str
    addresses: dict[str, str]


class Layouts(msgspec.Struct, frozen=True, tag=15, array_like=True):
    """Where a tensor lies: its placements, the first one its own, others copies; or why it is nowhere."""

    request: int
    shape: tuple[int, ...]
    placements: list[Placement]
    error: str | None = None


class TapeLines(msgspec.Struct, frozen=True, tag=17, array_like=True):
    """Lines of the tape: the number of the first one, and the number that the next one will have."""

    request: int
    text: str
    first: int
    next: int


class Stats(msgspec.Struct, frozen=True, tag=14, array_like=True):
    """What every worker has done, by name, and the dispatcher."""

    request: int
    workers: dict[str, dict[str, Any]]
    dispatcher: dict[str, Any]


# --- what a client sends ---


ProcessId = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class Hello(msgspec.Struct, frozen=True, tag=20, array_like=True):
    """A client wants in."""

    version: int
    host: str
    """Which machine's shared memory it sees."""
    pid: ProcessId
    memory: str = ""
    """What the names of its shared memory begin with."""


class Batch(msgspec.Struct, frozen=True, tag=21, array_like=True):
    """Instructions, in order."""

    sequence: int
    instructions: list[Instruction]
    returned: list[str] = []
    """The worker's shared memory that is free again."""


class GetStats(msgspec.Struct, frozen=True, tag=22, array_like=True):
    """Ask for Stats."""

    request: int


class GetTape(msgspec.Struct, frozen=True, tag=26, array_like=True):
    """Ask for the lines of the tape from this number on, as far as they are kept."""

    request: int
    start: Annotated[int, msgspec.Meta(ge=0)]


class Bye(msgspec.Struct, frozen=True, tag=23, array_like=True):
    """The client leaves; nothing it holds is needed any more."""


class GetLayout(msgspec.Struct, frozen=True, tag=25, array_like=True):
    """Ask where a tensor lies."""

    request: int
    tensor: int


class FollowLog(msgspec.Struct, frozen=True, tag=24, array_like=True):
    """Write the tape to this file from now on, or to none. Only of a server that is the program's own."""

    path: str | None


# --- between dispatcher and worker ---


class WorkerHello(msgspec.Struct, frozen=True, tag=30, array_like=True):
    """A worker wants in."""

    version: int
    host: str
    pid: ProcessId
    memory: str
    name: str
    """What it wants to be called; empty to be given a name."""
    engine: str
    address: str = ""
    """Where other workers reach it."""
    token: str = ""
    """What they have to show."""
    memory_limit: int = 0
    """How many bytes its tensors may take; 0 if it does not say."""
    machine_memory: int = 0
    """How many bytes its machine has, for all workers there; 0 if that is not known."""
    door: str = ""
    """Where clients on other hosts collect data."""


class Mesh(msgspec.Struct, frozen=True, tag=36, array_like=True):
    """Who the workers are from now on, and how they are reached. Its number only grows: it is an epoch."""

    epoch: int
    members: "dict[str, Member]"


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A worker, as others need to know it."""

    address: str
    token: str
    host: str = ""
    """Which shared memory it sees; empty if none."""
    memory: int = 0
    """How many bytes its machine has, for all workers there; 0 if that is not known."""


class GetSpecs(msgspec.Struct, frozen=True, tag=37, array_like=True):
    """Ask a worker for the shapes and dtypes of what it holds of a client."""

    client: str


class Specs(msgspec.Struct, frozen=True, tag=38, array_like=True):
    """The shape and dtype of every tensor of a client, and what failed."""

    client: str
    tensors: dict[int, tuple[tuple[int, ...], str]]
    failed: dict[int, str]


class Work(msgspec.Struct, frozen=True, tag=31, array_like=True):
    """Carry out these instructions of this client. `shared_memory`: whether the client can read it."""

    sequence: int
    client: str
    instructions: list[Instruction]
    shared_memory: bool
    returned: list[str] = []
    """The worker's shared memory that is free again."""
    ticket: str = ""
    """What the client shows at the worker's door, if it is on another host."""


class Done(msgspec.Struct, frozen=True, tag=32, array_like=True):
    """A Work was carried out; what failed in it, and the data it asked for."""

    sequence: int
    seconds: float
    """How long it took: what a fair share is measured in."""
    failed: list[Failed]
    data: list[Data]
    returned: list[str] = []
    """The client's shared memory that is free again."""
    marks: list[WorkerHotPathStart | WorkerHotPathEnd] = []
    """The hot paths that began and ended in it."""


class ForgetClient(msgspec.Struct, frozen=True, tag=33, array_like=True):
    """Drop everything of this client."""

    client: str


class GetWorkerStats(msgspec.Struct, frozen=True, tag=34, array_like=True):
    """Ask a worker what it has done."""

    request: int


class WorkerStats(msgspec.Struct, frozen=True, tag=35, array_like=True):
    """What a worker has done."""

    request: int
    stats: dict[str, Any]


FromClient = Hello | Batch | GetStats | GetLayout | GetTape | FollowLog | Bye
ToClient = Welcome | Ack | Data | Stats | Layouts | Doors | TapeLines | Refused
FromWorker = WorkerHello | Done | WorkerStats | Specs | Bye
ToWorker = Welcome | Work | ForgetClient | GetWorkerStats | GetSpecs | Mesh | Refused

encode = msgspec.msgpack.Encoder().encode
decode_by_server = msgspec.msgpack.Decoder(FromClient | WorkerHello | Done | WorkerStats | Specs).decode
decode_by_client = msgspec.msgpack.Decoder(ToClient).decode
decode_by_worker = msgspec.msgpack.Decoder(ToWorker).decode
