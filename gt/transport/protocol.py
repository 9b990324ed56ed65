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
    Instruction,
    Part,
    WorkerHotPathEnd,
    WorkerHotPathStart,
)
from gt.stream.layouts import Placement
from gt.stream.tape_entries import Injected

VERSION = 7
"""The protocol version, which must be equal on both ends. Raise it when a struct below changes."""

MAX_MESSAGE = 1 << 26
"""How many bytes a message may have, the arrays behind it not counted."""

MAX_INSTRUCTIONS = 1 << 16
"""How many instructions a batch may have."""

MAX_REPEATED = 1 << 18
"""How many results the repeats of a batch may have."""


# --- replies ---


class Data(msgspec.Struct, frozen=True, tag=10, array_like=True):
    """A tensor's data, or the error in place of it."""

    request: int
    array: ArrayData | None
    error: str | None = None
    part: Part | None = None
    direct_address: str = ""
    """If not empty: the worker that sends the bytes by a direct read."""


class Fetched(NamedTuple):
    """A Data whose array is in the same process."""

    request: int
    array: np.ndarray | None
    error: str | None = None
    part: Part | None = None

    @property
    def nbytes(self) -> int:
        """The size of its data in bytes."""
        return 0 if self.array is None else self.array.nbytes


class Failed(msgspec.Struct, frozen=True, array_like=True):
    """A tensor that could not be computed, and the error."""

    tensor: int
    error: str


class Ack(msgspec.Struct, frozen=True, tag=11, array_like=True):
    """All batches up to this one were executed."""

    sequence: int
    returned: list[str] = []
    """The client's shared memory that is free again."""


class Refused(msgspec.Struct, frozen=True, tag=12, array_like=True):
    """The server refuses this peer, for this reason."""

    error: str


class Welcome(msgspec.Struct, frozen=True, tag=13, array_like=True):
    """The server accepts a client or worker, under this name."""

    name: str
    shared_memory: bool
    """Whether both sides can use the same shared memory."""
    number: int = 0
    """For a worker: its number, which no other has. Its range of tensor ids follows from it."""


class ByeAck(msgspec.Struct, frozen=True, tag=18, array_like=True):
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
    """The statistics of every worker, by name, and of the dispatcher."""

    request: int
    workers: dict[str, dict[str, Any]]
    dispatcher: dict[str, Any]


# --- from client to server ---


ProcessId = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class Hello(msgspec.Struct, frozen=True, tag=20, array_like=True):
    """The first message of a client."""

    version: int
    host: str
    """The id of the shared memory that it can use: see `shared_memory.host`."""
    pid: ProcessId
    memory: str = ""
    """The prefix of the names of its shared memory."""


class Batch(msgspec.Struct, frozen=True, tag=21, array_like=True):
    """Instructions, in order."""

    sequence: int
    instructions: list[Instruction]
    returned: list[str] = []
    """The worker's shared memory that is free again."""


class GetStats(msgspec.Struct, frozen=True, tag=22, array_like=True):
    """Request Stats."""

    request: int


class GetTape(msgspec.Struct, frozen=True, tag=26, array_like=True):
    """Request the lines of the tape from this number on, as far as they are kept."""

    request: int
    start: Annotated[int, msgspec.Meta(ge=0)]
    own: bool = False
    """Whether to include the lines about this client."""


class Bye(msgspec.Struct, frozen=True, tag=23, array_like=True):
    """A client disconnects, and its tensors can be freed; or a worker does. The answer is ByeAck."""


class GetLayout(msgspec.Struct, frozen=True, tag=25, array_like=True):
    """Request a tensor's placements."""

    request: int
    tensor: int


class FollowLog(msgspec.Struct, frozen=True, tag=24, array_like=True):
    """Write the tape to this file from now on, or to none. Only for a server that the program has started."""

    path: str | None


# --- between dispatcher and worker ---


class WorkerHello(msgspec.Struct, frozen=True, tag=30, array_like=True):
    """The first message of a worker."""

    version: int
    host: str
    pid: ProcessId
    memory: str
    name: str
    """The requested name; empty for any."""
    engine: str
    address: str = ""
    """Its address for other workers."""
    token: str = ""
    """The token that other workers must present there."""
    memory_limit: int = 0
    """How many bytes its tensors may take; 0 if unknown."""
    machine_memory: int = 0
    """How many bytes its machine has, for all workers there; 0 if unknown."""
    direct_address: str = ""
    """Its address for direct reads."""


class Members(msgspec.Struct, frozen=True, tag=36, array_like=True):
    """The current workers and their addresses. Each change of them begins a new epoch, a larger number."""

    epoch: int
    members: "dict[str, Member]"


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A worker's address, token and host, for other workers."""

    address: str
    token: str
    host: str = ""
    """The id of the shared memory that it can use; empty if there is none."""
    memory: int = 0
    """How many bytes its machine has, for all workers there; 0 if unknown."""


class GetSpecs(msgspec.Struct, frozen=True, tag=37, array_like=True):
    """Request the shapes and dtypes of a client's tensors from a worker."""

    client: str


class Specs(msgspec.Struct, frozen=True, tag=38, array_like=True):
    """The shapes and dtypes of a client's tensors, and the errors of its failed ones."""

    client: str
    tensors: dict[int, tuple[tuple[int, ...], str]]
    failed: dict[int, str]


class Work(msgspec.Struct, frozen=True, tag=31, array_like=True):
    """Execute instructions of a client. `shared_memory`: whether the client can use the worker's."""

    sequence: int
    client: str
    instructions: list[Instruction]
    shared_memory: bool
    returned: list[str] = []
    """The worker's shared memory that is free again."""
    token: str = ""
    """The token that the client presents for direct reads, if it is on another host."""


class Done(msgspec.Struct, frozen=True, tag=32, array_like=True):
    """A Work was executed: its failures, and the data that it read."""

    sequence: int
    seconds: float
    """How long it took. Fair shares are measured in this."""
    failed: list[Failed]
    data: list[Data]
    returned: list[str] = []
    """The client's shared memory that is free again."""
    marks: list[tuple[int, WorkerHotPathStart | WorkerHotPathEnd]] = []
    """The hot paths that the worker detected in it: each marker with the index of the instruction that it
    precedes among the Work's instructions, with repeats expanded."""
    injected: list[Injected] = []
    """The instructions that the worker's modifiers added."""


class ForgetClient(msgspec.Struct, frozen=True, tag=33, array_like=True):
    """Free all tensors of a client."""

    client: str


class GetWorkerStats(msgspec.Struct, frozen=True, tag=34, array_like=True):
    """Request a worker's statistics."""

    request: int
    client: str = ""
    """The client whose modifiers' statistics are included."""


class WorkerStats(msgspec.Struct, frozen=True, tag=35, array_like=True):
    """A worker's statistics."""

    request: int
    stats: dict[str, Any]


FromClient = Hello | Batch | GetStats | GetLayout | GetTape | FollowLog | Bye
ToClient = Welcome | Ack | Data | Stats | Layouts | DirectReads | TapeLines | ByeAck | Refused
ToWorker = Welcome | Work | ForgetClient | GetWorkerStats | GetSpecs | Members | Refused

encode = msgspec.msgpack.Encoder().encode
"""Encodes any message."""
decode_by_server = msgspec.msgpack.Decoder(FromClient | WorkerHello | Done | WorkerStats | Specs).decode
decode_by_client = msgspec.msgpack.Decoder(ToClient).decode
decode_by_worker = msgspec.msgpack.Decoder(ToWorker).decode
