"""Two dispatchers side by side: one places repeats as before, one op by op. Do workers do the same?"""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gt.dispatcher import Dispatcher
from gt.dispatcher.instruction_stream import MAX_KEPT_LINES
from gt.dispatcher.session import Session
from gt.dispatcher.sharding.placed_repeats import PlacedRepeats
from gt.dispatcher.sharding.placing import place
from gt.dispatcher.sharding.policy import Cluster
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import Spec
from gt.stream.instructions import Exchange, GetData, Op, ShardOp, Site, Upload
from gt.stream.layouts import Placement, even
from gt.stream.repeats import flat, weight
from tests.gt.helpers.spread import AnyLayout

encoded = msgspec.msgpack.Encoder().encode
FRESH = 1 << 62


class NoClient:
    """A client that only remembers what it was refused."""

    def __init__(self) -> None:
        self.refusals: list[str] = []

    def ack(self, sequence: int) -> None: ...
    def data(self, reply: Any) -> None: ...
    def failed(self, request: int, error: str, part: Any = None) -> None: ...
    def refused(self, error: str) -> None:
        self.refusals.append(error)


class Quiet:
    """A worker that does nothing, at once, and keeps what it was sent."""

    member = None
    memory_limit = 0

    def __init__(self, dispatcher: Dispatcher, name: str) -> None:
        self.dispatcher = dispatcher
        self.name = name
        self.sent: list[Any] = []
        self.chunks: list[list[Any]] = []

    def send(self, sequence: int, chunk: Any) -> None:
        self.sent += chunk.instructions
        self.chunks.append(list(chunk.instructions))
        self.dispatcher.done(sequence, 1e-6 * chunk.weight, [], [])

    def forget(self, client: str) -> None: ...
    def update_members(self, epoch: int, members: Any) -> None: ...
    def request_specs(self, client: str) -> None: ...


class OpByOp(PlacedRepeats):
    """Places every op by itself, always."""

    def place(
        self, session: Session, instructions: Sequence[Any], sessions: Iterable[Session] = ()
    ) -> list[Any]:
        return place(session, self._sharding, flat(instructions))


class ByShape(AnyLayout):
    """Lays tensors out at random, those of one shape alike."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def place(self, spec: Spec, cluster: Cluster) -> Placement:
        self.random = random.Random(repr((self.seed, tuple(spec.shape), spec.dtype, cluster.workers)))
        return super().place(spec, cluster)

    def sizes(self, length: int, workers: tuple[str, ...], memory: Mapping[str, int]) -> tuple[int, ...]:
        return even(length, len(workers))


class Spread:
    """A dispatcher with one client, spread over workers that do nothing."""

    def __init__(self, workers: int, again: bool = True, policy: Any = None) -> None:
        self.dispatcher = Dispatcher(policy=policy, shard_threshold=16)
        self.links: dict[str, Quiet] = {}
        for _ in range(workers):
            self.add_worker()
        self.link = NoClient()
        self.name = self.dispatcher.connect(self.link)
        self.session = self.dispatcher.sessions[self.name]
        self.sequence = 0
        assert self.session.sharding is not None
        self.sharding = self.session.sharding
        if not again:
            self.session.repeats = OpByOp(self.sharding)

    def add_worker(self) -> None:
        link = Quiet(self.dispatcher, f"worker_{len(self.links)}")
        self.links[link.name] = link
        self.dispatcher.add_worker(link)

    def receive(self, batch: Sequence[Any]) -> None:
        self.sequence += 1
        self.dispatcher.receive(self.name, self.sequence, batch)

    @property
    def again(self) -> int:
        """How many repeats were placed as before."""
        assert self.session.repeats is not None
        return self.session.repeats.get_stats()["repeats_placed_again"]


class Carried:
    """The tensors of workers after the instructions they were sent, each as the expression that made it."""

    def __init__(self, spread: Spread) -> None:
        self.values: dict[str, dict[int, Any]] = {name: {} for name in spread.links}
        self.made: dict[str, Counter[Any]] = {name: Counter() for name in spread.links}
        self._queues = {name: deque(flat(link.sent)) for name, link in spread.links.items()}
        while any(self._queues.values()):
            moved = [self._advance(name) for name in self._queues]
            assert any(moved), "no worker can go on: exchanges come in another order"

    def _advance(self, name: str) -> bool:
        queue, moved = self._queues[name], False
        while queue:
            one = queue[0]
            if isinstance(one, Exchange):
                if not self._exchange(one):
                    return moved
            else:
                self._do(name, one)
                queue.popleft()
            moved = True
        return moved

    def _exchange(self, one: Exchange) -> bool:
        """All who take part have come to it, or nothing happens."""
        who = dict.fromkeys((*one.source.workers, *one.target.workers))
        if not all(self._queues[name] and self._queues[name][0] == one for name in who):
            return False
        given = tuple(self.values[name][one.tensor] for name in one.source.workers)
        for name in one.target.workers:
            self._make(name, one.result, (one.kind, one.shape, one.source, one.target, given))
        for name in who:
            self._queues[name].popleft()
        return True

    def _do(self, name: str, one: Any) -> None:
        values = self.values[name]
        if isinstance(one, int):
            del values[one]
        elif isinstance(one, Op):
            inputs = tuple([values[tensor] for tensor in one.inputs])
            self._make(name, one.result, (one.op, repr(one.attrs), one.site, inputs))
        elif isinstance(one, ShardOp):
            self._make(name, one.result, ("cut", one.axis, one.start, one.stop, values[one.tensor]))
        elif isinstance(one, Upload):
            self._make(name, one.result, ("data", one.array.tobytes()))
        else:
            assert isinstance(one, GetData | Site), one

    def _make(self, name: str, tensor: int, what: Any) -> None:
        self.values[name][tensor] = hash(what)
        self.made[name][hash(what)] += 1


def placed_tensors(spread: Spread, carried: Carried) -> dict[int, Any]:
    """The placements of a client's tensors, and their parts on workers, without ids."""

    def placements(handle: TensorHandle) -> Any:
        origin = handle.origin and (handle.origin.op, repr(handle.origin.attrs), handle.origin.site)
        versions = [
            (str(placement), [carried.values[name][number] for name in placement.workers])
            for placement, number in handle.versions.items()
        ]
        derived = {
            what: placements(spread.sharding.tensor_sharded[one]) for what, one in handle.derived.items()
        }
        key, handle.key = handle.key, -1
        assert key in (-1, spread.sharding.plans.key_of(handle))
        return handle.spec, str(handle.placement), versions, origin, derived, handle.loads

    there = spread.sharding.tensor_sharded
    return {tensor: placements(handle) for tensor, handle in there.items() if tensor < FRESH}


def layout_lines(spread: Spread) -> list[str]:
    """The layout events of the tape, without the ids that the dispatcher gave out."""
    lines = [one.details for one in spread.dispatcher.stream.recent if one.event == "LAYOUT"]
    return [" ".join(word for word in line.split() if len(word) < 28) for line in lines]


def assert_same(batches: Sequence[Any], workers: int, policy: Callable[[], Any] = lambda: None) -> Spread:
    """Placed as before, a stream does what it does placed op by op."""
    spread, plain = Spread(workers, True, policy()), Spread(workers, False, policy())
    for batch in batches:
        spread.receive(batch)
        plain.receive(batch)
    assert spread.link.refusals == plain.link.refusals == []
    had, has = Carried(plain), Carried(spread)
    assert has.made == had.made
    assert placed_tensors(spread, has) == placed_tensors(plain, had)
    counts = [{name: Counter(values.values()) for name, values in one.values.items()} for one in (has, had)]
    assert counts[0] == counts[1], "what is not needed is freed"
    assert spread.sharding.get_stats() == plain.sharding.get_stats()
    assert spread.sharding.loads == plain.sharding.loads
    assert spread.sharding.home == plain.sharding.home
    assert spread.sharding.lost == plain.sharding.lost
    ours, theirs = layout_lines(spread), layout_lines(plain)
    kept = min(len(ours), len(theirs))  # the tape keeps so many lines, of which marks of hot paths are some
    assert ours[len(ours) - kept :] == theirs[len(theirs) - kept :]
    assert bool(ours) == bool(theirs)
    assert len(ours) == len(theirs) or len(spread.dispatcher.stream.recent) == MAX_KEPT_LINES
    for name in spread.links:
        assert weight(spread.links[name].sent) == weight(plain.links[name].sent)
    return spread
