"""Launching, for all languages: bind the arguments, patch the language, run the grid, collect the records."""

import contextlib
import dataclasses
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from types import FunctionType, TracebackType
from typing import Any

from triton_viz.core import attributes, interrupts, patch
from triton_viz.core.client import ClientManager
from triton_viz.core.data import Issue, Launch, Record
from triton_viz.core.interrupts import held, let_through
from triton_viz.dsls import OPERATION_REGISTRY, find_dsl
from triton_viz.dsls.base import DSL, Call, plain_function
from triton_viz.errors import KernelError, TritonVizError, UnsupportedError

launches: list[Launch] = []
"""Every traced launch of this process, oldest first."""

_one_launch_at_a_time = threading.RLock()
"""Patches are global to the process, so launches of different threads run one after the other. It is
reentrant because a client may launch a kernel from a callback."""

_launching = 0
"""The id of the thread that holds the lock."""

_environments: list[contextlib.AbstractContextManager[Any]] = []
"""The environment of each running launch, the innermost last."""


def _after_fork() -> None:
    """In a forked process, end the launch of another thread: that thread is not there."""
    global _one_launch_at_a_time
    if _one_launch_at_a_time.acquire(blocking=False):  # there is none, or it is this thread's own
        _one_launch_at_a_time.release()
        return
    _one_launch_at_a_time = threading.RLock()
    while _environments:
        _environments.pop().__exit__(None, None, None)
    attributes.forget_launches()
    patch.forget_launches()
    interrupts.forget_launches()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def launch_kernel(
    backend: str,
    kernel: Any,
    manager: ClientManager,
    grid: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a kernel over a grid with a manager's clients, and append a `Launch` if it has any.

    Returns what the kernel's caller receives. Raises UnsupportedError if the arguments do not fit the
    kernel, and KernelError if the kernel fails.
    """
    dsl = find_dsl(backend)
    run_grid = dsl.launch
    assert run_grid is not None, "trace() refuses a backend without it"
    with _launch_lock(), held(), _environment(dsl), let_through():
        if dsl.bind is None:
            call = _bind_function(kernel, backend, args, kwargs)
        elif (call := dsl.bind(kernel, args, kwargs, grid)) is None:
            return None
        _warm_up(dsl, call, manager)
        return _TracedRun(call, backend, manager).run(lambda: run_grid(call, grid, manager))


def function_of(kernel: Any, backend: str) -> FunctionType:
    """The Python function of a kernel; UnsupportedError if there is none."""
    fn = plain_function(kernel)
    if fn is None:
        raise UnsupportedError(
            f"trace: {kernel!r} is no {backend.upper()} kernel. Write "
            f"@triton_viz.trace(backend={backend!r}) above a function, or above the decorator of one."
        )
    return fn


def _bind_function(kernel: Any, backend: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    fn = function_of(kernel, backend)
    try:
        bound = inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as error:
        raise UnsupportedError(f"kernel {fn.__name__}: {error}") from None
    bound.apply_defaults()
    return Call(fn, dict(bound.arguments), kernel=kernel)


@contextlib.contextmanager
def _launch_lock() -> Iterator[None]:
    """Hold the lock of launches while inside."""
    global _launching
    mine = threading.get_ident()
    if _launching != mine and any(dsl.is_running() for dsl in OPERATION_REGISTRY.loaded()):
        # A thread of a launch would wait for the end of that launch: a deadlock.
        raise UnsupportedError("a client can launch a kernel from a callback only while config.num_sms is 1")
    with _one_launch_at_a_time:
        _launching = mine
        yield


@contextlib.contextmanager
def _environment(dsl: DSL) -> Iterator[None]:
    """The language's environment, such as stand-ins for a GPU, while inside."""
    with (environment := dsl.environment()):
        _environments.append(environment)
        try:
            yield
        finally:
            _environments.pop()


@dataclasses.dataclass(frozen=True)
class _TracedRun:
    """Runs one launch and collects its records."""

    call: Call
    backend: str
    manager: ClientManager

    def run(self, programs: Callable[[], Any]) -> Any:
        """Run all programs, append the launch if there are clients, and return the kernel's result.

        If a client found an issue, a failed launch is appended, too, with its records so far: the issue may
        be the cause of the failure.
        """
        try:
            with held(), self.manager.patch_run(self.call.fn, self.backend), let_through():
                try:
                    result = programs()
                except Exception as error:  # noqa: BLE001 - whatever a kernel raises
                    raise _explain(error, self.call.fn) from (error.__cause__ or error)
        except KernelError:
            records = self.manager.launch_records()
            if any(isinstance(record, Issue) for record in records):
                self._keep(records)
            raise
        if self.manager.clients:
            self._keep(self.manager.launch_records())
        return result

    def _keep(self, records: list[Record]) -> None:
        lines, first_line = self.call.source()
        launch = Launch(
            kernel=self.call.fn.__name__,
            file=inspect.getfile(self.call.fn),
            first_line=first_line,
            source="".join(lines),
            grid=self.manager.grid,
            tensors=tuple(self.manager.all_tensors()),
            records=records,
            checked_by=tuple(name for name, client in self.manager.clients.items() if client.finds_issues),
        )
        launches.append(launch)


def _warm_up(dsl: DSL, call: Call, manager: ClientManager) -> None:
    """Compile the kernel for the clients that need compiled code, once for each of their targets.

    A kernel that does not compile still runs: the client receives the error in place of the result.
    """
    if dsl.compile is None:
        return
    compiled: dict[str, Any] = {}
    for client in manager.clients.values():
        if not client.pre_warmup_callback(call.kernel):
            continue
        target = client.warmup_target()
        if target not in compiled:
            try:
                compiled[target] = dsl.compile(call, target)
            except TritonVizError as error:
                compiled[target] = error
        client.post_warmup_callback(call.kernel, compiled[target])


def _explain(error: Exception, fn: Callable) -> Exception:
    """A kernel's error, with the kernel's name, the program and the line; any other error unchanged."""
    where, in_kernel = _deepest_line(error.__traceback__, fn)
    if (site := getattr(error, "site", None)) is not None:  # raised by a check after that line had run
        where, in_kernel = f"{site.file}:{site.line}", True
    if not in_kernel:
        return error
    kind = type(error) if isinstance(error, TritonVizError) else KernelError
    name = "" if isinstance(error, TritonVizError) else f"{type(error).__name__}: "
    if name and (client := getattr(error, "client", None)) is not None:
        name = f"its client {client!r} raised {name}"
    program = getattr(error, "program", None)
    of = f", program {program}" if program is not None else ""
    return kind(f"{where}: kernel {fn.__name__}{of}: {name}{error}")


def _deepest_line(traceback: TracebackType | None, fn: Callable) -> tuple[str, bool]:
    """`file:line` of the last frame in the kernel's file, and whether there is one."""
    where, found = inspect.getfile(fn), False
    file = fn.__code__.co_filename
    while traceback is not None:
        if found and traceback.tb_frame.f_code.co_filename == file:
            where = f"{file}:{traceback.tb_lineno}"
        elif (
            traceback.tb_frame.f_code.co_filename == file and traceback.tb_frame.f_code.co_name == fn.__name__
        ):
            where, found = f"{file}:{traceback.tb_lineno}", True
        traceback = traceback.tb_next
    return where, found
