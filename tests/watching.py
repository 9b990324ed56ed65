"""What tests of clients share: clients that do nothing by themselves, and where in a kernel a line is."""

import inspect
from typing import Any, ClassVar

from triton.runtime.jit import JITFunction

import triton_viz
from triton_viz.core.client import Client, OpCallbacks
from triton_viz.core.data import Issue, Op
from triton_viz.core.trace import TritonTrace


class Watch(Client):
    """Does nothing; the tests' clients say what they do about it."""

    NAME = "watch"

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        return OpCallbacks()

    def finalize(self) -> list[Any]:
        return []


class Vectorized(Watch):
    """The same, for all programs at once."""

    vectorized: ClassVar[bool] = True


def traced(client: Any, kernel: JITFunction) -> TritonTrace:
    return triton_viz.trace(client)(kernel)


def issues_in(
    kernel: Any, grid: tuple[int, ...], *args: Any, client: Any = "sanitizer", **kwargs: Any
) -> list[Issue]:
    """What is found in a launch."""
    traced(client, kernel)[grid](*args, **kwargs)
    return [record for record in triton_viz.launches[-1].records if isinstance(record, Issue)]


def line_of(kernel: JITFunction, text: str) -> int:
    """The first line of a kernel with this text in it."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(n for n, line in enumerate(lines) if text in line)
