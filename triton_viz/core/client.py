# ruff: noqa: B027 - optional callbacks do nothing unless a client defines them
"""Clients, which collect data while a kernel runs, and the manager that calls them."""

import contextlib
import dataclasses
import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

import numpy as np

from triton_viz.core import patch
from triton_viz.core.config import cfg
from triton_viz.core.data import Issue, Op, Program, Record
from triton_viz.core.interrupts import let_through
from triton_viz.core.records.accesses import Tensors
from triton_viz.core.records.columns import Programs
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.errors import UnsupportedError

F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class OpCallbacks:
    """The callbacks of a client around an op.

    Callbacks are called with the op's standardized arguments by name (docs/writing-a-client.md lists them),
    after it also with its `result`.
    """

    before_callback: Callable[..., None] | None = None
    after_callback: Callable[..., None] | None = None
    op_overrider: Callable[..., Any] | None = None
    """Called with the builder's own arguments in place of the op, for the whole launch: callbacks of other
    clients receive its result. Clients that override one op must give the same function; two different ones
    are an error when the launch begins."""
    only: Collection[str] | None = None
    """If given, the callbacks are called only for ops with these names (the `name` of a `Compute`)."""
    mask_overrider: Callable[..., Any] | None = None
    """For accesses: called before all other callbacks, with the arguments of a vectorized client's callbacks.
    It returns the mask that replaces the op's own, for the op and for all clients: elements that it masks off
    are not accessed."""


@dataclasses.dataclass(frozen=True)
class ForLoopCallbacks:
    """The callbacks of a client around a loop of a kernel. A loop is identified by its line."""

    before_loop_callback: Callable[[int, int | None], None] | None = None
    """Called with the line and the number of iterations; of a `while` that is None."""
    loop_iter_callback: Callable[[int, int], None] | None = None
    """Called with the line and the iteration, counted from 0."""
    after_loop_callback: Callable[[int], None] | None = None
    """Called with the line."""


class Client(ABC):
    """Receives callbacks while a kernel runs, and returns records at the end."""

    NAME: ClassVar[str]
    vectorized: ClassVar[bool] = False
    """Whether callbacks take all programs of a chunk at once. One client that does not makes the whole launch
    run one program at a time."""
    finds_issues: ClassVar[bool] = False
    """Whether it reports violations: a launch without an `Issue` from it counts as checked."""

    # Abstract: every client defines these, possibly with an empty body.

    @abstractmethod
    def pre_run_callback(self, fn: Callable) -> None:
        """Called once, before a launch: reset the state of the last launch here."""

    @abstractmethod
    def post_run_callback(self, fn: Callable) -> None:
        """Called once, after a launch, also after one that failed."""

    @abstractmethod
    def arg_callback(self, name: str, arg: Any) -> None:
        """Called for each argument of the launch, tensors and others."""

    @abstractmethod
    def grid_callback(self, grid: Program) -> None:
        """Called once per launch with the grid's sizes, after `arg_callback` for all arguments."""

    @abstractmethod
    def grid_idx_callback(self, grid_idx: Any) -> None:
        """Called before each program with its index; before each chunk with its `Programs`, if vectorized."""

    @abstractmethod
    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """Called once per op type when ops are patched; `OpCallbacks()` ignores the type."""

    @abstractmethod
    def register_for_loop_callback(self) -> ForLoopCallbacks:
        """Called once when loops are patched; `ForLoopCallbacks()` ignores them."""

    @abstractmethod
    def finalize(self) -> list[Any]:
        """The records of this launch. Calling it again returns the same, and it does not raise."""

    # Optional: the defaults do nothing.

    def choose_programs(self, grid: Program) -> np.ndarray | None:
        """The linear ids (z fastest) of the programs that this client needs; None for all.

        The others are skipped only if all clients choose the same programs. Tensors then lack the stores of
        the skipped programs.
        """
        return None

    def abort_callback(self) -> None:
        """Called after all programs of a launch ran without an error. May raise an error for the caller."""

    def discard_callback(self) -> None:
        """Discard the data since this thread's last `grid_idx_callback`: those programs will run again.

        A program that runs alone runs again only if it waits for another program, which has to run first.
        """

    def issue_callback(self, issue: Issue) -> bool:
        """Called with a violation that the language found. Returns whether this client keeps the issue.

        If any client keeps it, the kernel continues, and elements outside of a tensor are neither read nor
        written. If none keeps it, the violation is raised as an error.
        """
        return False

    def pre_warmup_callback(self, jit_fn: Callable) -> bool:
        """Whether to compile the kernel for `warmup_target()` before it runs, to inspect its ASM."""
        return False

    def warmup_target(self) -> str:
        """The target that this client wants the kernel compiled for, such as "cuda:90" or "hip:gfx942"."""
        return cfg.target

    def post_warmup_callback(self, jit_fn: Callable, compiled: Any) -> None:
        """Called before the launch with the compiled kernel (`Compiled`) or the compiler's error.

        The kernel runs in both cases: the CPU does not execute the compiled code.
        """

    def lock_fn(self, fn: F) -> F:
        """Wraps a function of this client in a lock, if `cfg.num_sms` makes several threads call it."""
        lock: threading.RLock = vars(self).setdefault("_lock", threading.RLock())

        @functools.wraps(fn)
        def locked(*args: Any, **kwargs: Any) -> Any:
            if cfg.num_sms == 1:  # read at each call, because the setting may change after the wrapping
                return fn(*args, **kwargs)
            with lock:
                return fn(*args, **kwargs)

        return locked  # type: ignore[return-value] - the same signature


class ClientManager:
    """The clients of one kernel, called together: every client sees every op."""

    def __init__(self, clients: Iterable[Client] = ()):
        self.clients: dict[str, Client] = {}
        self.add_clients(clients)
        self._start()

    def add_clients(self, clients: Iterable[Client]) -> None:
        """Register clients; of two with one name, the later replaces the earlier."""
        for client in clients:
            self.clients[client.NAME] = client

    @property
    def vectorized(self) -> bool:
        """Whether every client takes many programs at once."""
        return all(client.vectorized for client in self.clients.values())

    @contextlib.contextmanager
    def patch_run(self, fn: Callable, backend: str) -> Iterator[None]:
        """While inside, kernels of this backend run with every op routed through the clients."""
        self._start()
        started: list[Client] = []
        try:
            for client in self.clients.values():
                started.append(client)
                with let_through():
                    client.pre_run_callback(fn)
            with (
                patch.patch_calls(backend, self),
                patch.patch_op(backend, self),
                patch.patch_for_loop(backend, self),
            ):
                yield
            for client in started:
                with let_through():
                    client.abort_callback()
        finally:
            with contextlib.ExitStack() as ends:  # of every client, also if another client's raises
                for client in reversed(started):
                    ends.callback(_end, client, fn)

    def finalize(self) -> list[Record]:
        """All clients' records of this launch, in the order of the clients."""
        return [record for client in self.clients.values() for record in _records_of(client)]

    def launch_records(self) -> list[Record]:
        """The records of a `Launch`: those of all clients, then those of the language."""
        return [*self.finalize(), *self.language_records()]

    # --- what a DSL reports while a kernel runs ---

    def _start(self) -> None:
        self.named: list[TensorInfo] = []
        self.tensors = Tensors([])
        self.grid: Program = (0, 0, 0)
        self.adopted: Callable[[], list[TensorInfo]] = list
        """The tensors that are not arguments, and whose addresses the kernel loaded from memory."""
        self.language_records: Callable[[], list[Record]] = list
        """Records that the language adds to the launch: a chip's buffers and totals."""

    def arg_callback(self, name: str, arg: Any) -> list[TensorInfo]:
        """An argument of the launch. Returns its tensors, the memory that the kernel may touch."""
        tensors = [TensorInfo.of(path, tensor) for path, tensor in tensors_in(name, arg)]
        self.named += tensors
        for client in self.clients.values():
            client.arg_callback(name, arg)
        return tensors

    def grid_callback(self, grid: Program) -> None:
        """The grid's size; all arguments have been reported."""
        self.grid, self.tensors = grid, Tensors(self.named)
        for client in self.clients.values():
            client.grid_callback(grid)

    def all_tensors(self) -> list[TensorInfo]:
        """The tensors of the launch: its arguments', and those whose addresses the kernel loaded."""
        return [*self.named, *self.adopted()]

    def choose_programs(self) -> np.ndarray | None:
        """Which programs to run, if all clients choose the same ones; None: all."""
        choices = [client.choose_programs(self.grid) for client in self.clients.values()]
        if not choices or any(choice is None for choice in choices):
            return None
        first = choices[0]
        return first if all(np.array_equal(first, choice) for choice in choices) else None  # type: ignore[arg-type]

    def grid_idx_callback(self, programs: Programs) -> None:
        """The programs that run next."""
        for client in self.clients.values():
            client.grid_idx_callback(programs if client.vectorized else programs.only())

    def issue_callback(self, issue: Issue) -> bool:
        """Report a violation that the language found to all clients. Returns whether any client keeps it."""
        kept = [client.issue_callback(issue) for client in self.clients.values()]
        return any(kept)

    def discard_callback(self) -> None:
        """Discard callbacks since the last `grid_idx_callback`: these programs run again."""
        for client in self.clients.values():
            client.discard_callback()


def _end(client: Client, fn: Callable) -> None:
    with let_through():
        client.post_run_callback(fn)


def _records_of(client: Client) -> list[Record]:
    records = client.finalize()
    if not isinstance(records, list):
        raise UnsupportedError(
            f"client {client.NAME!r}: finalize() returned {records!r}; it has to return a list of records, "
            "empty if there are none"
        )
    return records


def tensors_in(name: str, arg: Any) -> Iterator[tuple[str, Any]]:
    """The tensors in an argument: itself, a tuple's members (`x[0]`), the base of a descriptor or wrapper."""
    if isinstance(arg, tuple | list):
        for position, member in enumerate(arg):
            yield from tensors_in(f"{name}[{position}]", member)
    elif isinstance(arg, np.ndarray):
        yield name, arg
    elif isinstance(arg, dict):
        for key, member in arg.items():
            yield from tensors_in(f"{name}[{key!r}]", member)
    elif hasattr(arg, "base") and not hasattr(arg, "untyped_storage"):
        yield from tensors_in(name, arg.base)
    elif hasattr(arg, "untyped_storage"):
        yield name, arg
