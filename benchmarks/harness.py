"""Measuring: subject and reference take turns, and what is reported is the median of their ratios.

Taking turns is the point. A machine's speed drifts, by heat and by neighbours; two measurements side by
side share the drift, and it cancels in their ratio.
"""

import dataclasses
import operator
import statistics
import time
from collections.abc import Callable

Job = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Goal:
    """The goal of a number, such as `<= 3` or `>= 0.95`."""

    sign: str
    value: float
    unit: str = "x"

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}{self.unit}"

    def met(self, number: float) -> bool:
        """Whether a number reaches the goal."""
        return {"<=": operator.le, ">=": operator.ge}[self.sign](number, self.value)


def cost_at_most(times: float) -> Goal:
    """The subject may take this many times as long as the reference."""
    return Goal("<=", times)


def speed_at_least(times: float) -> Goal:
    """The subject does at least this many times the reference's work in the same time."""
    return Goal(">=", times)


def seconds_at_most(seconds: float) -> Goal:
    """The subject itself takes no longer than this; the ratio is printed beside it."""
    return Goal("<=", seconds, " s")


def index_at_least(value: float) -> Goal:
    """The number that the subject returns is at least this."""
    return Goal(">=", value, "")


def index_at_most(value: float) -> Goal:
    """The number that the subject returns is at most this."""
    return Goal("<=", value, "")


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """One line of the list. `prepare` makes the two jobs, and imports what they need."""

    name: str
    what: str
    reference: str
    goal: Goal
    prepare: Callable[[], tuple[Job, Job]]


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a benchmark."""

    name: str
    value: float
    """The median, in the goal's terms: a cost, a speed or seconds."""
    low: float
    high: float
    """The quartiles: half of all repeats are between them."""
    ratio: float
    """The subject's time over the reference's, whatever the goal is about."""
    goal: str
    met: bool
    reference: str
    subject_seconds: float
    reference_seconds: float
    repeats: int


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(what: str, reference: str, goal: Goal) -> Callable[[Callable[[], tuple[Job, Job]]], Benchmark]:
    """Register a function that prepares (subject, reference) under its own name."""

    def register(prepare: Callable[[], tuple[Job, Job]]) -> Benchmark:
        entry = Benchmark(prepare.__name__, what, reference, goal, prepare)
        BENCHMARKS[entry.name] = entry
        return entry

    return register


_afterwards: list[Callable[[], object]] = []


def afterwards(clean: Callable[[], object]) -> None:
    """Have something done when the benchmark that is being prepared is over, such as ending processes."""
    _afterwards.append(clean)


def run(entry: Benchmark, repeats: int = 9) -> Result:
    """Measure subject and reference, taking turns; the first turn of each is not counted."""
    try:
        return _run(entry, repeats)
    finally:
        while _afterwards:
            _afterwards.pop()()


def _run(entry: Benchmark, repeats: int) -> Result:
    subject, reference = entry.prepare()
    pairs: list[tuple[float, float]] = []
    returned: list[object] = []
    for turn in range(repeats + 1):
        # Who goes first alternates too: the second may find caches warm or the clock lowered.
        if turn % 2:
            ours, result = _time(subject)
            theirs, _ = _time(reference)
        else:
            theirs, _ = _time(reference)
            ours, result = _time(subject)
        if turn:
            pairs.append((ours, theirs))
            returned.append(result)
    values = [_value(entry.goal, *pair, result) for pair, result in zip(pairs, returned, strict=True)]
    low, value, high = statistics.quantiles(values, n=4, method="inclusive")
    return Result(
        name=entry.name,
        value=value,
        low=low,
        high=high,
        ratio=statistics.median(ours / theirs for ours, theirs in pairs),
        goal=str(entry.goal),
        met=entry.goal.met(value),
        reference=entry.reference,
        subject_seconds=statistics.median(ours for ours, _ in pairs),
        reference_seconds=statistics.median(theirs for _, theirs in pairs),
        repeats=repeats,
    )


def _value(goal: Goal, ours: float, theirs: float, returned: object) -> float:
    if goal.unit == "x":
        return ours / theirs if goal.sign == "<=" else theirs / ours
    if goal.unit:
        return ours
    assert isinstance(returned, float), "a benchmark of an index returns it"
    return returned


def _time(job: Job) -> tuple[float, object]:
    start = time.perf_counter()
    result = job()
    seconds = time.perf_counter() - start
    # Anything else is dropped: what a job made must not be alive while the next one runs.
    return seconds, result if isinstance(result, float) else None
