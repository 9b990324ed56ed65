"""Exchanges: workers send each other parts of a tensor, to change its placement.

Each worker works out from the two placements what it has to send and what it will be sent. A worker whose own
input has failed sends the error instead, so that no other worker waits for it.
"""

import itertools
import math
from typing import TYPE_CHECKING, cast

import numpy as np

from gt.errors import WorkerError
from gt.stream.instructions import Exchange
from gt.stream.layouts import Partial, even
from gt.transport.arrays import numpy_dtype
from gt.transport.pieces import ReceiveBuffer
from gt.worker.collectives.receive_buffer import Total, into
from gt.worker.limits.memory import explain, is_out_of_memory

if TYPE_CHECKING:
    from gt.transport.peers import Peers

IN_PARTS = 1 << 15
"""From how many bytes on an AllReduce is done in parts: each worker adds up one, and gives it to all."""


def exchange(order: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers") -> np.ndarray | None:
    """Take part: give from `own` (or say the `error`), and have what is this worker's; None if nothing is."""
    try:
        if _in_parts(order):
            return _all_reduce(order, own, error, peers)
        _give(order, own, error, peers)
        return _have(order, own, error, peers)
    except Exception as failed:
        poison(order, _said(order, failed, peers), peers)
        raise
    finally:
        peers.settle()


def poison(order: Exchange, error: str, peers: "Peers") -> None:
    """Send an error to all workers that wait for this one in an exchange, without taking part."""
    for round in (0, 1) if _in_parts(order) else (0,):
        for name in _receivers(order, peers.name):
            if not peers.has_sent(name, order.number, round):
                peers.send(name, order.number, round, None, error)
        peers.give_up(order.number, round, _senders(order, peers.name))


def _said(order: Exchange, failed: Exception, peers: "Peers") -> str:
    """The error for the other workers; one that came from another worker is passed on unchanged."""
    if isinstance(failed, WorkerError):
        return str(failed)
    cause = explain(failed) if is_out_of_memory(failed) else f"{type(failed).__name__}: {failed}"
    return f"{order.kind} failed on {peers.name}: {cause}"


def _receivers(order: Exchange, giver: str) -> list[str]:
    """Who waits for a worker."""
    if giver not in order.source.workers:
        return []
    me = order.source.workers.index(giver)
    return [
        name
        for index, name in enumerate(order.target.workers)
        if name != giver and me in _sources(order, index, name)
    ]


def _senders(order: Exchange, taker: str) -> list[str]:
    """Whom a worker waits for."""
    if taker not in order.target.workers:
        return []
    numbers = _sources(order, order.target.workers.index(taker), taker)
    return [order.source.workers[number] for number in numbers if order.source.workers[number] != taker]


def _sources(order: Exchange, index: int, worker: str) -> list[int]:
    """Whom the worker of this index is given its part by: one who has all of it, or all who have some."""
    source = order.source
    if source.whole:
        own = source.workers.index(worker) if worker in source.workers else index % len(source.workers)
        return [own]
    if isinstance(source.layout, Partial):
        return list(range(len(source.workers)))
    wants = order.target.box(index, order.shape)
    return [
        number
        for number in range(len(source.workers))
        if not source.box(number, order.shape).overlap(wants).empty
    ]


def _give(order: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers") -> None:
    source, shape = order.source, order.shape
    if peers.name not in source.workers:
        return
    me = source.workers.index(peers.name)
    held = source.box(me, shape)
    for index, worker in enumerate(order.target.workers):
        if worker == peers.name or me not in _sources(order, index, worker):
            continue
        if own is None:
            peers.send(worker, order.number, 0, None, error or "there is nothing to send")
        else:
            box = held.overlap(order.target.box(index, shape))
            peers.send(worker, order.number, 0, own[box.within(held)])


def _have(order: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers") -> np.ndarray | None:
    target, source, shape = order.target, order.source, order.shape
    if peers.name not in target.workers:
        return None
    index = target.workers.index(peers.name)
    wants = target.box(index, shape)
    numbers = _sources(order, index, peers.name)
    result = np.empty(wants.shape, numpy_dtype(order.dtype))
    total = None
    if isinstance(source.layout, Partial):
        total = Total(result.reshape(-1), len(numbers), source.layout.op)
    buffers: dict[tuple[int, str], ReceiveBuffer] = {}
    for place, number in enumerate(numbers):
        name, held = source.workers[number], source.box(number, shape)
        box = held.overlap(wants)
        part = result[(*box.within(wants), ...)]  # also of a single number: not the number, its place
        if name != peers.name:
            land = total.term(place) if total is not None else into(part)
            buffers[0, name] = ReceiveBuffer(part.nbytes, land)
        elif own is None:
            raise WorkerError(error or "there is nothing to send")
        elif total is not None:
            total.add(place, np.ascontiguousarray(own[box.within(held)]).reshape(-1))
        else:
            part[...] = own[box.within(held)]
    peers.take(order.number, buffers, order.epoch)
    return result


# --- AllReduce in parts ---


def _in_parts(order: Exchange) -> bool:
    size = math.prod(order.shape) * numpy_dtype(order.dtype).itemsize
    return order.kind == "AllReduce" and size >= IN_PARTS and len(order.source.workers) > 2


def _all_reduce(order: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers") -> np.ndarray:
    """Each worker adds up one part, and sends what it has of the sum to all while it adds up the rest."""
    if own is None:
        raise WorkerError(error or "there is nothing to send")
    workers, layout = order.source.workers, cast(Partial, order.source.layout)
    me, flat = workers.index(peers.name), np.ascontiguousarray(own).reshape(-1)
    ends = np.cumsum([0, *even(flat.size, len(workers))])
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]
    result = np.empty(flat.size, numpy_dtype(order.dtype))
    others = [(index, name) for index, name in enumerate(workers) if name != peers.name]
    mine = result[parts[me]]

    def give(start: int, stop: int) -> None:
        for _, name in others:
            peers.send(name, order.number, 1, mine[start:stop], last=stop == mine.size)

    for index, name in others:
        peers.send(name, order.number, 0, flat[parts[index]])
    total = Total(mine, len(workers), layout.op, give)
    total.add(me, flat[parts[me]])
    if not mine.size:
        give(0, 0)
    buffers = {(0, name): ReceiveBuffer(mine.nbytes, total.term(index)) for index, name in others}
    for index, name in others:
        part = result[parts[index]]
        buffers[1, name] = ReceiveBuffer(part.nbytes, into(part))
    peers.take(order.number, buffers, order.epoch)
    return result.reshape(order.shape)
