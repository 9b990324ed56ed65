"""Uses of an exchange's bytes as they arrive: to copy them into the result, or to reduce them with others."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gt.ops.dtypes import HALF

REDUCE: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}

BLOCK_ELEMENTS = 1 << 16
"""The number of elements of three or more terms that are added at a time: they fit into the processor's
cache."""

UseData = Callable[[memoryview], None]
"""Called with the bytes of one sender, in order, as they arrive."""


def copy_into(part: np.ndarray) -> UseData:
    """A function that copies the bytes that arrive into a part of an array, piece by piece."""
    # Bytes can be stored as they arrive only if the elements are contiguous.
    whole = part if part.flags.c_contiguous else None
    offset = 0

    def use(data: memoryview) -> None:
        nonlocal offset, whole
        if len(data) == part.nbytes:
            part[...] = np.frombuffer(data, part.dtype).reshape(part.shape)
            return
        if whole is None:
            whole = np.empty(part.shape, part.dtype)
        whole.reshape(-1).view(np.uint8)[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        offset += len(data)
        if offset == part.nbytes and whole is not part:
            part[...] = whole

    return use


class Total:
    """Reduces terms to their sum, maximum or minimum, for the elements of which all terms have arrived.

    Terms are reduced in the order of the workers, whatever order they arrive in: results are reproducible.
    """

    def __init__(
        self, out: np.ndarray, terms: int, op: str, on_progress: Callable[[int, int], None] | None = None
    ) -> None:
        self._out = out
        self._op = op
        self._on_progress = on_progress
        """Called with the start and end of elements that are complete."""
        self._waiting: list[deque[np.ndarray]] = [deque() for _ in range(terms)]
        self._block = out.size if terms < 3 else BLOCK_ELEMENTS
        self._done = 0

    def term(self, number: int) -> UseData:
        """A function that adds the bytes of a term as they arrive, piece by piece."""
        return lambda data: self.add(number, np.frombuffer(data, self._out.dtype))

    def add(self, number: int, elements: np.ndarray) -> None:
        """Add the next elements of a term."""
        if not elements.size:
            return
        self._waiting[number].append(elements)
        start = self._done
        with np.errstate(all="ignore"):
            while all(self._waiting):
                self._advance()
        if self._on_progress is not None and self._done > start:
            self._on_progress(start, self._done)

    def _advance(self) -> None:
        count = min(self._block, *(term[0].size for term in self._waiting))
        terms = [term[0][:count] for term in self._waiting]
        _combine(terms, self._op, self._out[self._done : self._done + count])
        self._done += count
        for term in self._waiting:
            rest = term.popleft()[count:]
            if rest.size:
                term.appendleft(rest)


def _combine(terms: list[np.ndarray], op: str, out: np.ndarray) -> None:
    first, *others = terms
    if not others:
        out[...] = first
    elif op == "sum" and out.dtype.name in HALF:
        total = first.astype(np.float32)
        for term in others:
            total += term.astype(np.float32)
        out[...] = total.astype(out.dtype)
    else:
        for number, term in enumerate(others):
            REDUCE[op](out if number else first, term, out=out)
