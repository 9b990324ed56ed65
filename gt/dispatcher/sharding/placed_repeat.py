"""A placed repeat: the recorded placement of a repeat, which later occurrences replay without planning.

It holds the instructions for each worker and the changes to the sharding modifier's state: the placements and
ids of tensors. Both depend only on the sequence and on the placements of its tensors from outside, so they
are recorded once (`repeat_writer.py`), with indices in place of ids: see `Pool`.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.sharding.placement_log import Creation, Rule
from gt.dispatcher.sharding.policy import Cluster
from gt.dispatcher.sharding.relayout import next_exchange
from gt.dispatcher.sharding.segments import BetweenSegments, Pool, Segment, Segments
from gt.dispatcher.sharding.stats import ShardingStats
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import Spec
from gt.stream.instructions import Op
from gt.stream.layouts import Placement
from gt.stream.repeats import Repeat, runs_of
from gt.stream.sequences import alike
from gt.stream.tape_entries import RepeatedLayoutEvents
from gt.stream.tensor_ids import dispatcher_block

Versions = tuple[tuple[Placement, int], ...]
Derived = tuple[tuple[str, int], ...]


class NotReplayable(Exception):
    """A placement cannot be recorded, or the recorded one does not apply: the repeat is placed op by op."""


class NewTensor(NamedTuple):
    """A tensor that exists after the repeat and did not exist before. Ids are indices into the pool."""

    number: int
    spec: Spec
    placement: Placement
    versions: Versions
    derived: Derived
    origin: int
    """The step that makes it, if that has no inputs; else -1."""
    loads: bool
    key: int


class NewVersions(NamedTuple):
    """The new copies of a tensor from outside, and the tensors newly derived from it."""

    tensor: int
    versions: Versions
    derived: Derived
    key: int


@dataclasses.dataclass
class PlacedRepeat:
    """One recorded placement of a repeat."""

    items: Sequence[BetweenSegments | Segment | tuple[Segment, ...]]
    """The instructions for workers, in order. Segments in a tuple are sent as repeats, others op by op."""
    uses: dict[int, list[tuple[int, int, Rule | None]]]
    """By step of the repeat: the segments' steps that take their attributes from it, and by which rule."""
    results: int
    fresh: int
    """The pool indices of the first result and of the first fresh id."""
    count: int
    """How many fresh ids it needs."""
    creations: Sequence[Creation]
    """The decisions of the policy; their loads are relative to those at the start."""
    freed: Sequence[int]
    """The tensors from outside that are freed, by index."""
    new_versions: Sequence[NewVersions]
    new_tensors: Sequence[NewTensor]
    loads: Counter[str]
    """The changes of the workers' loads, in bytes."""
    home: str
    stats: ShardingStats
    layouts: Sequence[tuple[int, tuple[int, ...], str, Placement]]

    def replay(
        self,
        repeat: Repeat,
        sharding: ShardingStreamModifier,
        tensors: Sequence[int],
        handles: Sequence[TensorHandle],
    ) -> list[Any]:
        """Place another occurrence. Raises NotReplayable, and changes nothing, if it would be placed
        differently."""
        if not all(_holds(creation, sharding) for creation in self.creations):
            raise NotReplayable
        changed = self._changed(repeat)
        numbers = [number for handle in handles for number in handle.versions.values()]
        numbers += repeat.results
        first = dispatcher_block()
        numbers += range(first, first + self.count)
        runs = repeat.runs if repeat.runs and not repeat.template.result_indices else runs_of(repeat.results)
        pool = Pool(numbers, self.results, runs, self.fresh, changed)
        out: list[Any] = []
        for item in self.items:
            if type(item) is BetweenSegments:
                out.append(item.instruction(pool, next_exchange))
            elif type(item) is Segment:
                out += item.one_by_one(pool)
            else:
                segments: Any = item
                workers = tuple([one.worker for one in segments])
                out.append(Segments(workers, tuple([one.repeat(pool) for one in segments])))
        self._update(repeat, sharding, tensors, handles, numbers)
        return out

    def _changed(self, repeat: Repeat) -> dict[int, dict[int, dict[str, Any]]]:
        """By segment and step: the attributes that differ in this occurrence."""
        changed: dict[int, dict[int, dict[str, Any]]] = {}
        for n, attrs in repeat.changed.items():
            for segment, step, rule in self.uses.get(n, ()):
                own: dict[str, Any] | None = attrs
                if rule is not None:
                    own = _worker_attrs(rule, attrs, repeat.sequence.steps[n].attrs)
                if own is not None:
                    changed.setdefault(segment, {})[step] = own
        return changed

    def _update(
        self,
        repeat: Repeat,
        sharding: ShardingStreamModifier,
        tensors: Sequence[int],
        handles: Sequence[TensorHandle],
        numbers: list[int],
    ) -> None:
        """Update the sharding modifier's state as placing the ops one by one would."""
        there = sharding.tensor_sharded
        for n in self.freed:
            del there[tensors[n]]
        for n, versions, derived, key in self.new_versions:
            handle = handles[n]
            handle.versions.update([(have, numbers[index]) for have, index in versions])
            handle.derived.update([(what, numbers[index]) for what, index in derived])
            handle.key = key
        steps, sites = repeat.sequence.steps, repeat.template.sites
        for number, spec, placement, versions, derived, origin, loads, key in self.new_tensors:
            handle = there[numbers[number]] = TensorHandle("", spec, placement, numbers[versions[0][1]])
            if len(versions) > 1:
                handle.versions = {have: numbers[index] for have, index in versions}
            if derived:
                handle.derived = {what: numbers[index] for what, index in derived}
            handle.loads, handle.key = loads, key
            if origin >= 0:
                result = repeat.results[origin]
                handle.origin = Op(result, steps[origin].op, (), repeat.attrs(origin), sites[origin])
        for worker, load in self.loads.items():
            sharding.loads[worker] += load
        sharding.signals.clear()  # they were about this repeat's tensors
        sharding.home = self.home
        sharding.stats.add(self.stats)
        if self.layouts:
            sharding.add_layout_events(RepeatedLayoutEvents(self.layouts, numbers))


def _holds(creation: Creation, sharding: ShardingStreamModifier) -> bool:
    """Whether the policy would choose the same placement now."""
    loads = Counter(sharding.loads)
    loads.update(creation.loads)
    cluster = Cluster(sharding.workers, sharding.memory, loads, creation.home, sharding.capacity)
    try:
        return sharding.policy.place(creation.spec, cluster) == creation.placement
    except Exception:  # noqa: BLE001 - a user's policy: an error fails one tensor, in `place`
        return False


def _worker_attrs(rule: Rule, attrs: dict[str, Any], usual: dict[str, Any] | None) -> dict[str, Any] | None:
    """A worker's attributes for these attributes of the client's op. Raises NotReplayable if they are
    structural."""
    try:
        own = rule.attrs(attrs)
        same = alike(own, rule.attrs(usual))
    except Exception as error:
        raise NotReplayable from error
    if not same:
        raise NotReplayable
    return own
