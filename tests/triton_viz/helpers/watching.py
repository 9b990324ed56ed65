"""Helpers for tests of clients: base classes of clients, and positions of lines in kernels."""

import inspect
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from triton.runtime.jit import JITFunction

import triton_viz
from tests.triton_viz.helpers import kernels
from triton_viz.core.client import Client, ForLoopCallbacks, OpCallbacks
from triton_viz.core.data import Access, Issue, Launch, Op, Record, Store
from triton_viz.core.trace import TritonTrace


class Watch(Client):
    """A base class that does nothing, one program at a time."""

    NAME = "watch"

    def pre_run_callback(self, fn: Callable) -> None: ...
    def post_run_callback(self, fn: Callable) -> None: ...
    def arg_callback(self, name: str, arg: Any) -> None: ...
    def grid_callback(self, grid: Any) -> None: ...
    def grid_idx_callback(self, grid_idx: Any) -> None: ...

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        return OpCallbacks()

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        return ForLoopCallbacks()

    def finalize(self) -> list[Any]:
        return []


class Vectorized(Watch):
    """A base class that does nothing, for all programs at once."""

    vectorized: ClassVar[bool] = True


class Everything(Watch):
    """Records every callback."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def pre_run_callback(self, fn: Callable) -> None:
        self.heard.append(("pre_run", fn.__name__))

    def post_run_callback(self, fn: Callable) -> None:
        self.heard.append(("post_run", fn.__name__))

    def arg_callback(self, name: str, arg: Any) -> None:
        self.heard.append(("arg", name))

    def grid_callback(self, grid: Any) -> None:
        self.heard.append(("grid", grid))

    def grid_idx_callback(self, grid_idx: Any) -> None:
        self.heard.append(("program", grid_idx))

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        self.heard.append(("register", op_type))
        if op_type is not Store:
            return OpCallbacks()
        return OpCallbacks(
            before_callback=lambda **told: self.heard.append("before"),
            after_callback=lambda **told: self.heard.append("after"),
        )

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        self.heard.append("register loops")
        return ForLoopCallbacks(
            lambda line, count: self.heard.append(("loop", line, count)),
            lambda line, index: self.heard.append(("iteration", index)),
            lambda line: self.heard.append("end of loop"),
        )

    def finalize(self) -> list[Any]:
        self.heard.append("finalize")
        return []


def traced(client: Any, kernel: JITFunction) -> TritonTrace:
    return triton_viz.trace(client)(kernel)


def issues_in(
    kernel: Any, grid: tuple[int, ...], *args: Any, client: Any = "sanitizer", **kwargs: Any
) -> list[Issue]:
    """The issues that are found in a launch of a kernel."""
    traced(client, kernel)[grid](*args, **kwargs)
    return [record for record in triton_viz.launches[-1].records if isinstance(record, Issue)]


def line_of(kernel: JITFunction, text: str) -> int:
    """The first line of a kernel that contains this text."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(n for n, line in enumerate(lines) if text in line)


def launch_add(client: Any = "tracer", n: int = 8, programs: int = 2) -> torch.Tensor:
    """`kernels.add` of 0, 1, 2, ... and itself, `n // programs` elements a program."""
    x, out = torch.arange(float(n)), torch.zeros(n)
    traced(client, kernels.add)[(programs,)](x, x, out, n, BLOCK=n // programs)
    return out


def ops_of(launch: Launch) -> list[Record]:
    """The ops of each program."""
    return [op for program in launch.programs() for op in launch.at(program)]


def accesses(launch: Launch) -> list[Access]:
    return [op for op in ops_of(launch) if isinstance(op, Access)]


class Counter(Client):
    """Counts ops by type, and keeps the order of its callbacks."""

    NAME = "counter"

    def __init__(self) -> None:
        self.ops: dict[str, int] = {}
        self.calls: list[str] = []

    def pre_run_callback(self, fn):
        self.calls.append("pre_run")

    def post_run_callback(self, fn):
        self.calls.append("post_run")

    def arg_callback(self, name, arg):
        self.calls.append(f"arg {name}")

    def grid_callback(self, grid):
        self.calls.append(f"grid {grid}")

    def grid_idx_callback(self, grid_idx):
        self.calls.append(f"program {grid_idx}")

    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        def count(**arguments):
            self.ops[op_type.__name__] = self.ops.get(op_type.__name__, 0) + 1

        return OpCallbacks(after_callback=count)

    def register_for_loop_callback(self) -> ForLoopCallbacks:
        return ForLoopCallbacks()

    def finalize(self):
        return []


def functions_of(thread: threading.Thread) -> list[str]:
    """The functions on a thread's stack, the innermost last."""
    frame = sys._current_frames().get(thread.ident or 0)
    return [entry.name for entry in traceback.extract_stack(frame)] if frame is not None else []
