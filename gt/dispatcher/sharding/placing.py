"""Places a client's instructions on several workers, by means of its ShardingStreamModifier."""

from collections.abc import Sequence
from typing import Any

from gt.dispatcher.fair_share import Batch
from gt.dispatcher.session import Session
from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.errors import ProtocolError
from gt.stream.instruction_table import INSTRUCTION_TABLE, made_by
from gt.stream.instructions import GetData, LocalInstruction, Placed, Site
from gt.stream.layouts import Placement
from gt.stream.repeats import flat
from gt.transport.protocol import Fetched


def place(
    session: Session, sharding: ShardingStreamModifier, instructions: Sequence[LocalInstruction]
) -> list[Placed]:
    """The instructions for each worker. One that cannot be placed makes its result a failure."""
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
                    session.refuse(GetData(one.request, -1), str(one.error))
        except Exception as error:  # noqa: BLE001 - the stream is untrusted: an error fails one tensor
            for result in made_by(instruction):
                sharding.lost[result] = _cause(session, instruction, error)
    return placed


def _cause(session: Session, instruction: Any, error: Exception) -> str:
    number = getattr(instruction, "site", -1)
    where = next((site.text for site in session.sites if site.number == number), "an unknown line")
    what = getattr(instruction, "op", type(instruction).__name__)
    return f"{what}, issued at {where}, could not be placed: {type(error).__name__}: {error}"


def _check(session: Session, sharding: ShardingStreamModifier, instruction: Any) -> None:
    """Raise ProtocolError if an instruction refers to a tensor that the client does not have."""
    for tensor in INSTRUCTION_TABLE[type(instruction)].reads(instruction):
        if tensor not in sharding.tensor_sharded and tensor not in sharding.lost:
            raise ProtocolError(f"Tensor not found: client {session.name} has no tensor {tensor}")


def answer_lost(session: Session, sharding: ShardingStreamModifier, batch: Batch) -> None:
    """Answer the reads of lost tensors in a batch that waits for a worker, and remove them from it."""
    rest = []
    for instruction in flat(batch.instructions):
        lost = type(instruction) is GetData and sharding.lost.get(instruction.tensor)
        if lost:
            session.refuse(instruction, lost)
        else:
            rest.append(instruction)
    batch.instructions = rest


def layouts(session: Session, tensor: int) -> tuple[tuple[int, ...], list[Placement], str | None]:
    """A tensor's shape and placements, its own first, or the error if it has none."""
    if session.sharding is None:
        handle = session.handles.get(tensor)
        return (), [] if handle is None else [handle.placement], None
    if tensor in session.sharding.lost:
        return (), [], session.sharding.lost[tensor]
    handle = session.sharding.tensor_sharded.get(tensor)
    if handle is None:
        return (), [], None
    others = [placement for placement in handle.versions if placement != handle.placement]
    return tuple(handle.spec.shape), [handle.placement, *others], None
