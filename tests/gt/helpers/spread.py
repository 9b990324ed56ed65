"""Tensors placed on workers at random, for tests that layouts do not change results."""

import contextlib
import random
from collections.abc import Iterator, Mapping

import pytest

from gt.client import Client
from gt.client import session as session_module
from gt.dispatcher.sharding.policy import Cluster
from gt.ops import Spec, dtypes
from gt.stream.layouts import Layout, Partial, Placement, Replicated, Sharded, even
from tests.gt.helpers.threads import ThreadConnection, ThreadServer


class AnyLayout:
    """A policy that lays tensors out at random: any layout, over any workers, in parts of any size."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)

    def place(self, spec: Spec, cluster: Cluster) -> Placement:
        some = self.random.sample(cluster.workers, self.random.randint(1, len(cluster.workers)))
        workers = tuple(self.random.choice([some, list(cluster.workers), list(cluster.workers)]))
        layouts: list[Layout] = [Replicated()]
        if dtypes.is_float(spec.dtype):
            layouts.append(Partial("sum"))
        for axis, n in enumerate(spec.shape):
            layouts.append(Sharded(axis, even(n, len(workers))))
            layouts.append(Sharded(axis, self._uneven(n, len(workers))))
        if len(workers) == 1:
            return Placement(Replicated(), workers)
        return Placement(self.random.choice(layouts), workers)

    def _uneven(self, n: int, parts: int) -> tuple[int, ...]:
        ends = sorted(self.random.randint(0, n) for _ in range(parts - 1))
        return tuple(b - a for a, b in zip([0, *ends], [*ends, n], strict=True))

    def sizes(self, length: int, workers: tuple[str, ...], memory: Mapping[str, int]) -> tuple[int, ...]:
        return even(length, len(workers))


@contextlib.contextmanager
def using(server: ThreadServer) -> Iterator[Client]:
    """`gt.*` uses this server."""
    client = Client(ThreadConnection(server))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "_current", client)
        yield client
    client.close()


class Servers:
    """A server for each number of workers, started when first used."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.clients: dict[int, Client] = {}
        self.servers: dict[int, ThreadServer] = {}
        self.policy = AnyLayout()

    @contextlib.contextmanager
    def use(self, workers: int, seed: int) -> Iterator[ThreadServer]:
        """`gt.*` uses this number of workers, and tensors are placed at random."""
        if workers not in self.servers:
            server = self.servers[workers] = ThreadServer(workers, self.engine, policy=self.policy)
            self.clients[workers] = Client(ThreadConnection(server))
        self.policy.random.seed(seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session_module, "_current", self.clients[workers])
            yield self.servers[workers]

    def close(self) -> None:
        for client in self.clients.values():
            client.close()
