"""Carries out a repeat that is not compiled, without making its ops one by one.

A result that is not kept cannot be read, so it is not put among the worker's values, or taken out again,
and an op costs less than one that came by itself.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gt.ops import TABLE
from gt.stream.instructions import LocalInstruction, Op
from gt.stream.repeats import Repeat
from gt.stream.sequences import LONGEST, HotSequence
from gt.worker.engine.base import Engine, attributes

_MOST_STEPS = 16 * LONGEST
"""How many steps there are plans for; for more, they are made anew."""


_Plan = Sequence[
    tuple[
        str,
        Callable[..., Any],
        Callable[[Sequence[Any]], Iterable[Any]],
        dict[str, Any] | None,
        int,
        tuple[int, ...],
        tuple[int, ...],
    ]
]
"""For each step: the op and its function, what picks its inputs out of all tensors, its attributes, and what
nothing needs afterwards: a result, other results, and tensors from outside. An op takes a microsecond, and so
may not much else."""


class EagerRepeats:
    """How a worker's sequences run, step by step."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._plans: dict[tuple[HotSequence, tuple[int, ...]], _Plan | None] = {}
        """By sequence, and the steps whose results are kept."""
        self._steps = 0

    def run(self, repeat: Repeat, values: dict[int, Any]) -> Sequence[LocalInstruction]:
        """Carry out as much as goes well. The result is what is left to do: all from what failed on."""
        key = repeat.sequence, tuple(repeat.kept)
        if key not in self._plans:
            self._steps += len(repeat.sequence)
            if self._steps > _MOST_STEPS:
                self._plans.clear()
                self._steps = len(repeat.sequence)
            self._plans[key] = _plan(*key, self._engine.functions)
        plan = self._plans[key]
        inputs, results, changed = repeat.inputs, repeat.results, repeat.changed
        if plan is None or not all(map(values.__contains__, inputs)):
            return repeat.expanded()
        # The result of a step is at its number, the first tensor from outside at -1; between them is nothing.
        there: list[Any] = [None] * (len(plan) + 1)
        there += [values[tensor] for tensor in reversed(inputs)]
        gone = set(repeat.freed)
        run = self._engine.run
        done = 0
        try:
            for op, function, take, attrs, unneeded, others, last_of in plan:
                if attrs is None:
                    there[done] = function(*take(there))
                else:
                    there[done] = run(op, [*take(there)], changed.get(done, attrs))
                done += 1
                there[unneeded] = None
                if others:
                    for ref in others:
                        there[ref] = None
                if last_of and gone:
                    for ref in last_of:
                        if inputs[-1 - ref] in gone:
                            there[ref] = None
                            values.pop(inputs[-1 - ref], None)
        except Exception:  # noqa: BLE001 - it will be raised again, where it is explained
            for n in range(done):
                if there[n] is not None:
                    values[results[n]] = there[n]
            left = repeat.expanded()
            ops = [n for n, one in enumerate(left) if type(one) is Op]
            return left[ops[done] :]
        for n in repeat.kept:
            values[results[n]] = there[n]
        for tensor in gone:
            values.pop(tensor, None)
        return ()


def _plan(
    sequence: HotSequence, kept: Sequence[int], functions: Mapping[str, Callable[..., Any]]
) -> _Plan | None:
    """None if its ops must be executed one by one, because one of them will be refused."""
    there = set(kept)
    plan: list[Any] = []
    for step, dying in zip(sequence.steps, sequence.last_uses, strict=True):
        if step.op not in TABLE or not (step.attrs or {}).keys() <= attributes(step.op):
            return None
        unneeded = [ref for ref in dying if ref >= 0 and ref not in there] or [len(sequence)]
        last_of = tuple([ref for ref in dying if ref < 0])
        try:
            function = functions[step.op]
        except Exception:  # noqa: BLE001 - an engine need not have every op
            return None
        take, others = _take(step.inputs), tuple(unneeded[1:])
        plan.append((step.op, function, take, step.attrs, unneeded[0], others, last_of))
    return plan


def _take(places: Sequence[int]) -> Callable[[Sequence[Any]], Iterable[Any]]:
    """What picks some out of many."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return operator.itemgetter(slice(places[0], places[0] + 1 or None) if places else slice(0))
