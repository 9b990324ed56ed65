"""Exchanges: workers send each other parts of a tensor, to change its placement.

Each worker computes from the two placements which parts it sends and receives. A worker whose input has
failed sends the error instead, so that no other worker waits for it.
"""

import itertools
import math
from typing import TYPE_CHECKING, cast

import numpy as np

from gt.errors import WorkerError
from gt.stream.instructions import Exchange
from gt.stream.layouts import Partial, even
from gt.transport.arrays import numpy_dtype
from gt.transport.receive_buffer import ReceiveBuffer
from gt.worker.collectives.reduction import Total, copy_into
from gt.worker.limits.memory import explain, is_out_of_memory

if TYPE_CHECKING:
    from gt.transport.peers import Peers

IN_PARTS = 1 << 15
"""An AllReduce of at least this many bytes runs as a ReduceScatter and an AllGather."""


def exchange(
    instruction: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers"
) -> np.ndarray | None:
    """Take part in an exchange: send parts of `own`, or the `error`; returns this worker's part, or None."""
    try:
        if _in_parts(instruction):
            return _all_reduce(instruction, own, error, peers)
        _send_parts(instruction, own, error, peers)
        return _receive_parts(instruction, own, error, peers)
    except Exception as failed:
        send_error(instruction, _error_text(instruction, failed, peers), peers)
        raise
    finally:
        peers.finish_exchange()


def send_error(instruction: Exchange, error: str, peers: "Peers") -> None:
    """Send an error to all workers that wait for this one in an exchange, without taking part."""
    for round in (0, 1) if _in_parts(instruction) else (0,):
        for name in _receivers(instruction, peers.name):
            if not peers.has_sent(name, instruction.number, round):
                peers.send(name, instruction.number, round, None, error)
        peers.give_up(instruction.number, round, _senders(instruction, peers.name))


def _error_text(instruction: Exchange, failed: Exception, peers: "Peers") -> str:
    """The error for the other workers; one that came from another worker is passed on unchanged."""
    if isinstance(failed, WorkerError):
        return str(failed)
    cause = explain(failed) if is_out_of_memory(failed) else f"{type(failed).__name__}: {failed}"
    return f"{instruction.kind} failed on {peers.name}: {cause}"


def _receivers(instruction: Exchange, sender: str) -> list[str]:
    """The workers that receive from a worker."""
    if sender not in instruction.source.workers:
        return []
    me = instruction.source.workers.index(sender)
    return [
        name
        for index, name in enumerate(instruction.target.workers)
        if name != sender and me in _sources(instruction, index, name)
    ]


def _senders(instruction: Exchange, receiver: str) -> list[str]:
    """The workers that a worker receives from."""
    if receiver not in instruction.target.workers:
        return []
    numbers = _sources(instruction, instruction.target.workers.index(receiver), receiver)
    return [
        instruction.source.workers[number]
        for number in numbers
        if instruction.source.workers[number] != receiver
    ]


def _sources(instruction: Exchange, index: int, worker: str) -> list[int]:
    """The indices of the workers that send the worker of this index its part."""
    source = instruction.source
    if source.whole:
        own = source.workers.index(worker) if worker in source.workers else index % len(source.workers)
        return [own]
    if isinstance(source.layout, Partial):
        return list(range(len(source.workers)))
    wants = instruction.target.box(index, instruction.shape)
    return [
        number
        for number in range(len(source.workers))
        if not source.box(number, instruction.shape).overlap(wants).empty
    ]


def _send_parts(instruction: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers") -> None:
    source, shape = instruction.source, instruction.shape
    if peers.name not in source.workers:
        return
    me = source.workers.index(peers.name)
    held = source.box(me, shape)
    for index, worker in enumerate(instruction.target.workers):
        if worker == peers.name or me not in _sources(instruction, index, worker):
            continue
        if own is None:
            peers.send(worker, instruction.number, 0, None, error or "there is nothing to send")
        else:
            box = held.overlap(instruction.target.box(index, shape))
            peers.send(worker, instruction.number, 0, own[box.within(held)])


def _receive_parts(
    instruction: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers"
) -> np.ndarray | None:
    target, source, shape = instruction.target, instruction.source, instruction.shape
    if peers.name not in target.workers:
        return None
    index = target.workers.index(peers.name)
    wants = target.box(index, shape)
    numbers = _sources(instruction, index, peers.name)
    result = np.empty(wants.shape, numpy_dtype(instruction.dtype))
    total = None
    if isinstance(source.layout, Partial):
        total = Total(result.reshape(-1), len(numbers), source.layout.op)
    buffers: dict[tuple[int, str], ReceiveBuffer] = {}
    for place, number in enumerate(numbers):
        name, held = source.workers[number], source.box(number, shape)
        box = held.overlap(wants)
        part = result[(*box.within(wants), ...)]  # `...` keeps a view for a 0-dimensional array, too
        if name != peers.name:
            use = total.term(place) if total is not None else copy_into(part)
            buffers[0, name] = ReceiveBuffer(part.nbytes, use)
        elif own is None:
            raise WorkerError(error or "there is nothing to send")
        elif total is not None:
            total.add(place, np.ascontiguousarray(own[box.within(held)]).reshape(-1))
        else:
            part[...] = own[box.within(held)]
    peers.receive(instruction.number, buffers, instruction.epoch)
    return result


# --- AllReduce in parts ---


def _in_parts(instruction: Exchange) -> bool:
    size = math.prod(instruction.shape) * numpy_dtype(instruction.dtype).itemsize
    return instruction.kind == "AllReduce" and size >= IN_PARTS and len(instruction.source.workers) > 2


def _all_reduce(
    instruction: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers"
) -> np.ndarray:
    """Each worker adds up one part, and sends finished pieces of it while it adds up the rest."""
    if own is None:
        raise WorkerError(error or "there is nothing to send")
    workers, layout = instruction.source.workers, cast(Partial, instruction.source.layout)
    me, flat = workers.index(peers.name), np.ascontiguousarray(own).reshape(-1)
    ends = np.cumsum([0, *even(flat.size, len(workers))])
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]
    result = np.empty(flat.size, numpy_dtype(instruction.dtype))
    others = [(index, name) for index, name in enumerate(workers) if name != peers.name]
    mine = result[parts[me]]

    def give(start: int, stop: int) -> None:
        for _, name in others:
            peers.send(name, instruction.number, 1, mine[start:stop], last=stop == mine.size)

    for index, name in others:
        peers.send(name, instruction.number, 0, flat[parts[index]])
    total = Total(mine, len(workers), layout.op, give)
    total.add(me, flat[parts[me]])
    if not mine.size:
        give(0, 0)
    buffers = {(0, name): ReceiveBuffer(mine.nbytes, total.term(index)) for index, name in others}
    for index, name in others:
        part = result[parts[index]]
        buffers[1, name] = ReceiveBuffer(part.nbytes, copy_into(part))
    peers.receive(instruction.number, buffers, instruction.epoch)
    return result.reshape(instruction.shape)
