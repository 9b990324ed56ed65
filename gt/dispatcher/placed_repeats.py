"""Repeats of a client whose tensors are spread: placed op by op until they come again, and then as a whole.

A repeat that comes with tensors that lie as they did the last time is placed as it was the last time: see
`PlacedRepeat`. What else placing depends on is part of the key it is found by, is looked at again, or makes
that it is placed op by op.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gt.dispatcher.fair_share import Session
from gt.dispatcher.lowering import LOWERINGS, NARROW
from gt.dispatcher.placed_repeat import PlacedRepeat, Unforeseen
from gt.dispatcher.placing import place
from gt.dispatcher.planning import kind_of
from gt.dispatcher.repeat_writer import Snapshot, Writer
from gt.dispatcher.sharding_modifier import ShardingStreamModifier
from gt.dispatcher.tensor_handle import TensorHandle
from gt.transport.protocol import Op
from gt.transport.repeats import Repeat, Template

MOST_OPS = 1 << 18
"""How many ops, all together, what is written down may have; beyond that it begins anew."""
MOST_SEEN = 64
"""How many ways in which a repeat came are kept in mind."""


class _Known:
    """What is known of a repeat, whatever the tensors."""

    def __init__(self, template: Template) -> None:
        self.template = template  # kept, so that it stays the only one with its identity
        steps = template.sequence.steps
        self.kinds = {n: kind_of(steps[n].attrs or {}) for n, _ in template.sequence.changing}
        self.lowered = {n for n in self.kinds if steps[n].op in LOWERINGS or steps[n].op in NARROW}
        """Steps that may become several ops, which depends on all their attributes."""
        self.seen: set[Any] = set()
        self.placed: dict[Any, PlacedRepeat] = {}


class PlacedRepeats:
    """One client's repeats, as they were placed."""

    def __init__(self, sharding: ShardingStreamModifier) -> None:
        self._sharding = sharding
        self._known: dict[int, _Known] = {}
        """By the template's identity."""
        self._ops = 0
        """How many ops they have."""
        self._mesh: tuple[Any, ...] = ()
        """The workers that all this is about."""
        self._again = self._one_by_one = 0

    def get_stats(self) -> dict[str, int]:
        """How many repeats were placed as they had been before, and how many op by op."""
        return {"repeats_placed_again": self._again, "repeats_placed_op_by_op": self._one_by_one}

    def place(
        self, session: Session, instructions: Sequence[Any], sessions: Iterable[Session] = ()
    ) -> list[Any]:
        """What workers have to do for a client's instructions, and which; `sessions` share them."""
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
        placed = self._as_before(repeat)
        if isinstance(placed, list):
            self._again += 1
            return placed
        self._one_by_one += 1
        if placed is None:
            return place(session, self._sharding, repeat.expanded())
        return self._write_down(session, repeat, *placed)

    def _as_before(self, repeat: Repeat) -> list[Any] | tuple[_Known, Any, Snapshot] | None:
        """Place a repeat as it was before. If there is nothing like it: what it takes to write it down, if
        that is worth it."""
        sharding = self._sharding
        mesh = sharding.epoch, sharding.workers
        if mesh != self._mesh:
            self._known.clear()
            self._ops, self._mesh = 0, mesh
        known = self._known.get(id(repeat.template))
        if known is None:
            self._count(len(repeat.sequence))
            known = self._known[id(repeat.template)] = _Known(repeat.template)
        try:
            tensors, handles, key = self._look(repeat, known)
            found = known.placed.get(key)
            if found is not None:
                return found.again(repeat, sharding, tensors, handles)
        except Unforeseen:
            return None
        if key not in known.seen:
            # What never comes this way again is not worth writing down.
            if len(known.seen) >= MOST_SEEN:
                known.seen.clear()
            known.seen.add(key)
            return None
        return known, key, Snapshot(sharding, tensors, handles)

    def _count(self, ops: int) -> None:
        self._ops += ops
        if self._ops > MOST_OPS:
            self._known.clear()
            self._ops = ops

    def _write_down(
        self, session: Session, repeat: Repeat, known: _Known, key: Any, before: Snapshot
    ) -> list[Any]:
        """Place a repeat op by op, and keep in mind how."""
        instructions = [_with_own_attrs(one) for one in repeat.expanded()]
        ops = [one for one in instructions if type(one) is Op]
        with self._sharding.noting() as notes:
            placed = place(session, self._sharding, instructions)
        try:
            written = Writer(repeat, ops, before, notes).write(placed)
        except Unforeseen:
            known.seen.discard(key)
        else:
            self._count(len(placed))
            known.placed[key] = written
        return placed

    # --- what placing depends on ---

    def _look(self, repeat: Repeat, known: _Known) -> tuple[list[int], list[TensorHandle], Any]:
        """The tensors from outside, their handles, and all that placing the repeat depends on."""
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
            raise Unforeseen
        tensors: list[int] = []
        handles: list[TensorHandle] = []
        alike = [self._alike(tensor, tensors, handles) for tensor in (*inputs, *others)]
        if not made.isdisjoint(tensors) or len(set(tensors)) < len(tensors):
            raise Unforeseen
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
            tuple(alike),
            sharding.home,
            tuple(changed),
            tuple(signals),
        )
        return tensors, handles, key

    def _alike(self, tensor: int, tensors: list[int], handles: list[TensorHandle]) -> Any:
        """The same for tensors for which workers are told the same; adds it, and the facts about it."""
        handle = self._sharding.tensor_sharded.get(tensor)
        if handle is None:
            raise Unforeseen  # it is lost, or was never there
        tensors.append(tensor)
        handles.append(handle)
        key = self._sharding.key_of(handle), handle.loads
        origin = handle.origin
        if origin is None and not handle.facts:
            return key
        made = None if origin is None else (origin.op, repr(origin.attrs), origin.site)
        facts = [(what, self._alike(fact, tensors, handles)) for what, fact in handle.facts.items()]
        return key, made, tuple(facts)


def _with_own_attrs(instruction: Any) -> Any:
    """The same instruction; if it is an op, with attributes that are no other's."""
    if type(instruction) is not Op or instruction.attrs is None:
        return instruction
    result, op, inputs, attrs, site = msgspec.structs.astuple(instruction)
    return Op(result, op, inputs, dict(attrs), site)
