"""Executes repeats that are not compiled, without expanding them into instructions.

Results that are not kept are not stored in the client's values, so a step costs less than an instruction.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from gt.interrupts import interruptible
from gt.stream.instructions import LocalInstruction, Op
from gt.stream.repeats import Repeat
from gt.stream.sequences import MAX_SEQUENCE_OPS, HotSequence
from gt.worker.engine.base import MIN_DONATED_BYTES, Engine, attributes

_MAX_PLANNED_STEPS = 16 * MAX_SEQUENCE_OPS
"""The largest number of steps in all plans. With more, all plans are dropped, and made again when needed."""

InPlace = Callable[[Sequence[Any], int], Any]

_Plan = Sequence[
    tuple[
        str,
        Callable[..., Any],
        Callable[[Sequence[Any]], Sequence[Any]],
        int,
        tuple[int, ...],
        tuple[int, ...],
        tuple[int, InPlace] | None,
    ]
]
"""For each step: the op, its function for the sequence's attributes, a getter of its inputs from the list of
all tensors, and the references that no later step uses: one result, further results, tensors from outside.
Last, if the first input is one of these: its reference and the op's in-place form, if it has one.
Plain tuples, because an op takes about a microsecond, and attribute lookups would be measurable."""


class EagerRepeats:
    """The plans by which a worker executes repeats step by step."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._plans: dict[tuple[HotSequence, tuple[int, ...]], _Plan | None] = {}
        """By sequence, and the steps whose results are kept."""
        self._steps = 0

    @interruptible
    def run(self, repeat: Repeat, values: dict[int, Any]) -> Sequence[LocalInstruction]:
        """Execute a repeat. If a step fails, returns the instructions from that step on, else none."""
        key = repeat.sequence, tuple(repeat.kept)
        if key not in self._plans:
            self._steps += len(repeat.sequence)
            if self._steps > _MAX_PLANNED_STEPS:
                self._plans.clear()
                self._steps = len(repeat.sequence)
            self._plans[key] = _plan(*key, self._engine)
        plan = self._plans[key]
        inputs, results, changed = repeat.inputs, repeat.results, repeat.changed
        if plan is None or not all(map(values.__contains__, inputs)):
            return repeat.expanded()
        # Indexed by reference: results from 0 on, tensors from outside from -1 down.
        tensors: list[Any] = [None] * (len(plan) + 1)
        tensors += [values[tensor] for tensor in reversed(inputs)]
        gone = set(repeat.freed)
        run = self._engine.run
        # Small results need no donated memory, and asking for it would take longer than computing them.
        nbytes = self._engine.nbytes
        large = any(nbytes(values[tensor]) >= MIN_DONATED_BYTES for tensor in inputs)
        done = 0
        try:
            for op, function, get_inputs, unneeded, others, last_of, donated in plan:
                made = None
                if donated is not None and large:
                    made = self._in_donated_memory(
                        donated, op, get_inputs(tensors), changed.get(done), repeat
                    )
                if made is not None:
                    tensors[done] = made
                elif done in changed:
                    tensors[done] = run(op, [*get_inputs(tensors)], changed[done])
                else:
                    tensors[done] = function(*get_inputs(tensors))
                done += 1
                tensors[unneeded] = None
                if others:
                    for ref in others:
                        tensors[ref] = None
                if last_of and gone:
                    for ref in last_of:
                        if inputs[-1 - ref] in gone:
                            tensors[ref] = None
                            values.pop(inputs[-1 - ref], None)
        except Exception:  # noqa: BLE001 - raised again when the rest is executed
            for n in range(done):
                if tensors[n] is not None:
                    values[results[n]] = tensors[n]
            left = repeat.expanded()
            ops = [n for n, one in enumerate(left) if type(one) is Op]
            return left[ops[done] :]
        for n in repeat.kept:
            values[results[n]] = tensors[n]
        for tensor in gone:
            values.pop(tensor, None)
        return ()

    def _in_donated_memory(
        self,
        donated: tuple[int, InPlace],
        op: str,
        inputs: Sequence[Any],
        changed: dict[str, Any] | None,
        repeat: Repeat,
    ) -> Any:
        """The result of a step in the memory of its first input; None if that is impossible."""
        ref, in_place = donated
        if ref < 0 and repeat.inputs[-1 - ref] not in repeat.freed:
            return None
        if changed is not None:
            found = self._engine.in_place(op, changed)
            if found is None:
                return None
            in_place = found
        # It is in the list of all tensors and, if it is from outside, among the client's values.
        return in_place(inputs, 1 if ref >= 0 else 2)


def _plan(sequence: HotSequence, kept: Sequence[int], engine: Engine) -> _Plan | None:
    """The plan of a sequence; None if an op of it is unknown or has an attribute that will be refused."""
    tensors = set(kept)
    plan: list[Any] = []
    for step, dying in zip(sequence.steps, sequence.last_uses, strict=True):
        unneeded = [ref for ref in dying if ref >= 0 and ref not in tensors] or [len(sequence)]
        last_of = tuple([ref for ref in dying if ref < 0])
        try:
            if not (step.attrs or {}).keys() <= attributes(step.op):
                return None
            function = engine.bound(step.op, step.attrs)
        except Exception:  # noqa: BLE001 - there is no such op, or this engine does not have it
            return None
        get_inputs, others = _getter(step.inputs), tuple(unneeded[1:])
        in_place = engine.in_place(step.op, step.attrs)
        first = step.inputs[0] if step.inputs else None
        donated = in_place is not None and first in (*unneeded, *last_of) and (first, in_place)
        plan.append((step.op, function, get_inputs, unneeded[0], others, last_of, donated or None))
    return plan


def _getter(indices: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A getter of the items at these indices, as a tuple or list."""
    if len(indices) > 1:
        return operator.itemgetter(*indices)
    return operator.itemgetter(slice(indices[0], indices[0] + 1 or None) if indices else slice(0))
