"""Records the placement of a repeat as a PlacedRepeat."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.sharding.placed_repeat import Facts, Made, More, PlacedRepeat, Unforeseen, Versions
from gt.dispatcher.sharding.placement_log import PlacementLog, Rule
from gt.dispatcher.sharding.planning import nbytes
from gt.dispatcher.sharding.segments import MIN_SEGMENT_OPS, Between, OpenSegment, Segment
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import Spec
from gt.stream.instructions import Exchange, Op, Placed, ShardOp
from gt.stream.layouts import Placement
from gt.stream.repeats import Repeat
from gt.stream.sequences import MAX_SEQUENCE_OPS
from gt.stream.tensor_ids import IDS_PER_BLOCK, dispatcher_id

MAX_EARLY_BYTES = 1 << 24
"""How many bytes a worker may receive by exchanges before the segment that needs them; for a worker with a
memory limit, at most a sixteenth of it."""


class Snapshot:
    """The state of a sharding modifier before a repeat is placed."""

    def __init__(
        self, sharding: ShardingStreamModifier, tensors: Sequence[int], handles: Sequence[TensorHandle]
    ) -> None:
        self.sharding = sharding
        self.tensors = tensors
        """The tensors from outside, and those derived from them."""
        self.handles = handles
        self.versions = [dict(handle.versions) for handle in handles]
        self.facts = [dict(handle.facts) for handle in handles]
        self.homes = [handle.home for handle in handles]
        self.existing = set(sharding.tensor_sharded)
        self.lost = set(sharding.lost)
        self.loads = Counter(sharding.loads)
        self.stats = sharding.stats.copy()
        self.fresh = dispatcher_id()
        """Ids from this one on are fresh."""


class Writer:
    """Records one repeat."""

    def __init__(self, repeat: Repeat, ops: Sequence[Op], before: Snapshot, log: PlacementLog) -> None:
        """`ops` are the repeat's. Each has its own attributes, whose `id()` shows where a worker's op has
        them from."""
        self._repeat, self._before, self._placement_log = repeat, before, log
        numbers = [number for versions in before.versions for number in versions.values()]
        self._results = len(numbers)
        numbers += repeat.results
        self._fresh = len(numbers)
        self._place_of = {number: place for place, number in enumerate(numbers)}
        """By id: its place in the pool."""
        if len(self._place_of) < len(numbers):
            raise Unforeseen
        self._step_of = {id(op): n for n, op in enumerate(ops)}
        self._step_with = {id(op.attrs): n for n, op in enumerate(ops) if op.attrs is not None}
        self._changing = {n for n, _ in repeat.sequence.changing}
        self._items: list[Between | Segment | tuple[Segment, ...]] = []
        self._uses: dict[int, list[tuple[int, int, Rule | None]]] = {}
        self._opened: dict[str, OpenSegment] = {}
        self._segments = 0

    def write(self, placed: Sequence[Placed]) -> PlacedRepeat:
        """The placed instructions as a PlacedRepeat. Raises Unforeseen if they cannot be recorded."""
        before, sharding = self._before, self._before.sharding
        if set(sharding.lost) != before.lost or sharding.signals:
            raise Unforeseen
        self._write_stream(placed)
        gone, more = self._outside()
        made = self._made()
        layouts = [
            (self._place(n), shape, dtype, placement)
            for n, shape, dtype, placement in self._placement_log.layouts
        ]
        count = len(self._place_of) - self._fresh
        if count > IDS_PER_BLOCK:
            raise Unforeseen
        return PlacedRepeat(
            items=self._items,
            uses=self._uses,
            results=self._results,
            fresh=self._fresh,
            count=count,
            creations=[
                one._replace(loads=_less(one.loads, before.loads)) for one in self._placement_log.creations
            ],
            gone=gone,
            more=more,
            made=made,
            loads=_less(sharding.loads, before.loads),
            home=sharding.home,
            stats=sharding.stats.since(before.stats),
            layouts=layouts,
        )

    def _place(self, number: int) -> int:
        """The place of an id in the pool. Raises Unforeseen for a tensor that the repeat does not use."""
        place = self._place_of.get(number)
        if place is None:
            if number < self._before.fresh:
                raise Unforeseen
            place = self._place_of[number] = len(self._place_of)
        return place

    # --- the instructions ---

    def _write_stream(self, placed: Sequence[Placed]) -> None:
        for workers, each in placed:
            first: Any = each[0]
            if isinstance(first, Exchange | ShardOp):
                tensor, result = self._place(first.tensor), self._place(first.result)
                self._close([one for one in workers if self._waits(one, first, tensor)])
                found = [one for one in each if isinstance(one, Exchange | ShardOp)]
                self._items.append(Between(workers, tuple(found), tensor, result))
                continue
            for worker, one in zip(workers, each, strict=True):
                self._write(worker, one)
        self._close(tuple(self._opened))

    def _waits(self, worker: str, between: Exchange | ShardOp, tensor: int) -> bool:
        """Whether an instruction between segments has to wait for a worker's current segment.

        If that segment does not make the exchanged tensor, the exchange is issued first, and the segment
        continues: so all gradients are reduced in a row, and all parameters are updated in one segment.
        """
        opened = self._opened.get(worker)
        if opened is None or opened.makes(tensor):
            return True
        if isinstance(between, Exchange):
            opened.early += nbytes(Spec(between.shape, between.dtype))
        limit = self._before.sharding.memory.get(worker, 0)
        return opened.early > (min(MAX_EARLY_BYTES, limit // 16) if limit else MAX_EARLY_BYTES)

    def _write(self, worker: str, one: Any) -> None:
        opened = self._opened.get(worker)
        if opened is not None and len(opened.steps) == MAX_SEQUENCE_OPS:
            self._close((worker,))
            opened = None
        if opened is None:
            opened = self._opened[worker] = OpenSegment(self._segments)
            self._segments += 1
        if type(one) is int:
            opened.free(self._place(one))
        elif type(one) is Op:
            attrs, step, rule = self._source(one)
            inputs = [self._place(number) for number in one.inputs]
            place = opened.add(one.op, self._place(one.result), inputs, attrs, one.site)
            if step in self._changing:
                self._uses.setdefault(step, []).append((opened.number, place, rule))
        else:
            raise Unforeseen

    def _source(self, op: Op) -> tuple[dict[str, Any] | None, int, Rule | None]:
        """An op's attributes in the sequence; the step that they come from, or -1; and the rule."""
        steps = self._repeat.sequence.steps
        step = -1 if op.attrs is None else self._step_with.get(id(op.attrs), -1)
        if step >= 0:
            return steps[step].attrs, step, None
        rule = self._placement_log.rule(op)
        step = -1 if rule is None else self._step_of.get(id(rule.cmd), -1)
        if rule is None or step < 0:
            return op.attrs, -1, None
        return rule.attrs(steps[step].attrs), step, rule

    def _close(self, workers: Sequence[str]) -> None:
        """End these workers' segments."""
        opened = [(worker, self._opened.pop(worker)) for worker in workers if worker in self._opened]
        explicit = self._repeat.sequence.explicit
        closed = [Segment(worker, one, self._results, self._fresh, explicit) for worker, one in opened]
        self._items += [one for one in closed if one.length < MIN_SEGMENT_OPS]
        together = tuple([one for one in closed if one.length >= MIN_SEGMENT_OPS])
        if together:
            self._items.append(together)

    # --- the state of the sharding modifier ---

    def _outside(self) -> tuple[list[int], list[More]]:
        """The indices of the tensors from outside that were freed, and the new copies of others."""
        before, sharding = self._before, self._before.sharding
        gone: list[int] = []
        more: list[More] = []
        for n, (tensor, handle) in enumerate(zip(before.tensors, before.handles, strict=True)):
            if tensor not in sharding.tensor_sharded:
                gone.append(n)
                continue
            known, facts = before.versions[n], before.facts[n]
            same = sharding.tensor_sharded[tensor] is handle and handle.home == before.homes[n]
            if not same or [*handle.versions.items()][: len(known)] != [*known.items()]:
                raise Unforeseen
            versions, derived = self._versions(handle, known), self._facts(handle, facts)
            if versions or derived:
                more.append(More(n, versions, derived, sharding.plans.key_of(handle)))
        return gone, more

    def _made(self) -> list[Made]:
        """The tensors that did not exist before."""
        there = self._before.sharding.tensor_sharded
        new = [number for number in there if number not in self._before.existing]
        own = {number for number in new if self._place(number) < self._fresh}
        if own != {self._repeat.results[n] for n in self._repeat.kept}:
            raise Unforeseen
        return [self._made_of(number, there[number]) for number in new]

    def _made_of(self, number: int, handle: TensorHandle) -> Made:
        if handle.results is not None:
            raise Unforeseen
        return Made(
            self._place(number),
            handle.spec,
            handle.home,
            self._versions(handle, {}),
            self._facts(handle, {}),
            -1 if handle.origin is None else self._step_of[id(handle.origin)],
            handle.loads,
            self._before.sharding.plans.key_of(handle),
        )

    def _versions(self, handle: TensorHandle, known: Mapping[Placement, int]) -> Versions:
        found = [(have, number) for have, number in handle.versions.items() if have not in known]
        return tuple([(have, self._place(number)) for have, number in found])

    def _facts(self, handle: TensorHandle, known: Mapping[str, int]) -> Facts:
        found = [(what, number) for what, number in handle.facts.items() if what not in known]
        return tuple([(what, self._place(number)) for what, number in found])


def _less(loads: Counter[str], before: Counter[str]) -> Counter[str]:
    """The differences of loads, without zeros."""
    found = {worker: loads[worker] - before[worker] for worker in loads.keys() | before.keys()}
    return Counter({worker: n for worker, n in found.items() if n})
