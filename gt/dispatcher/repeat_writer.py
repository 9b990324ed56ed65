"""Writes down how a repeat was placed, as a PlacedRepeat."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gt.dispatcher.notes import Notes, Rule
from gt.dispatcher.placed_repeat import Facts, Made, More, PlacedRepeat, Unforeseen, Versions
from gt.dispatcher.planning import nbytes
from gt.dispatcher.sharding_modifier import ShardingStreamModifier
from gt.dispatcher.stretches import SHORTEST, Between, OpenStretch, Stretch
from gt.dispatcher.tensor_handle import TensorHandle
from gt.ops import Spec
from gt.transport.layouts import Placement
from gt.transport.modifiers import BLOCK, fresh_id
from gt.transport.protocol import Exchange, Op, Placed, ShardOp
from gt.transport.repeats import Repeat
from gt.transport.sequences import LONGEST

MOST_EARLY = 1 << 24
"""How many bytes exchanges may bring a worker before the stretch in which they are needed begins; of one that
was told how much memory it may take, at most a sixteenth of that."""


class Snapshot:
    """A sharding modifier's books, before a repeat is placed."""

    def __init__(
        self, sharding: ShardingStreamModifier, tensors: Sequence[int], handles: Sequence[TensorHandle]
    ) -> None:
        self.sharding = sharding
        self.tensors = tensors
        """The tensors from outside, and what is freed with them."""
        self.handles = handles
        self.versions = [dict(handle.versions) for handle in handles]
        self.facts = [dict(handle.facts) for handle in handles]
        self.homes = [handle.home for handle in handles]
        self.existing = set(sharding.tensor_sharded)
        self.lost = set(sharding.lost)
        self.loads = Counter(sharding.loads)
        self.tally = sharding.tally.copy()
        self.fresh = fresh_id()
        """Numbers from this one on are fresh."""


class Writer:
    """Writes down one repeat."""

    def __init__(self, repeat: Repeat, ops: Sequence[Op], before: Snapshot, notes: Notes) -> None:
        """`ops` are the repeat's, each with attributes of its own: so these tell where they come from."""
        self._repeat, self._before, self._notes = repeat, before, notes
        numbers = [number for versions in before.versions for number in versions.values()]
        self._results = len(numbers)
        numbers += repeat.results
        self._fresh = len(numbers)
        self._place_of = {number: place for place, number in enumerate(numbers)}
        """Every number's place in the pool."""
        if len(self._place_of) < len(numbers):
            raise Unforeseen
        self._step_of = {id(op): n for n, op in enumerate(ops)}
        self._step_with = {id(op.attrs): n for n, op in enumerate(ops) if op.attrs is not None}
        self._changing = {n for n, _ in repeat.sequence.changing}
        self._items: list[Between | Stretch | tuple[Stretch, ...]] = []
        self._uses: dict[int, list[tuple[int, int, Rule | None]]] = {}
        self._opened: dict[str, OpenStretch] = {}
        self._stretches = 0

    def write(self, placed: Sequence[Placed]) -> PlacedRepeat:
        """What was placed, written down. Raises Unforeseen if it cannot be."""
        before, sharding = self._before, self._before.sharding
        if set(sharding.lost) != before.lost or sharding.signals:
            raise Unforeseen
        self._write_stream(placed)
        gone, more = self._outside()
        made = self._made()
        laid = [(self._place(n), shape, dtype, placement) for n, shape, dtype, placement in self._notes.laid]
        count = len(self._place_of) - self._fresh
        if count > BLOCK:
            raise Unforeseen
        return PlacedRepeat(
            items=self._items,
            uses=self._uses,
            results=self._results,
            fresh=self._fresh,
            count=count,
            creations=[one._replace(loads=_less(one.loads, before.loads)) for one in self._notes.creations],
            gone=gone,
            more=more,
            made=made,
            loads=_less(sharding.loads, before.loads),
            home=sharding.home,
            tally=sharding.tally.since(before.tally),
            laid=laid,
        )

    def _place(self, number: int) -> int:
        """A number's place in the pool."""
        place = self._place_of.get(number)
        if place is None:
            if number < self._before.fresh:
                raise Unforeseen  # a tensor that the repeat is not about
            place = self._place_of[number] = len(self._place_of)
        return place

    # --- writing down what workers were told ---

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
        """Whether what comes between stretches has to wait for the one that this worker is at.

        If that does not make what is exchanged, the exchange goes first, and the stretch goes on after it:
        so all gradients are summed one after the other, and then all parameters are updated in one stretch.
        """
        opened = self._opened.get(worker)
        if opened is None or opened.makes(tensor):
            return True
        if isinstance(between, Exchange):
            opened.early += nbytes(Spec(between.shape, between.dtype))
        limit = self._before.sharding.memory.get(worker, 0)
        return opened.early > (min(MOST_EARLY, limit // 16) if limit else MOST_EARLY)

    def _write(self, worker: str, one: Any) -> None:
        opened = self._opened.get(worker)
        if opened is not None and len(opened.steps) == LONGEST:
            self._close((worker,))
            opened = None
        if opened is None:
            opened = self._opened[worker] = OpenStretch(self._stretches)
            self._stretches += 1
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
        """An op's usual attributes; the step of the repeat that they come from, if one; and by which rule."""
        steps = self._repeat.sequence.steps
        step = -1 if op.attrs is None else self._step_with.get(id(op.attrs), -1)
        if step >= 0:
            return steps[step].attrs, step, None
        rule = self._notes.rule(op)
        step = -1 if rule is None else self._step_of.get(id(rule.cmd), -1)
        if rule is None or step < 0:
            return op.attrs, -1, None
        return rule.attrs(steps[step].attrs), step, rule

    def _close(self, workers: Sequence[str]) -> None:
        """End these workers' stretches."""
        opened = [(worker, self._opened.pop(worker)) for worker in workers if worker in self._opened]
        explicit = self._repeat.sequence.explicit
        closed = [Stretch(worker, one, self._results, self._fresh, explicit) for worker, one in opened]
        self._items += [one for one in closed if one.length < SHORTEST]
        together = tuple([one for one in closed if one.length >= SHORTEST])
        if together:
            self._items.append(together)

    # --- writing down the books ---

    def _outside(self) -> tuple[list[int], list[More]]:
        """Which of the tensors from outside are gone, and what there is more of others."""
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
            versions, said = self._versions(handle, known), self._facts(handle, facts)
            if versions or said:
                more.append(More(n, versions, said, sharding.key_of(handle)))
        return gone, more

    def _made(self) -> list[Made]:
        """The tensors that were not there before."""
        there = self._before.sharding.tensor_sharded
        new = [number for number in there if number not in self._before.existing]
        own = {number for number in new if self._place(number) < self._fresh}
        if own != {self._repeat.results[n] for n in self._repeat.kept}:
            raise Unforeseen
        return [self._made_of(number, there[number]) for number in new]

    def _made_of(self, number: int, handle: TensorHandle) -> Made:
        return Made(
            self._place(number),
            handle.spec,
            handle.home,
            self._versions(handle, {}),
            self._facts(handle, {}),
            -1 if handle.origin is None else self._step_of[id(handle.origin)],
            handle.loads,
            self._before.sharding.key_of(handle),
        )

    def _versions(self, handle: TensorHandle, known: Mapping[Placement, int]) -> Versions:
        found = [(have, number) for have, number in handle.versions.items() if have not in known]
        return tuple([(have, self._place(number)) for have, number in found])

    def _facts(self, handle: TensorHandle, known: Mapping[str, int]) -> Facts:
        found = [(what, number) for what, number in handle.facts.items() if what not in known]
        return tuple([(what, self._place(number)) for what, number in found])


def _less(loads: Counter[str], before: Counter[str]) -> Counter[str]:
    """By how much loads differ, where they do."""
    found = {worker: loads[worker] - before[worker] for worker in loads.keys() | before.keys()}
    return Counter({worker: n for worker, n in found.items() if n})
