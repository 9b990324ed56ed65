"""Records the placement of a repeat as a PlacedRepeat."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.sharding.placed_repeat import (
    Derived,
    NewTensor,
    NewVersions,
    NotReplayable,
    PlacedRepeat,
    Versions,
)
from gt.dispatcher.sharding.placement_log import PlacementLog, Rule
from gt.dispatcher.sharding.planning import nbytes
from gt.dispatcher.sharding.segments import MIN_SEGMENT_OPS, BetweenSegments, OpenSegment, Segment
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
        self.derived = [dict(handle.derived) for handle in handles]
        self.placements = [handle.placement for handle in handles]
        self.existing = set(sharding.tensor_sharded)
        self.lost = set(sharding.lost)
        self.loads = Counter(sharding.loads)
        self.stats = sharding.stats.copy()
        self.fresh = dispatcher_id()
        """Ids from this one on are fresh."""


class Writer:
    """Records the placement of one repeat."""

    def __init__(self, repeat: Repeat, ops: Sequence[Op], before: Snapshot, log: PlacementLog) -> None:
        """`ops` are the repeat's. Each has an attributes dict of its own, whose `id()` identifies the op that
        a worker's op takes its attributes from."""
        self._repeat, self._before, self._placement_log = repeat, before, log
        numbers = [number for versions in before.versions for number in versions.values()]
        self._results = len(numbers)
        numbers += repeat.results
        self._fresh = len(numbers)
        self._index_of = {number: index for index, number in enumerate(numbers)}
        """By id: the pool index."""
        if len(self._index_of) < len(numbers):
            raise NotReplayable
        self._step_of = {id(op): n for n, op in enumerate(ops)}
        self._step_with = {id(op.attrs): n for n, op in enumerate(ops) if op.attrs is not None}
        self._changing = {n for n, _ in repeat.sequence.changing}
        self._items: list[BetweenSegments | Segment | tuple[Segment, ...]] = []
        self._uses: dict[int, list[tuple[int, int, Rule | None]]] = {}
        self._opened: dict[str, OpenSegment] = {}
        self._segments = 0

    def write(self, placed: Sequence[Placed]) -> PlacedRepeat:
        """The placed instructions as a PlacedRepeat. Raises NotReplayable if they cannot be recorded."""
        before, sharding = self._before, self._before.sharding
        if set(sharding.lost) != before.lost or sharding.signals:
            raise NotReplayable
        self._write_stream(placed)
        freed, new_versions = self._changes_outside()
        new_tensors = self._new_tensors()
        layouts = [
            (self._pool_index(n), shape, dtype, placement)
            for n, shape, dtype, placement in self._placement_log.layouts
        ]
        count = len(self._index_of) - self._fresh
        if count > IDS_PER_BLOCK:
            raise NotReplayable
        return PlacedRepeat(
            items=self._items,
            uses=self._uses,
            results=self._results,
            fresh=self._fresh,
            count=count,
            creations=[
                one._replace(loads=_less(one.loads, before.loads)) for one in self._placement_log.creations
            ],
            freed=freed,
            new_versions=new_versions,
            new_tensors=new_tensors,
            loads=_less(sharding.loads, before.loads),
            home=sharding.home,
            stats=sharding.stats.since(before.stats),
            layouts=layouts,
        )

    def _pool_index(self, number: int) -> int:
        """The index of an id in the pool. Raises NotReplayable for a tensor that the repeat does not use."""
        index = self._index_of.get(number)
        if index is None:
            if number < self._before.fresh:
                raise NotReplayable
            index = self._index_of[number] = len(self._index_of)
        return index

    # --- the instructions ---

    def _write_stream(self, placed: Sequence[Placed]) -> None:
        for workers, each in placed:
            first: Any = each[0]
            if isinstance(first, Exchange | ShardOp):
                tensor, result = self._pool_index(first.tensor), self._pool_index(first.result)
                self._close([one for one in workers if self._waits(one, first, tensor)])
                found = [one for one in each if isinstance(one, Exchange | ShardOp)]
                self._items.append(BetweenSegments(workers, tuple(found), tensor, result))
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
            opened.free(self._pool_index(one))
        elif type(one) is Op:
            attrs, step, rule = self._source(one)
            inputs = [self._pool_index(number) for number in one.inputs]
            index = opened.add(one.op, self._pool_index(one.result), inputs, attrs, one.site)
            if step in self._changing:
                self._uses.setdefault(step, []).append((opened.number, index, rule))
        else:
            raise NotReplayable

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

    def _changes_outside(self) -> tuple[list[int], list[NewVersions]]:
        """The indices of the tensors from outside that were freed, and the new copies of others."""
        before, sharding = self._before, self._before.sharding
        freed: list[int] = []
        found: list[NewVersions] = []
        for n, (tensor, handle) in enumerate(zip(before.tensors, before.handles, strict=True)):
            if tensor not in sharding.tensor_sharded:
                freed.append(n)
                continue
            known, known_derived = before.versions[n], before.derived[n]
            same = sharding.tensor_sharded[tensor] is handle and handle.placement == before.placements[n]
            if not same or [*handle.versions.items()][: len(known)] != [*known.items()]:
                raise NotReplayable
            versions, derived = self._versions(handle, known), self._derived(handle, known_derived)
            if versions or derived:
                found.append(NewVersions(n, versions, derived, sharding.plans.key_of(handle)))
        return freed, found

    def _new_tensors(self) -> list[NewTensor]:
        """The tensors that did not exist before."""
        there = self._before.sharding.tensor_sharded
        new = [number for number in there if number not in self._before.existing]
        own = {number for number in new if self._pool_index(number) < self._fresh}
        if own != {self._repeat.results[n] for n in self._repeat.kept}:
            raise NotReplayable
        return [self._new_tensor(number, there[number]) for number in new]

    def _new_tensor(self, number: int, handle: TensorHandle) -> NewTensor:
        if handle.results is not None:
            raise NotReplayable
        return NewTensor(
            self._pool_index(number),
            handle.spec,
            handle.placement,
            self._versions(handle, {}),
            self._derived(handle, {}),
            -1 if handle.origin is None else self._step_of[id(handle.origin)],
            handle.loads,
            self._before.sharding.plans.key_of(handle),
        )

    def _versions(self, handle: TensorHandle, known: Mapping[Placement, int]) -> Versions:
        found = [(have, number) for have, number in handle.versions.items() if have not in known]
        return tuple([(have, self._pool_index(number)) for have, number in found])

    def _derived(self, handle: TensorHandle, known: Mapping[str, int]) -> Derived:
        found = [(what, number) for what, number in handle.derived.items() if what not in known]
        return tuple([(what, self._pool_index(number)) for what, number in found])


def _less(loads: Counter[str], before: Counter[str]) -> Counter[str]:
    """The differences of loads, without zeros."""
    found = {worker: loads[worker] - before[worker] for worker in loads.keys() | before.keys()}
    return Counter({worker: n for worker, n in found.items() if n})
