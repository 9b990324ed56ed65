"""A limit on the memory of a worker's tensors: an op whose result would exceed it is refused before it runs.

Without a limit nothing is counted, and nothing is slower; `guard.py` then watches the machine's memory.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from gt.ops import TABLE, Spec
from gt.ops.dtypes import SIZES

ADVICE = "Free tensors, use more workers, or start it with a larger --memory"
"""The advice at the end of errors."""

OUT_OF_MEMORY_TEXTS = (
    "can't allocate memory",
    "out of memory",
    "Out of memory",
    "RESOURCE_EXHAUSTED",
    "Cannot allocate",
)
"""Texts in the errors of libraries that do not raise MemoryError."""


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error means that memory was exhausted."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in OUT_OF_MEMORY_TEXTS)


def dtype_name(value: Any) -> str:
    """The name of the dtype of an engine's value."""
    return str(value.dtype).rpartition(".")[2]


class Limit:
    """A memory limit: how many bytes tensors may take, and how many they take."""

    def __init__(self, nbytes: int, used: int = 0) -> None:
        self.nbytes = nbytes
        self.used = used

    def check(self, nbytes: int) -> None:
        """Raise MemoryError if this many more bytes would exceed the limit."""
        if self.used + nbytes > self.nbytes:
            left, limit = _megabytes(max(0, self.nbytes - self.used)), _megabytes(self.nbytes)
            raise MemoryError(
                f"the result takes {_megabytes(nbytes)}, but the worker has {left} of {limit} left. {ADVICE}"
            )

    def checked(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """An engine's `run` that raises MemoryError for results that would exceed the limit."""

        def limited(op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None) -> Any:
            row = TABLE.get(
                op
            )  # None for an op by PyTorch's name, whose result's size is unknown before it has run
            if row is not None and not row.view:  # a view takes no memory of its own
                specs = tuple(Spec(tuple(x.shape), dtype_name(x)) for x in inputs)
                out = row.infer(specs, attrs or {})
                self.check(math.prod(out.shape) * SIZES[out.dtype])
            return run(op, inputs, attrs)

        return limited


class Checked(dict[str, Any]):
    """An engine's functions by op, which raise MemoryError for results that would exceed the limit."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self._run = run

    def __missing__(self, op: str) -> Callable[..., Any]:
        return lambda *inputs: self._run(op, inputs, None)


class Values(dict[int, Any]):
    """Tensors by id, whose memory is counted."""

    def __init__(self, limit: Limit, nbytes: Callable[[Any], int]) -> None:
        super().__init__()
        self._limit = limit
        self._nbytes = nbytes

    def __setitem__(self, number: int, value: Any) -> None:
        self.pop(number, None)
        super().__setitem__(number, value)
        self._limit.used += self._nbytes(value)

    def pop(self, number: int, default: Any = None) -> Any:
        """Remove a tensor."""
        value = super().pop(number, None)
        if value is None:
            return default
        self._limit.used -= self._nbytes(value)
        return value


def explain(error: Exception) -> str:
    """The text of an out-of-memory error, without a library's own details."""
    if isinstance(error, MemoryError) and ADVICE in str(error):
        return f"MemoryError: {error}"
    wanted = re.search(r"tried to allocate ([0-9]+) bytes", str(error))
    what = f" for {_megabytes(int(wanted[1]))} more" if wanted else f" ({error})" if str(error) else ""
    return f"MemoryError: the worker does not have enough memory{what}. {ADVICE}"


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.1f} MB" if nbytes >= 1 << 16 else f"{nbytes} bytes"
