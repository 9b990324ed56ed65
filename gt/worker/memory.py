"""A limit on the memory that a worker's tensors take: an op that would not fit is refused before it runs.

Without a limit nothing is counted, and nothing is slower; `guard.py` sees to it that the machine's suffices.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from gt.ops import TABLE, Spec
from gt.ops.dtypes import ITEMSIZE

VIEWS = frozenset(("getitem", "reshape", "transpose", "permute", "expand"))
"""Ops that take no memory of their own, or little."""


REMEDY = "Free tensors, use more workers, or start it with a larger --memory"
"""What to do about it."""

SIGNS = ("can't allocate memory", "out of memory", "Out of memory", "RESOURCE_EXHAUSTED", "Cannot allocate")
"""How libraries say that there is none left, where they do not raise a MemoryError."""


def is_out_of_memory(error: Exception) -> bool:
    """Whether there was not enough memory."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in SIGNS)


def dtype_name(value: Any) -> str:
    """What we call the dtype of an engine's value."""
    return str(value.dtype).rpartition(".")[2]


class Limit:
    """How much memory tensors may take, and how much they do."""

    def __init__(self, nbytes: int, used: int = 0) -> None:
        self.nbytes = nbytes
        self.used = used

    def check(self, nbytes: int) -> None:
        """Raise if so much more would not fit."""
        if self.used + nbytes > self.nbytes:
            raise MemoryError(
                f"the result takes {_megabytes(nbytes)}, and of its {_megabytes(self.nbytes)} the worker has "
                f"{_megabytes(max(0, self.nbytes - self.used))} left. {REMEDY}"
            )

    def checked(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The same as an engine's `run`, refusing what would not fit."""

        def limited(op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None) -> Any:
            if op not in VIEWS:
                specs = tuple(Spec(tuple(x.shape), dtype_name(x)) for x in inputs)
                out = TABLE[op].infer(specs, attrs or {})
                self.check(math.prod(out.shape) * ITEMSIZE[out.dtype])
            return run(op, inputs, attrs)

        return limited


class Checked(dict[str, Any]):
    """As an engine's functions by op, refusing what would not fit."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self._run = run

    def __missing__(self, op: str) -> Callable[..., Any]:
        return lambda *inputs: self._run(op, inputs, None)


class Values(dict[int, Any]):
    """Tensors by number, whose memory is counted."""

    def __init__(self, limit: Limit, nbytes: Callable[[Any], int]) -> None:
        super().__init__()
        self._limit = limit
        self._nbytes = nbytes

    def __setitem__(self, number: int, value: Any) -> None:
        self.pop(number, None)
        super().__setitem__(number, value)
        self._limit.used += self._nbytes(value)

    def pop(self, number: int, default: Any = None) -> Any:
        """Take a tensor out."""
        value = super().pop(number, None)
        if value is None:
            return default
        self._limit.used -= self._nbytes(value)
        return value


def explain(error: Exception) -> str:
    """An error of a library that had not enough memory, in our words where it has too many of its own."""
    if isinstance(error, MemoryError) and REMEDY in str(error):
        return f"MemoryError: {error}"
    wanted = re.search(r"tried to allocate ([0-9]+) bytes", str(error))
    what = f" for {_megabytes(int(wanted[1]))} more" if wanted else f" ({error})" if str(error) else ""
    return f"MemoryError: the worker has not enough memory{what}. {REMEDY}"


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.1f} MB" if nbytes >= 1 << 16 else f"{nbytes} bytes"
