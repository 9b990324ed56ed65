"""Sampling: some programs stand for all. The choice depends on a seed only, so results can be repeated."""

import math

import numpy as np

from triton_viz.errors import UnsupportedError


def sample_size(sample: float | int, programs: int) -> int:
    """How many programs to run: a share below 1, or a number of them."""
    if isinstance(sample, bool) or not sample > 0 or (sample > 1 and int(sample) != sample):
        raise UnsupportedError(
            f"a sample is a share of the programs such as 0.1, or a number of them such as 64, not {sample!r}"
        )
    count = math.ceil(sample * programs) if isinstance(sample, float) and sample <= 1 else int(sample)
    return min(programs, count)


def choose(sample: float | int, seed: int, programs: int) -> np.ndarray | None:
    """The linear ids of the programs to run, in order; None if these are all."""
    count = sample_size(sample, programs)
    if count >= programs:
        return None
    return np.sort(np.random.default_rng(seed).choice(programs, count, replace=False))


def every_second(chosen: np.ndarray, seed: int, programs: int) -> np.ndarray:
    """Half of a sample at random, as booleans by linear program id: two sizes show how a sum grows."""
    result = np.zeros(programs, bool)
    half = np.random.default_rng(seed + 1).choice(chosen, (len(chosen) + 1) // 2, replace=False)
    result[half] = True
    return result


def error_of(total: float, squares: float, ran: int, programs: int) -> float:
    """By how much a scaled sum may be off, relative to it, in 95 of 100 samples.

    `total` and `squares` are the sums over the programs that ran of a number and of its square.
    """
    if ran >= programs or ran == 0 or total == 0:
        return 0.0
    if ran == 1:
        return 1.0
    variance = max(0.0, (squares - total * total / ran) / (ran - 1))
    deviation = math.sqrt(variance / ran * (1 - ran / programs))
    return 1.96 * deviation / (total / ran)


def extrapolated(whole: float, half: float, ran: int, programs: int, most: float) -> float:
    """How many distinct elements all programs touch, if a sample touches `whole` and half of it `half`.

    The number of elements that all programs share is constant, that of others is proportional to the number
    of programs. In between, the growth from the half to the whole is continued.
    """
    if ran >= programs or whole == 0:
        return whole
    halves = (ran + 1) // 2
    power = 1.0
    if ran > 1 and half > 0:
        power = min(1.0, max(0.0, math.log(whole / half) / math.log(ran / halves)))
    return min(most, whole * (programs / ran) ** power)
