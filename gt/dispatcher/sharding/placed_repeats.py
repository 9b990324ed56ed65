"""Places the repeats of a client that uses several workers: op by op at first, then by replay.

If the tensors from outside have the same placements as in an earlier occurrence of the repeat, its recorded
placement is replayed: see `PlacedRepeat`. Everything else that a placement depends on is part of the key, is
checked again before a replay, or causes the repeat to be placed op by op.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gt.dispatcher.session import Session
from gt.dispatcher.sharding.lowering import LOWERINGS, NARROW
from gt.dispatcher.sharding.modifier import ShardingStreamModifier
from gt.dispatcher.sharding.placed_repeat import NotReplayable, PlacedRepeat
from gt.dispatcher.sharding.placing import place
from gt.dispatcher.sharding.planning import kind_of
from gt.dispatcher.sharding.repeat_writer import Snapshot, Writer
from gt.dispatcher.tensor_handle import TensorHandle
from gt.stream.instructions import Op
from gt.stream.repeats import Repeat, Template

MAX_RECORDED_OPS = 1 << 18
"""How many ops the recorded placements have in total; beyond that, all are dropped."""
MAX_KEYS_SEEN = 64
"""How many keys of a repeat's occurrences are remembered."""


class _TemplatePlacements:
    """A template, and the recorded placements of its repeats."""

    def __init__(self, template: Template) -> None:
        self.template = template  # kept alive so that its `id()` stays unique
        steps = template.sequence.steps
        self.kinds = {n: kind_of(steps[n].attrs or {}) for n, _ in template.sequence.changing}
        self.lowered = {n for n in self.kinds if steps[n].op in LOWERINGS or steps[n].op in NARROW}
        """Steps that may be lowered to several ops, depending on all their attributes."""
        self.seen: set[Any] = set()
        self.placed: dict[Any, PlacedRepeat] = {}


class PlacedRepeats:
    """The recorded placements of one client's repeats."""

    def __init__(self, sharding: ShardingStreamModifier) -> None:
        self._sharding = sharding
        self._known: dict[int, _TemplatePlacements] = {}
        """By the template's `id()`."""
        self._ops = 0
        """How many ops the recorded placements have in total."""
        self._mesh: tuple[Any, ...] = ()
        """The epoch and workers that these placements are for."""
        self._replayed = self._one_by_one = 0

    def get_stats(self) -> dict[str, int]:
        """How many repeats were placed by replay, and how many op by op."""
        return {"repeats_placed_again": self._replayed, "repeats_placed_op_by_op": self._one_by_one}

    def place(
        self, session: Session, instructions: Sequence[Any], sessions: Iterable[Session] = ()
    ) -> list[Any]:
        """The instructions for each worker; `sessions` are those that share the workers."""
        if Repeat not in map(type, instructions):
            return place(session, self._sharding, instructions)
        out: list[Any] = []
        for one in instructions:
            if type(one) is not Repeat:
                out += place(session, self._sharding, (one,))
            elif session.should_cut(one, sessions):
                out += place(session, self._sharding, one.expanded())
            else:
                out += self._place(session, one)
        return out

    def _place(self, session: Session, repeat: Repeat) -> list[Any]:
        placed = self._replay(repeat)
        if isinstance(placed, list):
            self._replayed += 1
            return placed
        self._one_by_one += 1
        if placed is None:
            return place(session, self._sharding, repeat.expanded())
        return self._record(session, repeat, *placed)

    def _replay(self, repeat: Repeat) -> list[Any] | tuple[_TemplatePlacements, Any, Snapshot] | None:
        """Place a repeat by replay. If no recorded placement applies: the arguments to record one, or None if
        that is not worth it."""
        sharding = self._sharding
        mesh = sharding.epoch, sharding.workers
        if mesh != self._mesh:
            self._known.clear()
            self._ops, self._mesh = 0, mesh
        known = self._known.get(id(repeat.template))
        if known is None:
            self._count(len(repeat.sequence))
            known = self._known[id(repeat.template)] = _TemplatePlacements(repeat.template)
        try:
            tensors, handles, key = self._key(repeat, known)
            found = known.placed.get(key)
            if found is not None:
                return found.replay(repeat, sharding, tensors, handles)
        except NotReplayable:
            return None
        if key not in known.seen:
            # Recorded at the second occurrence: a repeat that occurs once would not repay the recording.
            if len(known.seen) >= MAX_KEYS_SEEN:
                known.seen.clear()
            known.seen.add(key)
            return None
        return known, key, Snapshot(sharding, tensors, handles)

    def _count(self, ops: int) -> None:
        self._ops += ops
        if self._ops > MAX_RECORDED_OPS:
            self._known.clear()
            self._ops = ops

    def _record(
        self, session: Session, repeat: Repeat, known: _TemplatePlacements, key: Any, before: Snapshot
    ) -> list[Any]:
        """Place a repeat op by op, and record its placement."""
        instructions = [_with_own_attrs(one) for one in repeat.expanded()]
        ops = [one for one in instructions if type(one) is Op]
        with self._sharding.logging_placement() as log:
            placed = place(session, self._sharding, instructions)
        try:
            recorded = Writer(repeat, ops, before, log).write(placed)
        except NotReplayable:
            known.seen.discard(key)
        else:
            self._count(len(placed))
            known.placed[key] = recorded
        return placed

    # --- the key ---

    def _key(self, repeat: Repeat, known: _TemplatePlacements) -> tuple[list[int], list[TensorHandle], Any]:
        """The tensors from outside, their handles, and a key of all that the placement depends on.

        Raises NotReplayable if the placement cannot be recorded.
        """
        sharding = self._sharding
        inputs = repeat.inputs
        place_of = {tensor: n for n, tensor in enumerate(inputs)}
        gone = set(repeat.freed)
        others = sorted(gone.difference(place_of))
        freed = sorted([place_of[tensor] for tensor in gone.intersection(place_of)])
        made = set(repeat.results)
        if (
            len(place_of) < len(inputs)
            or len(made) < len(repeat.results)
            or not made.issuperset(sharding.signals)
            or not made.isdisjoint(sharding.lost)
        ):
            raise NotReplayable
        tensors: list[int] = []
        handles: list[TensorHandle] = []
        keys = [self._tensor_key(tensor, tensors, handles) for tensor in (*inputs, *others)]
        if not made.isdisjoint(tensors) or len(set(tensors)) < len(tensors):
            raise NotReplayable
        changed: list[Any] = []
        for n, attrs in repeat.changed.items():
            kind = repr(attrs) if n in known.lowered else kind_of(attrs)
            if kind != known.kinds.get(n):
                changed.append((n, kind))
        number = repeat.results.index
        signals = [(number(tensor), repr(s.layout), s.workers) for tensor, s in sharding.signals.items()]
        key = (
            tuple(repeat.kept),
            tuple(freed),
            tuple(keys),
            sharding.home,
            tuple(changed),
            tuple(signals),
        )
        return tensors, handles, key

    def _tensor_key(self, tensor: int, tensors: list[int], handles: list[TensorHandle]) -> Any:
        """A key that is equal for tensors for which the same instructions are issued.

        Appends the tensor, and those derived from it, to `tensors` and `handles`.
        """
        handle = self._sharding.tensor_sharded.get(tensor)
        if handle is None or handle.results is not None:
            raise NotReplayable  # it is lost, never existed, or is several tensors
        tensors.append(tensor)
        handles.append(handle)
        key = self._sharding.plans.key_of(handle), handle.loads
        origin = handle.origin
        if origin is None and not handle.derived:
            return key
        made = None if origin is None else (origin.op, repr(origin.attrs), origin.site)
        derived = [(what, self._tensor_key(one, tensors, handles)) for what, one in handle.derived.items()]
        return key, made, tuple(derived)


def _with_own_attrs(instruction: Any) -> Any:
    """The instruction; if it is an op, with a copy of its attributes, whose `id()` then identifies it."""
    if type(instruction) is not Op or instruction.attrs is None:
        return instruction
    result, op, inputs, attrs, site = msgspec.structs.astuple(instruction)
    return Op(result, op, inputs, dict(attrs), site)
