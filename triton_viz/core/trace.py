"""`trace`: wrap a kernel, or all kernels for a while, so that running one leaves a `Launch` behind."""

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, KernelInterface

from triton_viz.clients import Profiler, Tracer
from triton_viz.core import trace_file
from triton_viz.core.attributes import set_attribute
from triton_viz.core.client import Client, ClientManager
from triton_viz.core.config import cfg
from triton_viz.core.data import Launch
from triton_viz.dsls.triton import machine, standins
from triton_viz.dsls.triton.run import run
from triton_viz.dsls.triton.wrappers import Unwrapped, unwrap
from triton_viz.errors import KernelError, TritonVizError, UnsupportedError

launches: list[Launch] = []
"""Every traced launch of this program, oldest first."""

_one_launch_at_a_time = threading.RLock()
"""Patches are the whole process's, so launches take turns. A client may launch from a callback."""

ClientLike = str | Client | type[Client]


class trace(contextlib.ContextDecorator):
    """Makes kernels leave records of what they do. Over a kernel it is a decorator:

    >>> @triton_viz.trace("tracer")
    ... @triton.jit
    ... def kernel(...): ...

    In a `with` it is for all kernels that anybody launches inside, such as a library's:

    >>> with triton_viz.trace("tracer"):
    ...     some_library.rms_norm(x)

    Kernels run on the CPU, with or without a GPU, and with or without TRITON_INTERPRET=1. Without a client
    (`trace(())`) they just run.
    """

    def __init__(self, client: ClientLike | Sequence[ClientLike] = "tracer", backend: str = "triton"):
        if backend != "triton":
            raise UnsupportedError(f"no backend is called {backend!r}; there is 'triton'")
        one = isinstance(client, str | Client | type)
        self.clients = [_normalize_client(c) for c in ([client] if one else client)]
        self._scopes: list[contextlib.ExitStack] = []
        if cfg.enabled:
            standins.install()

    def __call__(self, kernel: Any) -> Any:
        """The kernel, traced."""
        return TritonTrace(kernel, self.clients) if cfg.enabled else kernel

    def __enter__(self) -> "trace":
        scope = contextlib.ExitStack()
        if cfg.enabled:
            manager = ClientManager(self.clients)

            def traced_run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
                if not warmup:
                    _launch(unwrap(kernel), manager, grid, args, kwargs)

            for kind in (JITFunction, InterpretedFunction, Autotuner, Heuristics):
                scope.enter_context(set_attribute(kind, "run", traced_run))
        self._scopes.append(scope)
        return self

    def __exit__(self, *error: object) -> None:
        self._scopes.pop().close()


def _normalize_client(client: ClientLike) -> Client:
    """A client from its name, its class or itself."""
    if isinstance(client, Client):
        return client
    if isinstance(client, type) and issubclass(client, Client):
        return client()
    if client == "tracer":
        return Tracer()
    if client == "profiler":
        return Profiler()
    raise UnsupportedError(
        f"{client!r} is not a client: give 'tracer', 'profiler', a Client class or an instance"
    )


class TritonTrace(KernelInterface):
    """A Triton kernel that leaves a `Launch` each time it runs."""

    def __init__(self, kernel: Any, clients: Sequence[Client]):
        if isinstance(kernel, TritonTrace):  # several traces: all of their clients
            clients = [*kernel.client_manager.clients.values(), *clients]
            kernel = kernel.kernel
        try:
            self._unwrapped = unwrap(kernel)
        except UnsupportedError as error:
            raise UnsupportedError(f"trace: {error}. Write @triton_viz.trace() above @triton.jit.") from None
        self.kernel = kernel
        """What was decorated: the kernel, or autotune or heuristics around it."""
        self.jit_fn = self._unwrapped.kernel
        self.fn: Callable = self._unwrapped.fn
        self.interpreted_fn = InterpretedFunction(self.fn)
        self.client_manager = ClientManager(clients)

    def __getattr__(self, name: str) -> Any:
        """What the kernel itself has: `arg_names` (for a wrapper above), `configs`, `best_config`, ..."""
        if name in ("kernel", "jit_fn"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    @property
    def __name__(self) -> str:
        return self.fn.__name__

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Run all programs of a grid, and append a `Launch`. `kernel[grid](...)` calls this."""
        if warmup:
            return self._warmup(args, grid, kwargs)
        self._warm_up_for_clients(args, grid, kwargs)
        _launch(self._unwrapped, self.client_manager, grid, args, kwargs)
        return None

    def _warm_up_for_clients(self, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> None:
        wanting = [c for c in self.client_manager.clients.values() if c.pre_warmup_callback(self.jit_fn)]
        if wanting:
            compiled = self._warmup(args, grid, kwargs)
            for client in wanting:
                client.post_warmup_callback(self.jit_fn, compiled)

    def _warmup(self, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> Any:
        """What Triton's compiler makes of the kernel, where it can compile for a GPU that is here."""
        if not isinstance(self.jit_fn, JITFunction) or not standins.driver_is_active():
            return None
        return self.kernel.run(*args, grid=grid, warmup=True, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Called by another kernel, this is a plain device function: `run()` is for grids."""
        return machine.current().flow.call(self.jit_fn, *args, **kwargs)


def _launch(
    kernel: Unwrapped, manager: ClientManager, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Run a kernel with a manager's clients, and append the launch if it has any."""
    with _one_launch_at_a_time:
        call = kernel.resolve(args, kwargs, grid)
        with manager.patch_run(call.fn, "triton"):
            try:
                run(call, grid, manager)
            except Exception as error:  # noqa: BLE001 - whatever a kernel raises
                raise _explain(error, call.fn) from (error.__cause__ or error)
        if not manager.clients:
            return
        source, first_line = _source_of(call.fn)
        launches.append(
            Launch(
                kernel=call.fn.__name__,
                file=inspect.getfile(call.fn),
                first_line=first_line,
                source=source,
                grid=manager.grid,
                tensors=tuple(manager.all_tensors()),
                records=manager.finalize(),
            )
        )


@functools.lru_cache(256)
def _source_of(fn: Callable) -> tuple[str, int]:
    """A kernel's source and its first line. Finding where it ends takes as long as a small launch."""
    lines, first_line = inspect.getsourcelines(fn)
    return "".join(lines), first_line


def _explain(error: Exception, fn: Callable) -> Exception:
    """An error of a kernel with the kernel's name, the program and the line; one of its caller as it is."""
    where, in_kernel = _deepest_line(error.__traceback__, fn)
    if isinstance(error, TritonVizError) and not in_kernel:
        return error
    if not in_kernel:
        return error
    kind = type(error) if isinstance(error, TritonVizError) else KernelError
    name = "" if isinstance(error, TritonVizError) else f"{type(error).__name__}: "
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


def clear() -> None:
    """Forget all launches."""
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
