"""A placed repeat: how a repeat was placed over workers, to be done again without planning a single op.

It holds what each worker was told, and what became of the books of the sharding modifier: which tensors lie
where, under which numbers. Both depend only on what the repeat is and on how its tensors from outside lie, so
they are written down once (`repeat_writer.py`), with places for numbers: see `Pool`.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from gt.dispatcher.notes import Creation, Rule
from gt.dispatcher.policy import Cluster
from gt.dispatcher.sharding_modifier import ShardingStreamModifier, next_exchange
from gt.dispatcher.stretches import Between, Pool, Stretch, Stretches
from gt.dispatcher.tally import Tally
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import Spec
from gt.transport.describe import LaidAgain
from gt.transport.layouts import Placement
from gt.transport.modifiers import fresh_block
from gt.transport.protocol import Op
from gt.transport.repeats import Repeat, runs_of
from gt.transport.sequences import alike

Versions = tuple[tuple[Placement, int], ...]
Facts = tuple[tuple[str, int], ...]


class Unforeseen(Exception):
    """Something came that cannot be written down, or is not as it was: it is placed op by op, as ever."""


class Made(NamedTuple):
    """A tensor that is there afterwards. Numbers are places in the pool."""

    number: int
    spec: Spec
    home: Placement
    versions: Versions
    facts: Facts
    origin: int
    """The step that makes it out of nothing, if one does; else -1."""
    loads: bool
    key: int


class More(NamedTuple):
    """What there is of a tensor from outside that was not there before."""

    tensor: int
    versions: Versions
    facts: Facts
    key: int


@dataclasses.dataclass
class PlacedRepeat:
    """One way in which a repeat was placed."""

    items: Sequence[Between | Stretch | tuple[Stretch, ...]]
    """What workers are told, in order. Several stretches together are repeats; one alone is too short."""
    uses: dict[int, list[tuple[int, int, Rule | None]]]
    """By step of the repeat: the stretches' steps that have their attributes from it, and how."""
    results: int
    fresh: int
    """Where these numbers begin in the pool."""
    count: int
    """How many fresh numbers it takes."""
    creations: Sequence[Creation]
    """What the policy was asked; the loads are what they were more than at the start."""
    gone: Sequence[int]
    """Which of the tensors from outside are freed."""
    more: Sequence[More]
    made: Sequence[Made]
    loads: Counter[str]
    """By how much the workers' loads change."""
    home: str
    tally: Tally
    laid: Sequence[tuple[int, tuple[int, ...], str, Placement]]

    # --- once more ---

    def again(
        self,
        repeat: Repeat,
        sharding: ShardingStreamModifier,
        tensors: Sequence[int],
        handles: Sequence[TensorHandle],
    ) -> list[Any]:
        """Place the repeat once more. If it would be placed otherwise, that raises Unforeseen and no more."""
        if not all(_holds(creation, sharding) for creation in self.creations):
            raise Unforeseen
        changed = self._changed(repeat)
        numbers = [number for handle in handles for number in handle.versions.values()]
        numbers += repeat.results
        first = fresh_block()
        numbers += range(first, first + self.count)
        runs = repeat.runs if repeat.runs and not repeat.template.places else runs_of(repeat.results)
        pool = Pool(numbers, self.results, runs, self.fresh, changed)
        out: list[Any] = []
        for item in self.items:
            if type(item) is Between:
                out.append(item.again(pool, next_exchange))
            elif type(item) is Stretch:
                out += item.one_by_one(pool)
            else:
                stretches: Any = item
                workers = tuple([one.worker for one in stretches])
                out.append(Stretches(workers, tuple([one.again(pool) for one in stretches])))
        self._settle(repeat, sharding, tensors, handles, numbers)
        return out

    def _changed(self, repeat: Repeat) -> dict[int, dict[int, dict[str, Any]]]:
        """By stretch and step: the attributes that are others this time."""
        changed: dict[int, dict[int, dict[str, Any]]] = {}
        for n, attrs in repeat.changed.items():
            for stretch, step, rule in self.uses.get(n, ()):
                own: dict[str, Any] | None = attrs
                if rule is not None:
                    own = _derived(rule, attrs, repeat.sequence.steps[n].attrs)
                if own is not None:
                    changed.setdefault(stretch, {})[step] = own
        return changed

    def _settle(
        self,
        repeat: Repeat,
        sharding: ShardingStreamModifier,
        tensors: Sequence[int],
        handles: Sequence[TensorHandle],
        numbers: list[int],
    ) -> None:
        """Keep the books as if every op had been placed by itself."""
        there = sharding.tensor_sharded
        for n in self.gone:
            del there[tensors[n]]
        for n, versions, facts, key in self.more:
            handle = handles[n]
            handle.versions.update([(have, numbers[place]) for have, place in versions])
            handle.facts.update([(what, numbers[place]) for what, place in facts])
            handle.key = key
        steps, sites = repeat.sequence.steps, repeat.template.sites
        for number, spec, home, versions, facts, origin, loads, key in self.made:
            handle = there[numbers[number]] = TensorHandle("", spec, home, numbers[versions[0][1]])
            if len(versions) > 1:
                handle.versions = {have: numbers[place] for have, place in versions}
            if facts:
                handle.facts = {what: numbers[place] for what, place in facts}
            handle.loads, handle.key = loads, key
            if origin >= 0:
                result = repeat.results[origin]
                handle.origin = Op(result, steps[origin].op, (), repeat.attrs(origin), sites[origin])
        for worker, load in self.loads.items():
            sharding.loads[worker] += load
        sharding.signals.clear()  # they were about this repeat's tensors
        sharding.home = self.home
        sharding.tally.add(self.tally)
        if self.laid:
            sharding.lay_again(LaidAgain(self.laid, numbers))


def _holds(creation: Creation, sharding: ShardingStreamModifier) -> bool:
    """Whether the policy says what it said, as things are now."""
    loads = Counter(sharding.loads)
    loads.update(creation.loads)
    cluster = Cluster(sharding.workers, sharding.memory, loads, creation.home, sharding.capacity)
    try:
        return sharding.policy.place(creation.spec, cluster) == creation.placement
    except Exception:  # noqa: BLE001 - anybody's policy: what it raises fails one tensor, in `place`
        return False


def _derived(rule: Rule, attrs: dict[str, Any], usual: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a worker's attributes are if those of the whole are these."""
    try:
        own = rule.attrs(attrs)
        same = alike(own, rule.attrs(usual))
    except Exception as error:
        raise Unforeseen from error
    if not same:
        raise Unforeseen
    return own
