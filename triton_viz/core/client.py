"""Clients: modules that collect data while a kernel runs. And the manager that calls them."""

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from triton_viz.core import patch
from triton_viz.core.data import Op, Program, Record, TensorInfo
from triton_viz.core.memory import Memory


@dataclasses.dataclass(frozen=True)
class OpCallbacks:
    """What a client wants done around an op. Each is called with the op's standardized arguments.

    `op_overrider` replaces the op itself, for a client that needs no real data.
    """

    before_callback: Callable[..., None] | None = None
    after_callback: Callable[..., None] | None = None
    op_overrider: Callable[..., Any] | None = None


class Client(ABC):
    """Receives callbacks while a kernel runs, and returns records at the end."""

    NAME: ClassVar[str]

    @abstractmethod
    def pre_run_callback(self, fn: Callable) -> None:
        """Called once, before a launch."""

    @abstractmethod
    def post_run_callback(self, fn: Callable) -> None:
        """Called once, after a launch, also one that failed."""

    @abstractmethod
    def arg_callback(self, name: str, arg: Any) -> None:
        """Called for each argument of the launch, tensors and others."""

    @abstractmethod
    def grid_callback(self, grid: Program) -> None:
        """Called once a launch, with the grid's size."""

    @abstractmethod
    def grid_idx_callback(self, grid_idx: Program) -> None:
        """Called before each program."""

    @abstractmethod
    def register_op_callback(self, op_type: type[Op]) -> OpCallbacks:
        """Called once per op type when ops are patched; `OpCallbacks()` ignores the type."""

    @abstractmethod
    def finalize(self) -> list[Record]:
        """The records of this launch. Calling it again returns the same."""


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

    @contextlib.contextmanager
    def patch_run(self, fn: Callable, backend: str) -> Iterator[None]:
        """While inside, kernels of this backend run with every op routed through the clients."""
        self._start()
        for client in self.clients.values():
            client.pre_run_callback(fn)
        try:
            with patch.patch_op(backend, self), patch.patch_calls(backend, self):
                yield
        finally:
            for client in self.clients.values():
                client.post_run_callback(fn)

    def finalize(self) -> list[Record]:
        """All clients' records of this launch."""
        return [record for client in self.clients.values() for record in client.finalize()]

    # --- what a DSL reports while a kernel runs ---

    def _start(self) -> None:
        self.tensors: list[TensorInfo] = []
        self.grid: Program = (0, 0, 0)
        self.program: Program | None = None
        self.memory = Memory([])

    def arg_callback(self, name: str, arg: Any) -> None:
        """An argument of the launch. Tensors become the memory that the kernel may touch."""
        self.tensors += [TensorInfo.of(path, tensor) for path, tensor in _tensors_in(name, arg)]
        for client in self.clients.values():
            client.arg_callback(name, arg)

    def grid_callback(self, grid: Program) -> None:
        """The grid's size; all arguments have been reported."""
        self.grid, self.memory = grid, Memory(self.tensors)
        for client in self.clients.values():
            client.grid_callback(grid)

    def grid_idx_callback(self, grid_idx: Program) -> None:
        """The program that runs next."""
        self.program = grid_idx
        for client in self.clients.values():
            client.grid_idx_callback(grid_idx)


def _tensors_in(name: str, arg: Any) -> Iterator[tuple[str, Any]]:
    """An argument's tensors: itself, a tuple's members (`x[0]`), the one behind a descriptor or wrapper."""
    if isinstance(arg, tuple | list):
        for position, member in enumerate(arg):
            yield from _tensors_in(f"{name}[{position}]", member)
    elif hasattr(arg, "base"):
        yield from _tensors_in(name, arg.base)
    elif hasattr(arg, "data_ptr"):
        yield name, arg
