"""The instruction table: one row for each type of instruction, and for each other kind of tape entry.

A row states which layers may issue an instruction, which tensors it reads, makes and frees, where it may
occur, and how the tape shows it. Clients, the dispatcher and workers read the table. The dispatcher checks a
client's batch against it once, on receipt.

To add a type of instruction: its struct in `instructions.py`, its row here, and its executor in
`gt/worker/executors.py`. An instruction that reads and makes no tensor goes to every worker of a client; one
that does needs a handler in `gt/dispatcher/sharding/modifier.py` to be used with several workers.

For speed, the loops over all instructions (`Dispatcher`, `Worker`, the detector) handle Op and FreeTensor
themselves, and use the table for the rest.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from gt.errors import ProtocolError
from gt.ops import TABLE as OPS
from gt.stream.instructions import (
    Boundary,
    CreateTensor,
    Define,
    Exchange,
    GetData,
    Injected,
    Lost,
    Op,
    Replay,
    ShardOp,
    Signal,
    Site,
    Upload,
    WorkerHotPathEnd,
    WorkerHotPathStart,
    encode,
)
from gt.stream.layouts import Sharded
from gt.stream.repeats import Repeat
from gt.stream.tape_entries import LayoutEvent, UploadEntry

CLIENT = "client"
DISPATCHER = "dispatcher"
WORKER = "worker"

EntryText = tuple[str, str, str]
"""The name of an instruction on the tape, the tensor it is about, and its other details."""


def _no_tensors(_: Any) -> Sequence[int]:
    return ()


def _encoded_size(instruction: Any) -> int:
    return len(encode(instruction))


def _not_sent(_: Any) -> int:
    return 0


class Row(NamedTuple):
    """One type of instruction."""

    type: type
    origins: frozenset[str]
    """The layers that may issue it; empty if it exists only on the wire or on the tape."""
    describe: Callable[[Any, str], EntryText]
    """Its text for the tape; the second argument is the prefix of tensor ids: empty, or `CLIENT_`."""
    reads: Callable[[Any], Sequence[int]] = _no_tensors
    """The tensors that must exist before it."""
    makes: Callable[[Any], Sequence[int]] = _no_tensors
    """The tensors that exist after it."""
    frees: Callable[[Any], Sequence[int]] = _no_tensors
    """The tensors that do not exist after it."""
    refuse: Callable[[Any], str | None] | None = None
    """The reason why a client may not send this instruction, although it may send others of the type; else
    None."""
    in_sequence: bool = False
    """Whether it may occur inside a repeated sequence; if not, it ends the sequence."""
    overlaps: bool = False
    """Whether a worker may execute it while a compiled step runs in the background."""
    without_data: Callable[[Any], Any] | None = None
    """If it holds data: the entry that the tape keeps in its place."""
    size: Callable[[Any], int] = _encoded_size
    """Its size on the tape, in bytes."""


INSTRUCTION_TABLE: dict[type, Row] = {}
IN_SEQUENCE: set[type] = set()
"""The types of instructions that may occur inside a repeated sequence."""
OVERLAPPING: set[type] = set()
"""The types of instructions that a worker may execute while a compiled step runs in the background."""
WITH_DATA: set[type] = set()
"""The types of instructions that hold a tensor's data."""
_ISSUED_BY: dict[str, set[type]] = {CLIENT: set(), DISPATCHER: set(), WORKER: set()}
_ALWAYS_ALLOWED: set[type] = set()
"""The types of instructions that a client may send without further checks."""


def register(row: Row) -> None:
    """Add a row, or replace that of the same type."""
    INSTRUCTION_TABLE[row.type] = row
    for origin, types in _ISSUED_BY.items():
        _set(types, row.type, origin in row.origins)
    _set(_ALWAYS_ALLOWED, row.type, CLIENT in row.origins and row.refuse is None)
    _set(IN_SEQUENCE, row.type, row.in_sequence)
    _set(OVERLAPPING, row.type, row.overlaps)
    _set(WITH_DATA, row.type, row.without_data is not None)


def unregister(kind: type) -> None:
    """Remove the row of a type. Raises KeyError if there is none."""
    del INSTRUCTION_TABLE[kind]
    for types in (*_ISSUED_BY.values(), _ALWAYS_ALLOWED, IN_SEQUENCE, OVERLAPPING, WITH_DATA):
        types.discard(kind)


def _set(types: set[type], kind: type, member: bool) -> None:
    (types.add if member else types.discard)(kind)


# --- text for the tape ---


def _describe_op(op: Op, prefix: str) -> EntryText:
    inputs, row = op.inputs, OPS.get(op.op)
    kind = row.kind if row is not None else "Op"
    key = "tensor_id" if kind == "CreateTensor" else "result"
    if len(inputs) == 2:
        rest = f"op={op.op} left={prefix}{inputs[0]} right={prefix}{inputs[1]}"
    else:
        rest = " ".join([f"op={op.op}", *[f"input={prefix}{tensor}" for tensor in inputs]])
    if op.attrs:
        rest = " ".join([rest, *[f"{name}={field(value)}" for name, value in op.attrs.items()]])
    return kind, f"{key}={prefix}{op.result}", rest


def _describe_exchange(one: Exchange, prefix: str) -> EntryText:
    rest = (
        f"input={prefix}{one.tensor} shape={field(one.shape)} from={one.source} to={one.target} "
        f"number={one.number}"
    )
    return one.kind, f"result={prefix}{one.result}", rest


def _describe_shard_op(one: ShardOp, prefix: str) -> EntryText:
    rest = (
        f"input={prefix}{one.tensor} num_shards={one.num_shards} axis={one.axis} start={one.start} "
        f"stop={one.stop}"
    )
    return "ShardOp", f"result={prefix}{one.result}", rest


def _describe_signal(one: Signal, prefix: str) -> EntryText:
    where = f"layout={one.layout} workers={field(one.workers) if one.workers else 'all'}"
    return "Signal", f"tensor_id={prefix}{one.tensor}", f"signal={one.name} {where}"


def _describe_upload(one: UploadEntry, prefix: str) -> EntryText:
    return "CreateTensor", f"tensor_id={prefix}{one.result}", f"shape={field(one.shape)} dtype={one.dtype}"


def _describe_layout(one: LayoutEvent, prefix: str) -> EntryText:
    placement = one.placement
    rest = f"shape={field(one.shape)} dtype={one.dtype} layout={placement}"
    if isinstance(placement.layout, Sharded) and placement.layout.sizes:
        rest += f" parts={','.join(map(str, placement.layout.sizes))}"
    return "Layout", f"tensor_id={prefix}{one.result}", rest


def field(value: object) -> str:
    """A value without spaces: the shape (128, 64) is `128x64`, and () is `()`."""
    return "x".join(map(str, value)) or "()" if isinstance(value, list | tuple) else str(value)


def _named(one: Any, prefix: str) -> EntryText:
    return type(one).__name__, "", ""


# --- columns ---


def _result(one: Any) -> Sequence[int]:
    return (one.result,)


def _tensor(one: Any) -> Sequence[int]:
    return (one.tensor,)


def _itself(tensor: int) -> Sequence[int]:
    return (tensor,)


def _kept(repeat: Repeat) -> Sequence[int]:
    return [repeat.results[step] for step in repeat.kept]


def _refuse_part(one: CreateTensor | GetData) -> str | None:
    return None if one.part is None else "with a part of a tensor, which only the dispatcher may do"


def _upload_without_data(one: Upload) -> UploadEntry:
    return UploadEntry(one.result, one.array.shape, one.array.dtype.name, one.array.nbytes)


def _create_without_data(one: CreateTensor) -> UploadEntry:
    shape = one.array.shape if one.part is None else one.part.shape
    return UploadEntry(one.result, shape, one.array.dtype, one.array.nbytes)


_BOTH = frozenset({CLIENT, DISPATCHER})
_ONLY_DISPATCHER = frozenset({DISPATCHER})
_ONLY_WORKER = frozenset({WORKER})
_NOT_ISSUED: frozenset[str] = frozenset()

for _row in (
    Row(
        int,
        _BOTH,
        lambda i, p: ("FreeTensor", f"tensor_id={p}{i}", ""),
        reads=_itself,
        frees=_itself,
        in_sequence=True,
        overlaps=True,
    ),
    Row(Op, _BOTH, _describe_op, reads=attrgetter("inputs"), makes=_result, in_sequence=True),
    Row(
        CreateTensor,
        _BOTH,
        _named,
        makes=_result,
        refuse=_refuse_part,
        in_sequence=True,
        without_data=_create_without_data,
    ),
    Row(
        Upload,
        _BOTH,
        _named,
        makes=_result,
        in_sequence=True,
        overlaps=True,
        without_data=_upload_without_data,
    ),
    Row(
        GetData,
        _BOTH,
        lambda i, p: ("GetData", f"tensor_id={p}{i.tensor}", f"request={i.request}"),
        reads=_tensor,
        refuse=_refuse_part,
    ),
    Row(
        Site,
        _BOTH,
        lambda i, p: ("Site", f"site={i.number}", i.fields),
        in_sequence=True,
        overlaps=True,
    ),
    Row(
        Lost,
        _BOTH,
        lambda i, p: ("Lost", f"tensors={len(i.tensors)}", f"ERROR {i.error}"),
        makes=attrgetter("tensors"),
    ),
    Row(Signal, _BOTH, _describe_signal, in_sequence=True),
    Row(Boundary, _BOTH, lambda i, p: ("Boundary", f"signal={i.name}", f"begins={i.begins}")),
    # The tape shows the instructions of a repeat one by one.
    Row(
        Repeat,
        _BOTH,
        _named,
        reads=attrgetter("inputs"),
        makes=_kept,
        frees=attrgetter("freed"),
        overlaps=True,
    ),
    Row(ShardOp, _ONLY_DISPATCHER, _describe_shard_op, reads=_tensor, makes=_result),
    Row(Exchange, _ONLY_DISPATCHER, _describe_exchange, reads=_tensor, makes=_result),
    Row(
        WorkerHotPathStart,
        _ONLY_WORKER,
        lambda i, p: ("HotPathStart", f"sequence={i.sequence}", ""),
        size=_not_sent,
    ),
    Row(
        WorkerHotPathEnd,
        _ONLY_WORKER,
        lambda i, p: ("HotPathEnd", f"sequence={i.sequence} complete={i.complete}", ""),
        size=_not_sent,
    ),
    # On the wire only: a RepeatDecoder turns these into repeats on receipt.
    Row(Define, _NOT_ISSUED, _named),
    Row(Replay, _NOT_ISSUED, _named),
    # On the tape only:
    Row(UploadEntry, _NOT_ISSUED, _describe_upload, makes=_result, size=attrgetter("nbytes")),
    Row(LayoutEvent, _NOT_ISSUED, _describe_layout, makes=_result, size=_not_sent),
    Row(Injected, _NOT_ISSUED, lambda i, p: (i.command, i.subject, i.details), size=_not_sent),
):
    register(_row)


# --- checks and lookups ---


def check_from_client(instructions: Sequence[Any]) -> None:
    """Raise ProtocolError if a client may not send one of these instructions."""
    if _ALWAYS_ALLOWED.issuperset(map(type, instructions)):
        return
    for instruction in instructions:
        kind = type(instruction)
        if kind in _ALWAYS_ALLOWED:
            continue
        check_issued(instruction, CLIENT)
        refuse = INSTRUCTION_TABLE[kind].refuse
        why = refuse(instruction) if refuse is not None else None
        if why is not None:
            raise ProtocolError(f"a client may not issue {kind.__name__} {why}")


def check_issued(instruction: Any, origin: str) -> None:
    """Raise ProtocolError if a layer (`CLIENT`, `DISPATCHER` or `WORKER`) may not issue an instruction."""
    kind = type(instruction)
    if kind in _ISSUED_BY[origin]:
        return
    if kind not in INSTRUCTION_TABLE:
        raise ProtocolError(f"{instruction!r:.200} is a {kind.__name__}, not an instruction")
    issuers = " or a ".join(sorted(INSTRUCTION_TABLE[kind].origins)) or "connection"
    raise ProtocolError(f"a {origin} may not issue {kind.__name__}, only a {issuers} may")


def made_by(instruction: Any) -> Sequence[int]:
    """The tensors that an instruction makes; none for objects that are not instructions."""
    row = INSTRUCTION_TABLE.get(type(instruction))
    return () if row is None else row.makes(instruction)
