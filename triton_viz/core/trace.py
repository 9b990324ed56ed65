"""`trace`: wrap a kernel, or all kernels for a while, so that each launch is recorded in `launches`."""

import contextlib
import copy
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from triton_viz.core import trace_file
from triton_viz.core.attributes import set_attributes
from triton_viz.core.client import Client, ClientManager
from triton_viz.core.client_registry import default_client, registered_clients
from triton_viz.core.config import cfg
from triton_viz.core.interrupts import held
from triton_viz.core.launch import function_of, launch_kernel, launches
from triton_viz.dsls import default_backend, find_dsl, find_trace_class
from triton_viz.dsls.base import plain_function
from triton_viz.errors import UnsupportedError

ClientLike = str | Client | type[Client]

__getattr__ = find_trace_class


class trace(contextlib.ContextDecorator):
    """Records the launches of kernels. Over a kernel it is a decorator:

    >>> @triton_viz.trace("tracer")
    ... @triton.jit
    ... def kernel(...): ...

    In a `with` it applies to every kernel that is launched inside, such as those of a library:

    >>> with triton_viz.trace("tracer"):
    ...     some_library.rms_norm(x)

    Kernels run on the CPU, with or without a GPU, and with or without TRITON_INTERPRET=1. Without a client
    (`trace(())`) they run and nothing is recorded. The default client is the tracer; the default backend is
    Triton. With `backend="nki"` kernels are written for AWS Trainium: plain functions, or the results of
    `@nki.jit`.
    """

    def __init__(self, client: ClientLike | Sequence[ClientLike] | None = None, backend: str | None = None):
        self.backend = default_backend() if backend is None else backend
        dsl = find_dsl(self.backend)
        if dsl.launch is None:
            raise UnsupportedError(
                f"backend {backend!r} is registered without a function that runs its kernels: "
                "give its DSL(...) a `launch`, as docs/adding-a-dsl.md says"
            )
        one = isinstance(client, str | Client | type)
        if not one and plain_function(client) is not None:
            name = getattr(client, "__name__", "a kernel")
            raise UnsupportedError(
                f"trace takes clients, and {name} is none: write @triton_viz.trace(), with ()"
            )
        if client is None:
            client, one = default_client(), True
        chosen: Sequence[ClientLike] = [client] if one else client  # type: ignore[assignment, list-item]
        self.clients = [_normalize_client(c, self.backend) for c in chosen]
        self._scopes: list[contextlib.ExitStack] = []
        if cfg.enabled:
            dsl.install()

    def __call__(self, kernel: Any) -> Any:
        """The kernel, traced."""
        if not cfg.enabled:
            return kernel
        make = find_dsl(self.backend).trace or functools.partial(KernelTrace, backend=self.backend)
        return make(kernel, self.clients)

    def __enter__(self) -> "trace":
        backend, dsl = self.backend, find_dsl(self.backend)

        def traced_run(kernel: Any, *args: Any, grid: Any, **kwargs: Any) -> Any:
            return launch_kernel(backend, kernel, ClientManager(_open_clients(backend)), grid, args, kwargs)

        with held(), contextlib.ExitStack() as scope:
            if cfg.enabled:
                scope.enter_context(set_attributes((cls, "run", traced_run) for cls in dsl.kernel_classes))
                scope.enter_context(dsl.environment())
            self._scopes.append(scope.pop_all())
            _open.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        with held():
            _open.remove(self)
            self._scopes.pop().close()


_open: list[trace] = []
"""The `with trace(...)` scopes that are open, outermost first."""


def _open_clients(backend: str) -> list[Client]:
    """The clients of all open scopes of this backend."""
    return [client for one in _open if one.backend == backend for client in one.clients]


def with_open_clients(manager: ClientManager, backend: str) -> ClientManager:
    """A traced kernel's own clients and those of all open scopes of its backend."""
    around = _open_clients(backend)
    return ClientManager([*manager.clients.values(), *around]) if around else manager


def _normalize_client(client: ClientLike, backend: str | None = None) -> Client:
    """A client from its registered name, its class, or an instance; otherwise raises UnsupportedError."""
    if isinstance(client, Client):
        return client
    if isinstance(client, type) and issubclass(client, Client):
        return client()
    registered = registered_clients()
    if isinstance(client, str) and client in registered:
        options = find_dsl(backend or default_backend()).client_options.get(client, {})
        return registered[client].make(**options)
    names = ", ".join(repr(name) for name in registered)
    raise UnsupportedError(f"{client!r} is not a client: give {names}, a Client class or an instance")


class KernelTrace:
    """A traced kernel that is a Python function: `kernel(...)` or `kernel[grid](...)` launches it.

    It serves every backend whose `DSL` has no `trace` of its own.
    """

    def __init__(self, kernel: Any, clients: Sequence[Client], backend: str, grid: Any = None):
        if (
            isinstance(kernel, KernelTrace) and kernel.backend == backend
        ):  # a trace of a trace has the clients of both
            clients = [*kernel.client_manager.clients.values(), *clients]
            kernel = kernel.kernel
        self.kernel = kernel
        """The decorated object: a function, or the result of the language's decorator."""
        self.fn: Callable = function_of(kernel, backend)
        self.client_manager = ClientManager(clients)
        self.backend = backend
        self.grid = grid
        functools.update_wrapper(self, self.fn)

    def __getitem__(self, grid: Any) -> Self:
        found = copy.copy(self)
        found.grid = grid
        return found

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Run all programs of a grid, append a `Launch`, and return what the kernel returns."""
        manager = with_open_clients(self.client_manager, self.backend)
        return launch_kernel(self.backend, self.kernel, manager, grid, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch it; inside another kernel, call it as a plain function."""
        if find_dsl(self.backend).is_running():
            return self.fn(*args, **kwargs)
        return self.run(*args, grid=self.grid, **kwargs)


def clear() -> None:
    """Remove all launches."""
    launches.clear()


def save(path: str | Path) -> None:
    """Write all launches to one file."""
    trace_file.save(launches, str(path))


def load(path: str | Path, append: bool = False) -> None:
    """Read launches from a file that `save` wrote, in place of those in memory or after them."""
    loaded = trace_file.load(str(path))
    if not append:
        clear()
    launches.extend(loaded)
