"""Tensor ids: the range that each layer allocates ids from.

The ids of a client's tensors, and of those that modifiers and the dispatcher make for it, are in one
namespace, so every layer allocates from a range of its own:

    from              up to             allocated by
    0                 2**60             the client, counting from 0
    2**60             2**61             modifiers at the client
    2**61             2**62             modifiers at the workers: each worker has 2**36 ids of these
    2**62             2**62 + 2**61     the dispatcher: its modifiers, and the instructions that sharding adds
    2**62 + 2**61     2**63             the dispatcher: blocks of ids for repeats

Different clients may use the same ids: a worker has a namespace for each client.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar

CLIENT_MODIFIER_IDS = 1 << 60
WORKER_MODIFIER_IDS = 1 << 61
DISPATCHER_IDS = 1 << 62
DISPATCHER_BLOCKS = (1 << 62) + (1 << 61)

IDS_PER_WORKER = 1 << 36
"""How many ids each worker has."""

MAX_WORKERS = (DISPATCHER_IDS - WORKER_MODIFIER_IDS) // IDS_PER_WORKER

IDS_PER_BLOCK = 1 << 20
"""How many ids a block has."""

Source = Callable[[], int]
"""Returns a new id with every call, on any thread."""

client_id: Source = itertools.count(CLIENT_MODIFIER_IDS).__next__
dispatcher_id: Source = itertools.count(DISPATCHER_IDS).__next__
dispatcher_block: Source = itertools.count(DISPATCHER_BLOCKS, IDS_PER_BLOCK).__next__
"""The first id of a block that nothing else uses."""


def worker_ids(number: int) -> Source:
    """The ids of one worker. The dispatcher numbers workers in the order in which they join."""
    return itertools.count(WORKER_MODIFIER_IDS + number % MAX_WORKERS * IDS_PER_WORKER).__next__


_source: ContextVar[Source] = ContextVar("_source", default=client_id)


def fresh_id() -> int:
    """An id for a tensor that a stream modifier makes, from the range of the layer it runs at."""
    return _source.get()()


@contextlib.contextmanager
def using(source: Source) -> Iterator[None]:
    """While the context is active, `fresh_id` takes ids from this source."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)
