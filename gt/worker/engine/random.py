"""Random numbers that depend on the seed and the element's index only.

So a program gets the same numbers on every engine, however its tensors are split, and a recorded stream
replays exactly. The bits are those of splitmix64, a counter-based generator.
"""

import math
from collections.abc import Sequence

import numpy as np

from gt.ops.dtypes import PRECISION

# The narrowest dtype of NumPy itself that represents the numbers exactly.
_HELD_AS = {"bfloat16": "float32"}


def _mix(x: np.ndarray) -> np.ndarray:
    """Scramble 64-bit numbers so that consecutive ones are uncorrelated."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def bits(seed: int, index: np.ndarray) -> np.ndarray:
    """64 random bits for each index."""
    with np.errstate(over="ignore"):  # overflow wraps around, as intended
        start = _mix(np.array([seed], np.uint64))
        return _mix(start + (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


Region = tuple[Sequence[int], Sequence[int]] | None
"""The offset of a part in the global tensor, and the global shape; None for the tensor itself."""


def region(offset: Sequence[int] | None, global_shape: Sequence[int] | None) -> Region:
    """The region of a part, from its offset and the global shape; None without them."""
    return None if offset is None or global_shape is None else (offset, global_shape)


def flat_indices(shape: Sequence[int], part: Region = None) -> np.ndarray:
    """The flat index in the global tensor of each element of a part."""
    if part is None:
        return np.arange(math.prod(shape))
    index = np.zeros((), np.int64)
    for n, start, length in zip(shape, *part, strict=True):
        index = index[..., None] * length + np.arange(start, start + n)
    return index.reshape(-1)


def uniform(shape: Sequence[int], dtype: str, seed: int, part: Region = None) -> np.ndarray:
    """Numbers in [0, 1). All are multiples of the dtype's resolution, so that 1 never occurs."""
    n = PRECISION[dtype]
    random = bits(seed, flat_indices(shape, part)) >> np.uint64(64 - n)
    return (random * 2.0**-n).astype(_HELD_AS.get(dtype, dtype)).reshape(shape)


def normal(shape: Sequence[int], dtype: str, seed: int, part: Region = None) -> np.ndarray:
    """Numbers from the standard normal distribution, by the Box-Muller transform."""
    index = flat_indices(shape, part).astype(np.uint64)
    first, second = (bits(seed, 2 * index + k) >> np.uint64(11) for k in (np.uint64(0), np.uint64(1)))
    radius = np.sqrt(-2 * np.log1p(-(first * 2.0**-53)))
    return (
        (radius * np.cos(2 * np.pi * (second * 2.0**-53))).astype(_HELD_AS.get(dtype, dtype)).reshape(shape)
    )


def integers(shape: Sequence[int], low: int, high: int, seed: int, part: Region = None) -> np.ndarray:
    """Integers from low up to, and without, high."""
    random = bits(seed, flat_indices(shape, part)) % np.uint64(high - low)
    # Converted to signed only now: the range itself may need all 64 bits. The addition wraps around
    # correctly.
    return (random.view(np.int64) + np.int64(low)).reshape(shape)


def permutation(n: int, seed: int) -> np.ndarray:
    """The numbers below n, shuffled."""
    return np.argsort(bits(seed, np.arange(n)), kind="stable")


def bernoulli(shape: Sequence[int], p: float, seed: int, part: Region = None) -> np.ndarray:
    """True with probability p."""
    return uniform(shape, "float64", seed, part) < p
