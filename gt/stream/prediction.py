"""A prediction: a known sequence that a stream has begun, and the ops of it that have occurred so far."""

import itertools
from collections.abc import Sequence
from typing import Any

from gt.stream.instruction_table import IN_SEQUENCE
from gt.stream.instructions import Op
from gt.stream.sequences import HotSequence, alike, same

MIN_BULK_INSTRUCTIONS = 8
"""Fewer instructions than this are compared one by one, which is as fast as comparing them together."""


class Prediction:
    """A sequence of which some ops have occurred."""

    def __init__(self, sequence: HotSequence) -> None:
        self.sequence = sequence
        self.ops: list[Op] = []
        """The ops that have occurred."""
        self._refs: dict[int, int] = {}
        """By tensor: its reference in the sequence, as in `Step.inputs`. The last results may be
        missing, until `_add_result_refs` adds them."""
        self._named = 0
        """How many results are in `_refs`."""
        self._results: list[int] = []
        self._outside: list[int] = []

    @property
    def left(self) -> int:
        """How many ops are still to come."""
        return len(self.sequence.steps) - len(self.ops)

    def refs(self, cmd: Op) -> tuple[int, ...]:
        """The references of an op's inputs, as in `Step.inputs`."""
        known = self._add_result_refs()
        for tensor in cmd.inputs:
            if tensor not in known:
                self._outside.append(tensor)
                known[tensor] = -len(self._outside)
        return tuple([known[tensor] for tensor in cmd.inputs])

    def _add_result_refs(self) -> dict[int, int]:
        refs, named, made = self._refs, self._named, len(self._results)
        if named < made:
            refs.update(zip(self._results[named:], range(named, made), strict=True))
            self._named = made
        return refs

    def is_next(self, cmd: Op, refs: tuple[int, ...]) -> bool:
        """Whether an op, with these references, is the next one of the sequence."""
        op, inputs, attrs, numbers = self.sequence.expected[len(self.ops)]
        return cmd.op == op and refs == inputs and same(cmd.attrs, attrs, numbers)

    def add(self, cmd: Op) -> None:
        """Add the next op."""
        self._results.append(cmd.result)
        self.ops.append(cmd)

    def is_beginning_of(self, other: HotSequence) -> bool:
        """Whether the ops so far are also the beginning of another sequence."""
        index = len(self.ops)
        return other is not self.sequence and all(
            a.op == b.op and a.inputs == b.inputs and alike(a.attrs, b.attrs)
            for a, b in zip(other.steps[:index], self.sequence.steps[:index], strict=True)
        )

    def switch_to(self, other: HotSequence) -> None:
        """Predict another sequence, which begins with the ops so far."""
        self.sequence = other

    def take(self, instructions: Sequence[Any], start: int) -> int:
        """Add the instructions from an index on that continue the sequence; returns how many these are.

        It compares all of them at once. 0 if one differs, or if there are too few for that to be faster: the
        caller then handles them one by one.
        """
        left = self.left
        rest = instructions[start : start + 2 * left + MIN_BULK_INSTRUCTIONS]
        if len(rest) < MIN_BULK_INSTRUCTIONS:
            return 0
        if not IN_SEQUENCE.issuperset(map(type, rest)):
            rest = [*itertools.takewhile(lambda one: type(one) in IN_SEQUENCE, rest)]
        ops = [one for one in rest if type(one) is Op]
        beyond = len(ops) - left
        if beyond >= 0:
            end = len(rest)
            while beyond >= 0:
                end -= 1
                beyond -= type(rest[end]) is Op
            ops, rest = ops[:left], rest[: end + 1]
        return len(rest) if self._add_all(ops) else 0

    def _add_all(self, ops: list[Op]) -> bool:
        columns = self.sequence.columns
        index, end = len(self.ops), len(self.ops) + len(ops)
        inputs = [op.inputs for op in ops]
        if (
            [op.op for op in ops] != columns.names[index:end]
            or [*map(len, inputs)] != columns.arities[index:end]
            or not _all_alike([op.attrs for op in ops], columns.attrs[index:end])
        ):
            return False
        for n, name, kind in columns.numbers[columns.number_offsets[index] : columns.number_offsets[end]]:
            if type(ops[n - index].attrs[name]) is not kind:  # type: ignore[index] - they are alike
                return False
        made = [op.result for op in ops]
        fresh: list[int] = []
        for n, position in columns.sources[len(self._outside) :]:
            if n >= end:
                break
            fresh.append(inputs[n - index][position])
        outside = self._outside + fresh
        tensors = [*self._results, *made, *reversed(outside)]
        refs = columns.refs[columns.offsets[index] : columns.offsets[end]]
        if [*itertools.chain.from_iterable(inputs)] != [tensors[ref] for ref in refs]:
            return False
        if fresh:
            new = set(fresh)
            refs_now = self._add_result_refs()
            if len(new) < len(fresh) or not new.isdisjoint(made) or not refs_now.keys().isdisjoint(new):
                return False
            refs_now.update(zip(fresh, range(-1 - len(self._outside), -1 - len(outside), -1), strict=True))
        self._outside = outside
        self._results += made
        self.ops += ops
        return True


def _all_alike(given: list[Any], expected: list[Any]) -> bool:
    if given == expected:
        return True
    return all(a == b or alike(a, b) for a, b in zip(given, expected, strict=True))
