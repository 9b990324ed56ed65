"""Shape ops that NumPy and JAX share."""

from collections.abc import Sequence
from typing import Any


def transpose(xp: Any, x: Any, dim0: int, dim1: int) -> Any:
    return xp.swapaxes(x, dim0, dim1) if x.ndim else x


def permute(xp: Any, x: Any, dims: Sequence[int]) -> Any:
    return xp.transpose(x, tuple(dims))


def expand(xp: Any, x: Any, shape: Sequence[int]) -> Any:
    return xp.broadcast_to(x, tuple(shape))


def repeat(xp: Any, x: Any, repeats: Sequence[int]) -> Any:
    return xp.tile(x, tuple(repeats))


def flip(xp: Any, x: Any, dims: Sequence[int]) -> Any:
    return xp.flip(x, tuple(dims)) if x.ndim else x


def roll(xp: Any, x: Any, shifts: Sequence[int], dims: Sequence[int]) -> Any:
    return xp.roll(x, tuple(shifts), tuple(dims))


def pad(xp: Any, x: Any, pads: Sequence[Sequence[int]], value: float) -> Any:
    return xp.pad(x, tuple(tuple(pair) for pair in pads), constant_values=value) if x.ndim else x


def cat(xp: Any, *arrays: Any, dim: int) -> Any:
    return xp.concatenate(arrays, axis=dim)


def stack(xp: Any, *arrays: Any, dim: int) -> Any:
    return xp.stack(arrays, axis=dim)


def tril(xp: Any, x: Any, diagonal: int) -> Any:
    return xp.tril(x, diagonal)


def triu(xp: Any, x: Any, diagonal: int) -> Any:
    return xp.triu(x, diagonal)


def reshape(xp: Any, x: Any, shape: Sequence[int]) -> Any:
    return xp.reshape(x, tuple(shape))
