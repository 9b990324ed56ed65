"""Messages between client, dispatcher and worker: requests, replies, and the batches that carry instructions.

A message is one encoded struct, followed by the bytes of its arrays. The instructions
themselves are in `gt.stream.instructions`.
"""

from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from gt.stream.instructions import *  # noqa: F403 - the path that the specification names has them, too
from gt.stream.instructions import (
    ArrayData,
    Injected,
    Instruction,
    Part,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.stream.instructions import (
    encode as encode_instruction,
)
from gt.stream.layouts import Placement

VERSION = 6
"""Both ends must speak the same one. Raise it when a struct below changes."""

MAX_MESSAGE = 1 << 26
"""How many bytes a message may have, the arrays behind it not counted."""

MAX_INSTRUCTIONS = 1 << 16
"""How many instructions a batch may have."""


# --- replies ---


class Data(msgspec.Struct, frozen=True, tag=10, array_like=True):
    """A tensor's data, or `error` says why there is none."""

    request: int
    array: ArrayData | None
    error: str | None = None
    part: Part | None = None
    direct_address: str = ""
    """If not empty: the worker that has sent the bytes by a direct read."""


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
    number: int = 0
    """For a worker: its number, which no other has. Its range of tensor ids follows from it."""


class Farewell(msgspec.Struct, frozen=True, tag=18, array_like=True):
    """The answer to Bye: everything that the client sent has been read and is on the tape."""


class DirectReads(msgspec.Struct, frozen=True, tag=16, array_like=True):
    """The addresses of workers on other hosts for direct reads, by name, and the token to present there."""

    token: str
    addresses: dict[str, str]


class Layouts(msgspec.Struct, frozen=True, tag=15, array_like=True):
    """A tensor's placements, its own first, then those of copies; or the error if it has none."""

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
    own: bool = False
    """Whether also those about the client that asks."""


class Bye(msgspec.Struct, frozen=True, tag=23, array_like=True):
    """The client leaves; nothing it holds is needed any more. The answer is Farewell."""


class GetLayout(msgspec.Struct, frozen=True, tag=25, array_like=True):
    """Ask for a tensor's placements."""

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
    direct_address: str = ""
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
    """Execute these instructions of this client. `shared_memory`: whether the client can read it."""

    sequence: int
    client: str
    instructions: list[Instruction]
    shared_memory: bool
    returned: list[str] = []
    """The worker's shared memory that is free again."""
    token: str = ""
    """What the client presents for direct reads, if it is on another host."""


class Done(msgspec.Struct, frozen=True, tag=32, array_like=True):
    """A Work was carried out; what failed in it, and the data it asked for."""

    sequence: int
    seconds: float
    """How long it took: what a fair share is measured in."""
    failed: list[Failed]
    data: list[Data]
    returned: list[str] = []
    """The client's shared memory that is free again."""
    marks: list[tuple[int, WorkerHotPathStart | WorkerHotPathEnd]] = []
    """The hot paths that the worker found in it: each mark with the index of the instruction it stands
    before, among the Work's instructions, those of a Replay counted one by one."""
    injected: list[Injected] = []
    """What the worker's modifiers put into it."""


class ForgetClient(msgspec.Struct, frozen=True, tag=33, array_like=True):
    """Drop everything of this client."""

    client: str


class GetWorkerStats(msgspec.Struct, frozen=True, tag=34, array_like=True):
    """Ask a worker what it has done."""

    request: int
    client: str = ""
    """On whose behalf: of modifiers, this client's are wanted."""


class WorkerStats(msgspec.Struct, frozen=True, tag=35, array_like=True):
    """What a worker has done."""

    request: int
    stats: dict[str, Any]


FromClient = Hello | Batch | GetStats | GetLayout | GetTape | FollowLog | Bye
ToClient = Welcome | Ack | Data | Stats | Layouts | DirectReads | TapeLines | Farewell | Refused
FromWorker = WorkerHello | Done | WorkerStats | Specs | Bye
ToWorker = Welcome | Work | ForgetClient | GetWorkerStats | GetSpecs | Mesh | Refused

encode = encode_instruction
"""Any message, too: one encoder serves all types."""
decode_by_server = msgspec.msgpack.Decoder(FromClient | WorkerHello | Done | WorkerStats | Specs).decode
decode_by_client = msgspec.msgpack.Decoder(ToClient).decode
decode_by_worker = msgspec.msgpack.Decoder(ToWorker).decode
