"""Sampling: estimating totals from a random subset of the programs, which depends on a seed only."""

import math

import numpy as np

from triton_viz.errors import UnsupportedError


def sample_size(sample: float | int, programs: int) -> int:
    """The number of programs to run, from a share below 1 or a number of programs."""
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
    """A random half of a sample, as booleans by linear program id: two sizes show how a count grows."""
    result = np.zeros(programs, bool)
    half = np.random.default_rng(seed + 1).choice(chosen, (len(chosen) + 1) // 2, replace=False)
    result[half] = True
    return result


def error_of(total: float, squares: float, ran: int, programs: int) -> float:
    """The relative error of a scaled sum at 95 % confidence.

    `total` and `squares` are the sums of a quantity and of its square over the programs that ran.
    """
    if ran >= programs or ran == 0 or total == 0:
        return 0.0
    if ran == 1:
        return 1.0
    variance = max(0.0, (squares - total * total / ran) / (ran - 1))
    deviation = math.sqrt(variance / ran * (1 - ran / programs))
    return 1.96 * deviation / (total / ran)


def extrapolated(whole: float, half: float, ran: int, programs: int, most: float) -> float:
    """An estimate of the distinct elements of all programs: a sample accesses `whole`, half of it `half`.

    The number of elements that all programs share is constant, that of unshared elements is proportional to
    the number of programs. In between, the growth from the half to the whole sample is extrapolated.
    """
    if ran >= programs or whole == 0:
        return whole
    halves = (ran + 1) // 2
    power = 1.0
    if ran > 1 and half > 0:
        power = min(1.0, max(0.0, math.log(whole / half) / math.log(ran / halves)))
    return min(most, whole * (programs / ran) ** power)
