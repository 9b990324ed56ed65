"""The instruction table: one row for each type of instruction, and for each other kind of tape entry.

A row states which layers may issue an instruction, which tensors it reads, makes and frees, where it may
occur, and how the tape shows it. Clients, the dispatcher and workers read the table. The dispatcher checks a
client's batch against it once, on receipt.

A row is written above its type, with `row`; most are in `instructions.py`. To add a type of instruction: its
struct and row there, and its executor in `gt/worker/executors.py`. An instruction that reads and makes no
tensor goes to every worker of a client; one that does needs a handler in
`gt/dispatcher/sharding/modifier.py` to be used with several workers.

For speed, the loops over all instructions (`Dispatcher`, `Worker`, the detector) handle Op and FreeTensor
themselves, and use the table for the rest.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from gt.errors import ProtocolError

CLIENT = "client"
DISPATCHER = "dispatcher"
WORKER = "worker"

ANY_SENDER = (CLIENT, DISPATCHER)
"""The origins of an instruction that a client may issue: what it sends, the dispatcher passes on."""

EntryText = tuple[str, str, str]
"""The name of an instruction on the tape, the tensor it is about, and its other details."""

encode = msgspec.msgpack.Encoder().encode


def no_tensors(_: Any) -> Sequence[int]:
    """The column of an instruction that reads, makes or frees none."""
    return ()


def its_result(one: Any) -> Sequence[int]:
    """The column of an instruction that makes `result`."""
    return (one.result,)


def its_tensor(one: Any) -> Sequence[int]:
    """The column of an instruction that reads `tensor`."""
    return (one.tensor,)


def not_sent(_: Any) -> int:
    """The size of an entry that is not sent."""
    return 0


def _encoded_size(instruction: Any) -> int:
    return len(encode(instruction))


def _name(instruction: Any, prefix: str) -> EntryText:
    return type(instruction).__name__, "", ""


T = TypeVar("T")


class Row(NamedTuple):
    """One type of instruction."""

    type: type
    origins: tuple[str, ...] = ()
    """The layers that may issue it; none if it exists only on the wire or on the tape."""
    describe: Callable[[Any, str], EntryText] = _name
    """Its text for the tape; the second argument is the prefix of tensor ids: empty, or `CLIENT_`. A type
    with a method `words` is described by that."""
    reads: Callable[[Any], Sequence[int]] = no_tensors
    """The tensors that must exist before it."""
    makes: Callable[[Any], Sequence[int]] = no_tensors
    """The tensors that exist after it."""
    frees: Callable[[Any], Sequence[int]] = no_tensors
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


def row(*origins: str, **columns: Any) -> Callable[[type[T]], type[T]]:
    """Declare the row of the type below: the layers that may issue it, and the columns of `Row`."""

    def declare(kind: type[T]) -> type[T]:
        describe = {"describe": kind.words} if hasattr(kind, "words") else {}  # type: ignore[attr-defined]
        register(Row(kind, origins, **{**describe, **columns}))
        return kind

    return declare


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


def field(value: object) -> str:
    """A value without spaces: the shape (128, 64) is `128x64`, and () is `()`."""
    return "x".join(map(str, value)) or "()" if isinstance(value, list | tuple) else str(value)


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
