"""A limit on the memory that a worker's tensors take: an op that would not fit is refused before it runs.

Without a limit nothing is counted, and nothing is slower.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from gt.ops import TABLE, Spec
from gt.ops.dtypes import ITEMSIZE

VIEWS = frozenset(("getitem", "reshape", "transpose", "permute", "expand"))
"""Ops that take no memory of their own, or little."""


def dtype_name(value: Any) -> str:
    """What we call the dtype of an engine's value."""
    return str(value.dtype).rpartition(".")[2]


class Limit:
    """How much memory tensors may take, and how much they do."""

    def __init__(self, worker: str, nbytes: int) -> None:
        self.worker = worker
        self.nbytes = nbytes
        self.used = 0

    def check(self, nbytes: int) -> None:
        """Raise if so much more would not fit."""
        if self.used + nbytes > self.nbytes:
            raise MemoryError(
                f"the result takes {_megabytes(nbytes)}, and of its {_megabytes(self.nbytes)} the worker has "
                f"{_megabytes(max(0, self.nbytes - self.used))} left. Free tensors, use more workers, or "
                "start it with a larger --memory"
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


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.1f} MB" if nbytes >= 1 << 16 else f"{nbytes} bytes"
