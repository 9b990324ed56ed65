"""Exchanges: workers send each other what they lack, so that a tensor lies otherwise.

Each worker works out from the two placements what it has to send and what it will be sent. A worker whose own
input has failed sends that instead: whoever waits for it learns why, and nobody waits in vain.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gt.errors import WorkerError
from gt.transport.arrays import numpy_dtype
from gt.transport.layouts import Box, Partial, even
from gt.transport.protocol import Exchange
from gt.worker.memory import explain, is_out_of_memory

if TYPE_CHECKING:
    from gt.transport.peers import Arrived, Peers

IN_PARTS = 1 << 15
"""From how many bytes on an AllReduce is done in parts: each worker adds up one, and gives it to all."""

HALF = ("float16", "bfloat16")
REDUCE: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def exchange(order: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers") -> np.ndarray | None:
    """Take part: give from `own` (or say the `error`), and have what is this worker's; None if nothing is."""
    try:
        if _in_parts(order):
            return _all_reduce(order, own, error, peers)
        _give(order, own, error, peers)
        return _have(order, own, error, peers)
    except WorkerError:
        raise
    except Exception as failed:
        poison(order, _said(order, failed, peers), peers)
        raise
    finally:
        peers.settle()


def poison(order: Exchange, error: str, peers: "Peers") -> None:
    """Say to all who still wait for this worker that it has nothing to give, and wait for nobody."""
    for round in (0, 1) if _in_parts(order) else (0,):
        for name in _receivers(order, peers.name):
            if not peers.has_sent(name, order.number, round):
                peers.send(name, order.number, round, None, error)
        peers.give_up(order.number, round, _senders(order, peers.name))


def _said(order: Exchange, failed: Exception, peers: "Peers") -> str:
    """What the others are told of a failure; one that another has told of already is passed on."""
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
    others = [source.workers[number] for number in numbers if source.workers[number] != peers.name]
    arrived = peers.take(order.number, 0, others, order.epoch)
    pieces: list[tuple[Box, np.ndarray]] = []
    for number in numbers:
        name, held = source.workers[number], source.box(number, shape)
        box = held.overlap(wants)
        if name == peers.name:
            if own is None:
                raise WorkerError(error or "there is nothing to send")
            pieces.append((box, own[box.within(held)]))
        else:
            pieces.append((box, _array(arrived[name], box.shape, order.dtype)))
    if isinstance(source.layout, Partial):
        return _combined([piece for _, piece in pieces], source.layout.op, order.dtype)
    result = np.empty(wants.shape, numpy_dtype(order.dtype))
    for box, piece in pieces:
        result[box.within(wants)] = piece
    return result


def _array(arrived: "Arrived", shape: tuple[int, ...], dtype: str) -> np.ndarray:
    error, data = arrived
    if error is not None:
        raise WorkerError(error)
    return np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)


def _combined(terms: list[np.ndarray], op: str, dtype: str) -> np.ndarray:
    """Terms to their sum, maximum or minimum: in the order of the workers, so that all get the same."""
    reduce = REDUCE[op]
    if dtype in HALF and op == "sum":
        total = np.zeros(terms[0].shape, np.float32)
        for term in terms:
            total += term.astype(np.float32)
        return total.astype(terms[0].dtype)
    first, *others = terms
    if not others:
        return np.array(first)
    result = np.empty(first.shape, first.dtype)
    with np.errstate(all="ignore"):
        for number, term in enumerate(others):
            reduce(result if number else first, term, out=result)
    return result


# --- AllReduce in parts ---


def _in_parts(order: Exchange) -> bool:
    size = math.prod(order.shape) * numpy_dtype(order.dtype).itemsize
    return order.kind == "AllReduce" and size >= IN_PARTS and len(order.source.workers) > 2


def _all_reduce(order: Exchange, own: np.ndarray | None, error: str | None, peers: "Peers") -> np.ndarray:
    workers: tuple[str, ...] = order.source.workers
    me, count = workers.index(peers.name), math.prod(order.shape)
    sizes = even(count, len(workers))
    ends = np.cumsum([0, *sizes])
    flat = None if own is None else np.ascontiguousarray(own).reshape(-1)
    others = [name for name in workers if name != peers.name]
    for index, name in enumerate(workers):
        if name != peers.name:
            part = None if flat is None else flat[ends[index] : ends[index + 1]]
            peers.send(name, order.number, 0, part, error if flat is None else None)
    total, trouble = None, error
    try:
        arrived = peers.take(order.number, 0, others, order.epoch)
        if flat is not None:
            terms = [
                flat[ends[me] : ends[me + 1]]
                if name == peers.name
                else _array(arrived[name], (sizes[me],), order.dtype)
                for name in workers
            ]
            layout: Any = order.source.layout
            total = _combined(terms, layout.op, order.dtype)
    except Exception as failed:  # noqa: BLE001 - whatever it is, the others must learn of it
        trouble = _said(order, failed, peers)
    for name in others:
        peers.send(name, order.number, 1, total, trouble if total is None else None)
    second = peers.take(order.number, 1, others, order.epoch)
    if total is None:
        raise WorkerError(trouble or "there is nothing to send")
    result = np.empty(count, numpy_dtype(order.dtype))
    for index, name in enumerate(workers):
        part = total if name == peers.name else _array(second[name], (sizes[index],), order.dtype)
        result[ends[index] : ends[index + 1]] = part
    return result.reshape(order.shape)
