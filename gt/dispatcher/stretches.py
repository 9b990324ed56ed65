"""Stretches: what each worker does of a repeat between two exchanges, said again with other numbers.

All numbers of a repeat's tensors are in one list, its *pool*: those of the tensors from outside, of each
version one; then those of the results; then numbers that nobody else has. What is said here of a tensor is
its place in that list.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gt.transport.protocol import Exchange, Placed, ShardOp
from gt.transport.repeats import MOST_NUMBERS, SEVERAL, Repeat, Template, cut_runs
from gt.transport.sequences import HotSequence, Step

SHORTEST = 4
"""How many ops a stretch has at least to be sent as a repeat: fewer are sent one by one."""

Pick = Callable[[Sequence[int]], Sequence[int]]


class Stretches(NamedTuple):
    """Repeats for some workers, one for each. Never travels as such."""

    workers: tuple[str, ...]
    each: tuple[Repeat, ...]

    @property
    def size(self) -> int:
        """For how many instructions the longest stands."""
        return max([repeat.size for repeat in self.each])


SEVERAL.add(Stretches)  # for what a piece of a stream counts; whoever wants the ops asks each repeat


class Pool(NamedTuple):
    """The numbers of a repeat's tensors, and what else is different this time."""

    numbers: list[int]
    results: int
    """Where the results begin."""
    runs: Sequence[int]
    """The results' numbers as they travel."""
    fresh: int
    """Where the fresh numbers begin."""
    changed: dict[int, dict[int, dict[str, Any]]]
    """By stretch and step: attributes that are others this time."""


def picked(places: Sequence[int]) -> Pick:
    """What takes these places' numbers out of a pool."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    own = tuple(places)
    return lambda numbers: [numbers[place] for place in own]


class Stretch:
    """A worker's ops between two exchanges."""

    def __init__(self, worker: str, opened: "OpenStretch", first: int, fresh: int, explicit: bool) -> None:
        """`first` and `fresh` are where in the pool the repeat's results begin, and fresh numbers."""
        self.worker = worker
        self.number = opened.number
        self.length = len(opened.steps)
        self._inputs = picked([*opened.outside])
        self._results = picked(opened.results)
        self._kept = [k for k, place in enumerate(opened.results) if place not in opened.dead]
        self._freed = picked(opened.freed)
        own = [place - first for place in opened.results if place < fresh]
        more = [place - fresh for place in opened.results if place >= fresh]
        self._own = (min(own), max(own) + 1) if own else (0, 0)
        """From which result of the whole repeat to which it has some."""
        self._more = (min(more), max(more) + 1) if more else (0, 0)
        """The same for fresh numbers."""
        sequence = HotSequence(opened.steps)
        sequence.explicit = explicit
        self._template = Template(
            sequence, tuple(opened.sites), (), self._places(opened.results, first, fresh)
        )

    def _places(self, results: Sequence[int], first: int, fresh: int) -> tuple[int, ...]:
        """Where its results' numbers are among those that are said; empty if there are too many of these."""
        start, stop = self._own
        more = stop - start - fresh - self._more[0]
        places = [place - first - start if place < fresh else place + more for place in results]
        return tuple(places) if max(places, default=0) < MOST_NUMBERS else ()

    def again(self, pool: Pool) -> Repeat:
        """The same once more."""
        numbers = pool.numbers
        runs: list[int] = []
        if self._template.places:
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
        """The same, each op by itself."""
        if not self.length:
            return [Placed((self.worker,), (tensor,)) for tensor in self._freed(pool.numbers)]
        instructions: list[Any] = self.again(pool).expanded()
        return [Placed((self.worker,), (one,)) for one in instructions]


class OpenStretch:
    """A stretch that has not come to its end."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.steps: list[Step] = []
        self.sites: list[int] = []
        self.results: list[int] = []
        self.freed: list[int] = []
        """What is freed and was there before."""
        self.dead: set[int] = set()
        """What is freed and was not."""
        self.outside: dict[int, int] = {}
        """Tensors from outside, and how steps call them."""
        self.early = 0
        """How many bytes have been exchanged before it that came after it began."""
        self._made: dict[int, int] = {}

    def add(
        self, op: str, result: int, inputs: Sequence[int], attrs: dict[str, Any] | None, site: int
    ) -> int:
        """An op; the result is which step it is."""
        refs: list[int] = []
        for place in inputs:
            ref = self._made.get(place)
            if ref is None:
                ref = self.outside.setdefault(place, -1 - len(self.outside))
            refs.append(ref)
        step = self._made[result] = len(self.steps)
        self.steps.append(Step(op, tuple(refs), attrs))
        self.sites.append(site)
        self.results.append(result)
        return step

    def makes(self, place: int) -> bool:
        """Whether a tensor is a result of it."""
        return place in self._made

    def free(self, place: int) -> None:
        """A tensor is not needed any more."""
        if place in self._made:
            self.dead.add(place)
        else:
            self.freed.append(place)


class Between(NamedTuple):
    """What comes between stretches: an exchange, or that workers keep a part of what they have."""

    workers: tuple[str, ...]
    each: tuple[Exchange | ShardOp, ...]
    tensor: int
    result: int

    def again(self, pool: Pool, number: Callable[[], int]) -> Placed:
        """The same once more."""
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
