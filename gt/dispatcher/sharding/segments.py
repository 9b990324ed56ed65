"""Segments: each worker's part of a repeat between two exchanges, which can be issued again with other ids.

All tensor ids of one occurrence are in one list, its *pool*: first the ids of the versions of its tensors
from outside, then those of its results, then fresh ids. Segments refer to tensors by their index in the pool.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gt.stream.instructions import Exchange, Placed, ShardOp
from gt.stream.repeats import COMPOUND, MAX_RESULT_IDS, Repeat, Template, cut_runs
from gt.stream.sequences import HotSequence, Step

MIN_SEGMENT_OPS = 4
"""Segments with fewer ops than this are sent op by op, and not as repeats."""

Pick = Callable[[Sequence[int]], Sequence[int]]


class Segments(NamedTuple):
    """Repeats for some workers, one for each. Never sent as such."""

    workers: tuple[str, ...]
    each: tuple[Repeat, ...]

    @property
    def size(self) -> int:
        """The number of instructions of the longest repeat."""
        return max([repeat.size for repeat in self.each])


COMPOUND.add(Segments)  # for `weight`; `flat` is not called on placed instructions


class Pool(NamedTuple):
    """The tensor ids of one occurrence of a repeat, and its changed attributes."""

    numbers: list[int]
    results: int
    """The index of the first result."""
    runs: Sequence[int]
    """The ids of the results as ranges: see `runs_of`."""
    fresh: int
    """The index of the first fresh id."""
    changed: dict[int, dict[int, dict[str, Any]]]
    """By segment and step: the attributes that differ in this occurrence."""


def picked(indices: Sequence[int]) -> Pick:
    """A function that returns the ids at these indices of a pool."""
    if len(indices) > 1:
        return operator.itemgetter(*indices)
    own = tuple(indices)
    return lambda numbers: [numbers[index] for index in own]


class Segment:
    """A worker's ops between two exchanges."""

    def __init__(self, worker: str, opened: "OpenSegment", first: int, fresh: int, explicit: bool) -> None:
        """`first` and `fresh` are the pool indices of the repeat's first result and of the first fresh id."""
        self.worker = worker
        self.number = opened.number
        self.length = len(opened.steps)
        self._inputs = picked([*opened.outside])
        self._results = picked(opened.results)
        self._kept = [k for k, index in enumerate(opened.results) if index not in opened.dead]
        self._freed = picked(opened.freed)
        own = [index - first for index in opened.results if index < fresh]
        more = [index - fresh for index in opened.results if index >= fresh]
        self._own = (min(own), max(own) + 1) if own else (0, 0)
        """The range of the repeat's results that contains all of this segment's."""
        self._more = (min(more), max(more) + 1) if more else (0, 0)
        """The range of fresh ids that contains all of this segment's."""
        sequence = HotSequence(opened.steps)
        sequence.explicit = explicit
        self._template = Template(
            sequence, tuple(opened.sites), (), self._result_indices(opened.results, first, fresh)
        )

    def _result_indices(self, results: Sequence[int], first: int, fresh: int) -> tuple[int, ...]:
        """`Template.result_indices` of its results; empty if they are spread over too many ids."""
        start, stop = self._own
        more = stop - start - fresh - self._more[0]
        indices = [index - first - start if index < fresh else index + more for index in results]
        return tuple(indices) if max(indices, default=0) < MAX_RESULT_IDS else ()

    def repeat(self, pool: Pool) -> Repeat:
        """The segment for another occurrence, as a repeat."""
        numbers = pool.numbers
        runs: list[int] = []
        if self._template.result_indices:
            start, stop = self._own
            if stop:
                runs = cut_runs(pool.runs, start, stop)
            start, stop = self._more
            if stop:
                runs += (numbers[pool.fresh + start], stop - start)
        return Repeat(
            self._template,
            self._inputs(numbers),
            self._results(numbers),
            self._kept,
            self._freed(numbers),
            pool.changed.get(self.number, {}),
            runs,
        )

    def one_by_one(self, pool: Pool) -> list[Placed]:
        """The segment for another occurrence, op by op."""
        if not self.length:
            return [Placed((self.worker,), (tensor,)) for tensor in self._freed(pool.numbers)]
        instructions: list[Any] = self.repeat(pool).expanded()
        return [Placed((self.worker,), (one,)) for one in instructions]


class OpenSegment:
    """A segment that is being recorded. Tensors are pool indices."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.steps: list[Step] = []
        self.sites: list[int] = []
        self.results: list[int] = []
        self.freed: list[int] = []
        """Freed tensors that existed before the segment."""
        self.dead: set[int] = set()
        """Freed tensors that the segment made."""
        self.outside: dict[int, int] = {}
        """By pool index of a tensor from outside: its reference in the steps."""
        self.early = 0
        """Bytes of the exchanges that are issued before the segment although they were recorded after its
        start."""
        self._made: dict[int, int] = {}

    def add(
        self, op: str, result: int, inputs: Sequence[int], attrs: dict[str, Any] | None, site: int
    ) -> int:
        """Add an op; returns the index of its step."""
        refs: list[int] = []
        for index in inputs:
            ref = self._made.get(index)
            if ref is None:
                ref = self.outside.setdefault(index, -1 - len(self.outside))
            refs.append(ref)
        step = self._made[result] = len(self.steps)
        self.steps.append(Step(op, tuple(refs), attrs))
        self.sites.append(site)
        self.results.append(result)
        return step

    def makes(self, index: int) -> bool:
        """Whether the tensor at this index of the pool is a result of the segment."""
        return index in self._made

    def free(self, index: int) -> None:
        """Free the tensor at this index of the pool."""
        if index in self._made:
            self.dead.add(index)
        else:
            self.freed.append(index)


class BetweenSegments(NamedTuple):
    """An instruction between segments: an Exchange, or a ShardOp for each worker."""

    workers: tuple[str, ...]
    each: tuple[Exchange | ShardOp, ...]
    tensor: int
    result: int

    def instruction(self, pool: Pool, number: Callable[[], int]) -> Placed:
        """The instruction for another occurrence; `number` gives the number of an exchange."""
        tensor, result = pool.numbers[self.tensor], pool.numbers[self.result]
        first = self.each[0]
        if isinstance(first, Exchange):
            once = Exchange(
                first.kind,
                number(),
                tensor,
                result,
                first.shape,
                first.dtype,
                first.source,
                first.target,
                first.epoch,
            )
            return Placed(self.workers, (once,) * len(self.workers))
        cuts = [one for one in self.each if isinstance(one, ShardOp)]
        return Placed(
            self.workers,
            tuple([ShardOp(tensor, c.num_shards, c.axis, c.start, c.stop, result) for c in cuts]),
        )
