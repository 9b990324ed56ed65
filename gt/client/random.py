"""The seeds of random ops: one for each draw, from the one that the user chose."""

import itertools

_seed = 0
_draws = itertools.count()


def manual_seed(seed: int) -> None:
    """Start the random numbers over: the same seed gives the same numbers, on every engine."""
    global _seed, _draws
    if not isinstance(seed, int):
        raise TypeError(f"a seed is a whole number, and this is {seed!r}")
    _seed, _draws = seed, itertools.count()


def next_seed() -> int:
    """A seed for one draw: far from all others, so that no draw continues another, and fit for the wire."""
    return (_seed * 0x9E3779B97F4A7C15 + next(_draws) * 0xD1342543DE82EF95) % 2**63
