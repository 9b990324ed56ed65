"""Uses the bytes of an exchange as they arrive: copies them into the result, or adds them to a sum."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gt.ops.dtypes import HALF

REDUCE: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}

BLOCK = 1 << 16
"""How many elements of three or more terms are added up at a time: so many stay in the processor's cache."""

Land = Callable[[memoryview], None]


def into(part: np.ndarray) -> Land:
    """Puts bytes into their place, one piece after the other."""
    # Bytes can be stored as they arrive only if the elements are contiguous.
    whole = part if part.flags.c_contiguous else None
    at = 0

    def land(data: memoryview) -> None:
        nonlocal at, whole
        if len(data) == part.nbytes:
            part[...] = np.frombuffer(data, part.dtype).reshape(part.shape)
            return
        if whole is None:
            whole = np.empty(part.shape, part.dtype)
        whole.reshape(-1).view(np.uint8)[at : at + len(data)] = np.frombuffer(data, np.uint8)
        at += len(data)
        if at == part.nbytes and whole is not part:
            part[...] = whole

    return land


class Total:
    """Terms to their sum, maximum or minimum, as far as all of them are there.

    They are added up in the order of the workers, however they arrive: a program computes the same each time.
    """

    def __init__(
        self, out: np.ndarray, terms: int, op: str, then: Callable[[int, int], None] | None = None
    ) -> None:
        self._out = out
        self._op = op
        self._then = then
        self._waiting: list[deque[np.ndarray]] = [deque() for _ in range(terms)]
        self._block = out.size if terms < 3 else BLOCK
        self._done = 0

    def term(self, number: int) -> Land:
        """Takes in bytes of a term, one piece after the other."""
        return lambda data: self.add(number, np.frombuffer(data, self._out.dtype))

    def add(self, number: int, elements: np.ndarray) -> None:
        """These elements of a term come next."""
        if not elements.size:
            return
        self._waiting[number].append(elements)
        start = self._done
        with np.errstate(all="ignore"):
            while all(self._waiting):
                self._advance()
        if self._then is not None and self._done > start:
            self._then(start, self._done)

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
