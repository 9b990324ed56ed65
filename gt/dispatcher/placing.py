"""A client's instructions, placed: what each becomes, and on which workers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gt.dispatcher.fair_share import Batch, Session
from gt.dispatcher.sharding_modifier import ShardingStreamModifier
from gt.errors import ProtocolError
from gt.transport.layouts import Placement
from gt.transport.protocol import (
    Exchange,
    Fetched,
    GetData,
    LocalInstruction,
    Member,
    Op,
    Placed,
    ShardOp,
    Site,
)
from gt.transport.repeats import flat


def place(
    session: Session, sharding: ShardingStreamModifier, instructions: Sequence[LocalInstruction]
) -> list[Placed]:
    """What workers have to do for a client's instructions, and which. What makes no sense fails a tensor."""
    placed: list[Placed] = []
    for instruction in instructions:
        _check(session, sharding, instruction)
        try:
            for one in sharding.process(instruction):
                if type(one) is Placed:
                    placed.append(one)
                elif type(one) is Site:
                    session.sites.append(one)
                elif type(one) is Fetched:
                    session.link.failed(one.request, str(one.error))
        except Exception as error:  # noqa: BLE001 - a stream comes from anybody: this fails one tensor
            result = getattr(instruction, "result", None)
            if result is not None:
                sharding.lose(result, _cause(session, instruction, error))
    return placed


def _cause(session: Session, instruction: Any, error: Exception) -> str:
    number = getattr(instruction, "site", -1)
    where = next((site.where for site in session.sites if site.number == number), "an unknown line")
    what = getattr(instruction, "op", type(instruction).__name__)
    return f"{what}, asked for at {where}, could not be placed: {type(error).__name__}: {error}"


def _check(session: Session, sharding: ShardingStreamModifier, instruction: Any) -> None:
    """Raise if an instruction names a tensor that the client does not have."""
    kind = type(instruction)
    if kind is Op:
        tensors = instruction.inputs
    elif kind is int:
        tensors = (instruction,)
    elif kind is GetData:
        tensors = (instruction.tensor,)
    elif kind in (Exchange, ShardOp):
        raise ProtocolError(f"a client sent a {kind.__name__}: that is the dispatcher's to say")
    else:
        return
    for tensor in tensors:
        if tensor not in sharding.tensor_sharded and tensor not in sharding.lost:
            raise ProtocolError(f"Tensor not found: client {session.name} has no tensor {tensor}")


def answer_lost(session: Session, sharding: ShardingStreamModifier, batch: Batch) -> None:
    """While there is no worker: whoever reads what went with the last one is told so at once."""
    rest = []
    for instruction in flat(batch.instructions):
        lost = type(instruction) is GetData and sharding.lost.get(instruction.tensor)
        if lost:
            session.link.failed(instruction.request, lost)
        else:
            rest.append(instruction)
    batch.instructions = rest


def shares(members: Mapping[str, Member]) -> dict[str, int]:
    """How many bytes each worker has if all on a machine share its memory; of those that say."""
    alike = Counter(member.host for member in members.values())
    return {
        name: member.memory // (alike[member.host] if member.host else 1)
        for name, member in members.items()
        if member.memory
    }


def layouts(session: Session, tensor: int) -> tuple[tuple[int, ...], list[Placement], str | None]:
    """Where a tensor lies: its shape, its placements, or why it is nowhere."""
    if session.sharding is None:
        handle = session.handles.get(tensor)
        return (), [] if handle is None else [handle.home], None
    if tensor in session.sharding.lost:
        return (), [], session.sharding.lost[tensor]
    handle = session.sharding.tensor_sharded.get(tensor)
    if handle is None:
        return (), [], None
    others = [placement for placement in handle.versions if placement != handle.home]
    return tuple(handle.spec.shape), [handle.home, *others], None
