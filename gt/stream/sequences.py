"""Sequences of ops that a stream repeats, and the equality of ops.

Tensors, run-time attributes (`gt.ops.run_time`), and when tensors are freed may differ between repeats.
"""

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gt.ops.run_time import is_run_time

MAX_SEQUENCE_OPS = 8192
"""The largest number of ops in a sequence."""

TINY_PERIOD = 8
"""A sequence with a shorter period than this is a loop of a few ops, and not a step of a larger loop."""

Numbers = tuple[tuple[str, type], ...]
"""The names and types of attributes that are numbers: for Python, 1, 1.0 and True are equal."""


class Step(NamedTuple):
    """One op of a sequence.

    An input is the result of the step of that number or, below 0, from outside: -1 is the first such tensor.
    """

    op: str
    inputs: tuple[int, ...]
    attrs: dict[str, Any] | None


class Columns:
    """The steps of a sequence as columns, so that many steps are compared at once."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.names = [step.op for step in steps]
        self.arities = [len(step.inputs) for step in steps]
        self.attrs = [step.attrs for step in steps]
        self.refs = [ref for step in steps for ref in step.inputs]
        self.offsets = [0, *itertools.accumulate(self.arities)]
        """The index in `refs` of each step's first input."""
        self.numbers = [
            (n, name, kind) for n, step in enumerate(steps) for name, kind in numbers_in(step.attrs)
        ]
        """All attributes that are numbers: for Python, 1, 1.0 and True are equal."""
        counts = [len(numbers_in(step.attrs)) for step in steps]
        self.number_offsets = [0, *itertools.accumulate(counts)]
        first: dict[int, tuple[int, int]] = {}
        for n, step in enumerate(steps):
            for position, ref in enumerate(step.inputs):
                if ref < 0:
                    first.setdefault(ref, (n, position))
        self.sources = [first[ref] for ref in sorted(first, reverse=True)]
        """For each tensor from outside: the step that mentions it first, and which of its inputs it is."""


class HotSequence:
    """A sequence of ops that a stream repeats."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = tuple(steps)
        self.explicit = False
        """Whether the user marked its beginning and end. Then it is compiled from the second occurrence
        on."""
        self.repeats = 0
        self.hits = 0
        """The number of correct predictions."""
        self.misses = 0

    @functools.cached_property
    def id(self) -> str:
        """A hash that equal sequences share, in every run."""
        import hashlib  # slow to import, and needed only if a sequence was detected

        structure = [(step.op, step.inputs, _structure(step.attrs)) for step in self.steps]
        return hashlib.sha256(repr(structure).encode()).hexdigest()[:12]

    @functools.cached_property
    def is_tiny(self) -> bool:
        """Whether it is a loop over fewer than `TINY_PERIOD` ops."""
        return is_tiny(self.columns.names)

    @functools.cached_property
    def expected(self) -> list[tuple[str, tuple[int, ...], dict[str, Any] | None, Numbers]]:
        """The steps, each with its attributes that are numbers, for `same`."""
        return [(step.op, step.inputs, step.attrs, numbers_in(step.attrs)) for step in self.steps]

    @functools.cached_property
    def columns(self) -> Columns:
        """The steps by column."""
        return Columns(self.steps)

    @property
    def outside(self) -> int:
        """The number of tensors that come from outside."""
        return len(self.columns.sources)

    @functools.cached_property
    def changing(self) -> list[tuple[int, tuple[str, ...]]]:
        """The steps that have run-time attributes, with the names of these."""
        found = []
        for n, step in enumerate(self.steps):
            names = tuple([name for name, value in (step.attrs or {}).items() if is_run_time(name, value)])
            if names:
                found.append((n, names))
        return found

    @functools.cached_property
    def last_uses(self) -> list[list[int]]:
        """For each step, the tensors that no later step uses: references as in `Step.inputs`."""
        last: dict[int, int] = {}
        for n, step in enumerate(self.steps):
            last[n] = n
            last.update(dict.fromkeys(step.inputs, n))
        uses: list[list[int]] = [[] for _ in self.steps]
        for ref, n in last.items():
            uses[n].append(ref)
        return uses

    def __len__(self) -> int:
        return len(self.steps)


def is_tiny(names: Sequence[Any]) -> bool:
    """Whether the ops of these names are a loop over fewer than `TINY_PERIOD` ops."""
    return any(names[n:] == names[:-n] for n in range(1, TINY_PERIOD))


# --- equality of ops ---

_EXACT_TYPES = frozenset((int, bool, str, type(None)))
"""Types for which == is exact, unlike for (1,) and (True,), which are equal."""


def alike(a: dict[str, Any] | None, b: dict[str, Any] | None) -> bool:
    """Whether attributes are equal, except run-time attributes (`gt.ops.run_time`)."""
    if a is None or b is None:
        return a is b
    if a.keys() != b.keys():
        return False
    for name, value in a.items():
        other = b[name]
        kind = type(value)
        if kind is not type(other):  # for Python, 1, 1.0 and True are equal
            return False
        if is_run_time(name, value):
            continue
        if kind in _EXACT_TYPES:
            if value != other:
                return False
        elif repr(value) != repr(other):
            return False
    return True


def same(a: dict[str, Any] | None, b: dict[str, Any] | None, numbers: Numbers) -> bool:
    """As `alike`, faster if they are equal. `numbers` are those of `b`."""
    if a != b:
        return alike(a, b)
    for name, kind in numbers:  # noqa: SIM110 - twice as fast as all()
        if type(a[name]) is not kind:  # type: ignore[index] - it is equal to b, which has it
            return False
    return True


def numbers_in(attrs: dict[str, Any] | None) -> Numbers:
    """The attributes that are numbers, and their types."""
    kinds = (bool, int, float)
    return tuple([(name, type(value)) for name, value in (attrs or {}).items() if type(value) in kinds])


def differ(a: dict[str, Any], b: dict[str, Any], names: Sequence[str]) -> bool:
    """Whether run-time attributes differ; 0.0 and -0.0 do."""
    for name in names:
        x, y = a[name], b[name]
        if x != y or (x == 0 and str(x) != str(y)):
            return True
    return False


def _structure(attrs: dict[str, Any] | None) -> Any:
    if attrs is None:
        return None
    return [
        (name, type(value).__name__ if is_run_time(name, value) else repr(value))
        for name, value in sorted(attrs.items())
    ]
