"""What `make test` leaves to `make test-all`: further variants of slow tests, and most generated examples.

A whole test, or a variant of it, is marked `thorough`. Of many parameters that are alike, `some` run always.
Of a test that hypothesis gives examples, `make test` tries a quarter.
"""

import os
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")

THOROUGH = os.environ.get("TAPESTRY_TEST_ALL") == "1"
"""Whether everything runs. `make test-all` sets it."""


def some(values: Sequence[T], every: int, first: int = 0) -> list[T]:
    """All values if everything runs; else one in `every` of them, always the same."""
    return list(values[first :: 1 if THOROUGH else every])


def some_of_each(values: Sequence[T], kind: Callable[[T], Hashable], every: int) -> list[T]:
    """The first of each kind and one in `every` of the others; all of them if everything runs."""
    kinds: set[Hashable] = set()
    chosen = []
    for n, value in enumerate(values):
        if THOROUGH or kind(value) not in kinds or n % every == 0:
            chosen.append(value)
        kinds.add(kind(value))
    return chosen


def fewer(examples: int) -> int:
    """How many examples a test that asks for so many is given."""
    return examples if THOROUGH else max(examples // 4, min(examples, 5))
