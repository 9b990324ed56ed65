"""The seeds of random ops: one for each op, derived from the user's."""

import itertools

_seed = 0
_draws = itertools.count()


def get_state() -> tuple[int, int]:
    """The seed, and the number of random ops since it was set."""
    global _draws
    drawn = next(_draws)
    _draws = itertools.count(drawn)
    return _seed, drawn


def set_state(seed: int, drawn: int) -> None:
    """Continue as after this number of draws from this seed."""
    global _seed, _draws
    _seed, _draws = seed, itertools.count(drawn)


def manual_seed(seed: int) -> None:
    """Set the seed: the same seed gives the same random numbers, on every engine."""
    global _seed, _draws
    if not isinstance(seed, int):
        raise TypeError(f"a seed must be an integer, but got {seed!r}")
    _seed, _draws = seed, itertools.count()


def next_seed() -> int:
    """A seed for one op, of 63 bits: far from all others, so that no two ops draw the same numbers."""
    return (_seed * 0x9E3779B97F4A7C15 + next(_draws) * 0xD1342543DE82EF95) % 2**63
