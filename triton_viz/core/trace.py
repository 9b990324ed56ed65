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

from triton_viz.clients import Profiler, RaceDetector, Sanitizer, Tracer
from triton_viz.clients.tracer.tracer import join_chunks
from triton_viz.core import trace_file
from triton_viz.core.attributes import set_attributes
from triton_viz.core.client import Client, ClientManager
from triton_viz.core.config import cfg
from triton_viz.core.data import Issue, Launch
from triton_viz.core.interrupts import held, let_through
from triton_viz.dsls import OPERATION_REGISTRY
from triton_viz.dsls.nki import machine as nki_machine
from triton_viz.dsls.nki import standins as nki_standins
from triton_viz.dsls.nki.run import run as run_nki
from triton_viz.dsls.triton import compat, machine, standins
from triton_viz.dsls.triton.compiling import Compiled, compile_launch
from triton_viz.dsls.triton.run import run
from triton_viz.dsls.triton.wrappers import Call, Unwrapped, unwrap
from triton_viz.errors import KernelError, TritonVizError, UnsupportedError

launches: list[Launch] = []
"""Every traced launch of this program, oldest first."""

_one_launch_at_a_time = threading.RLock()
"""Patches are the whole process's, so launches take turns. A client may launch from a callback."""

_launching = 0
"""The thread whose turn it is."""

_CLIENTS: dict[Any, Callable[..., Client]] = {
    client.NAME: client for client in (Tracer, Profiler, Sanitizer, RaceDetector)
}
"""Those that can be asked for by name."""

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
    (`trace(())`) they just run. With `backend="nki"` they are kernels for AWS Trainium: plain functions, or
    what `@nki.jit` made of them.
    """

    def __init__(self, client: ClientLike | Sequence[ClientLike] = "tracer", backend: str = "triton"):
        if backend not in OPERATION_REGISTRY:
            names = ", ".join(repr(name) for name in OPERATION_REGISTRY)
            raise UnsupportedError(f"no backend is called {backend!r}: there are {names}")
        if isinstance(client, KernelInterface) or inspect.isfunction(client):
            name = getattr(client, "__name__", "a kernel")
            raise UnsupportedError(
                f"trace takes clients, and {name} is none: write @triton_viz.trace(), with ()"
            )
        one = isinstance(client, str | Client | type)
        self.backend = backend
        self.clients = [_normalize_client(c, backend) for c in ([client] if one else client)]
        self._scopes: list[set_attributes] = []
        if cfg.enabled:
            (nki_standins if backend == "nki" else standins).install()

    def __call__(self, kernel: Any) -> Any:
        """The kernel, traced."""
        return _TRACES[self.backend](kernel, self.clients) if cfg.enabled else kernel

    def __enter__(self) -> "trace":
        def traced_run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
            if not warmup:
                _launch(unwrap(kernel), ClientManager(_around("triton")), grid, args, kwargs)

        def traced_nki_run(kernel: Any, *args: Any, grid: Any, **kwargs: Any) -> Any:
            return launch_nki(kernel.func, ClientManager(_around("nki")), grid, args, kwargs)

        kinds: dict[Any, Any] = dict.fromkeys(
            (JITFunction, InterpretedFunction, Autotuner, Heuristics), traced_run
        )
        if self.backend == "nki":
            kinds = {nki_standins.Kernel: traced_nki_run}
        with held():
            patches = [(kind, "run", run) for kind, run in kinds.items()]
            scope = set_attributes(patches if cfg.enabled else [])
            self._scopes.append(scope)
            _open.append(self)
            scope.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        with held():
            self._scopes.pop().__exit__(None, None, None)
            _open.remove(self)


_open: list[trace] = []
"""Those whose `with` we are in, outermost first."""


def _around(backend: str) -> list[Client]:
    """The clients of every `with` that we are in, and that is for this backend."""
    return [client for one in _open if one.backend == backend for client in one.clients]


def _normalize_client(client: ClientLike, backend: str = "triton") -> Client:
    """A client from its name, its class or itself."""
    if isinstance(client, Client):
        return client
    if isinstance(client, type) and issubclass(client, Client):
        return client()
    if client in _CLIENTS:
        return _CLIENTS[client](**OPERATION_REGISTRY[backend].client_options.get(str(client), {}))
    names = ", ".join(repr(name) for name in _CLIENTS)
    raise UnsupportedError(f"{client!r} is not a client: give {names}, a Client class or an instance")


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
        functools.update_wrapper(self, self.fn)

    def __getattr__(self, name: str) -> Any:
        """What the kernel itself has: `arg_names` (for a wrapper above), `configs`, `best_config`, ..."""
        if name in ("kernel", "jit_fn"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Run all programs of a grid, and append a `Launch`. `kernel[grid](...)` calls this."""
        if warmup:
            return self._warmup(args, grid, kwargs)
        manager = self.client_manager
        if _open:  # a `with` is for kernels that are traced anyway, too
            manager = ClientManager([*manager.clients.values(), *_around("triton")])
        _launch(self._unwrapped, manager, grid, args, kwargs)
        return None

    def _warmup(self, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> Any:
        """What Triton's compiler makes of the kernel: for the GPU that is here, or else for `cfg.target`."""
        if isinstance(self.jit_fn, JITFunction) and standins.has_gpu():
            return self.kernel.run(*args, grid=grid, warmup=True, **kwargs)
        return compile_launch(self.jit_fn, self._unwrapped.resolve(args, kwargs, grid), cfg.target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Called by another kernel, this is a plain device function: `run()` is for grids."""
        if not machine.is_running():
            name = self.fn.__name__
            raise UnsupportedError(f"kernel {name} was called without a grid: write {name}[grid](...)")
        return machine.current().flow.call(self.jit_fn, *args, **kwargs)


class NKITrace:
    """An NKI kernel that leaves a `Launch` each time it runs: `kernel(...)` or `kernel[grid](...)`."""

    def __init__(self, kernel: Any, clients: Sequence[Client], grid: Any = None):
        if isinstance(kernel, NKITrace):  # several traces: all of their clients
            clients = [*kernel.client_manager.clients.values(), *clients]
            kernel = kernel.kernel
        fn = nki_standins.plain_function(kernel)
        if fn is None:
            raise UnsupportedError(
                f"trace: {kernel!r} is no NKI kernel. Write @triton_viz.trace(backend='nki') above a "
                "function, or "
                "above @nki.jit."
            )
        self.kernel = kernel
        """What was decorated: a function, or what a decorator made of it."""
        self.fn: Callable = fn
        self.client_manager = ClientManager(clients)
        self.grid = grid
        functools.update_wrapper(self, fn)

    def __getitem__(self, grid: Any) -> "NKITrace":
        found = NKITrace(self.kernel, [], grid)
        found.client_manager = self.client_manager
        return found

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Run all programs of a grid, and append a `Launch`; the result is what the kernel returns."""
        return launch_nki(self.fn, self.client_manager, grid, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; called by another kernel, this is a plain function."""
        if nki_machine.is_running():
            return self.fn(*args, **kwargs)
        return self.run(*args, grid=self.grid, **kwargs)


_TRACES: dict[str, Callable[..., Any]] = {"triton": TritonTrace, "nki": NKITrace}
"""What a backend's kernels become."""


def launch_nki(
    fn: Callable,
    manager: ClientManager | None,
    grid: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run an NKI kernel with a manager's clients, and append the launch if it has any."""
    global _launching
    manager = manager or ClientManager()
    with _one_launch_at_a_time:
        _launching = threading.get_ident()
        with held(), manager.patch_run(fn, "nki"), let_through():
            try:
                ran = run_nki(fn, grid, args, kwargs, manager)
            except Exception as error:  # noqa: BLE001 - whatever a kernel raises
                raise _explain(error, fn) from (error.__cause__ or error)
        if manager.clients:
            try:
                lines, first_line = inspect.getsourcelines(fn)
            except OSError:  # it was typed into a prompt
                lines, first_line = [], fn.__code__.co_firstlineno
            launches.append(
                Launch(
                    kernel=fn.__name__,
                    file=inspect.getfile(fn),
                    first_line=first_line,
                    source="".join(lines),
                    grid=manager.grid,
                    tensors=tuple(manager.all_tensors()),
                    records=[*manager.finalize(), *join_chunks(ran.events), ran.profile],
                )
            )
        return ran.result


def _launch(
    kernel: Unwrapped, manager: ClientManager, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Run a kernel with a manager's clients, and append the launch if it has any."""
    global _launching
    if machine.is_running() and _launching != threading.get_ident():
        # A thread of a launch, which would wait for the end of that launch for ever.
        raise UnsupportedError("a client can launch a kernel from a callback only while config.num_sms is 1")
    with _one_launch_at_a_time:
        _launching = threading.get_ident()
        call = kernel.resolve(args, kwargs, grid)
        _warm_up(kernel, call, manager)
        try:
            with held(), manager.patch_run(call.fn, "triton"), let_through():
                try:
                    run(call, grid, manager)
                except Exception as error:  # noqa: BLE001 - whatever a kernel raises
                    raise _explain(error, call.fn) from (error.__cause__ or error)
            records = manager.finalize()
        except KernelError:
            # A launch that failed is kept if a client says what was wrong before: that may be why.
            with contextlib.suppress(KernelError):  # a client says once that it aborts
                manager.finalize()
            records = manager.finalize()
            if any(isinstance(record, Issue) for record in records):
                launches.append(_made(kernel, call, manager, records))
            raise
        if manager.clients:
            launches.append(_made(kernel, call, manager, records))


def _made(kernel: Unwrapped, call: Call, manager: ClientManager, records: list[Any]) -> Launch:
    lines, first_line = compat.source_of(kernel.kernel)
    return Launch(
        kernel=call.fn.__name__,
        file=inspect.getfile(call.fn),
        first_line=first_line,
        source="".join(lines),
        grid=manager.grid,
        tensors=tuple(manager.all_tensors()),
        records=records,
    )


def _warm_up(kernel: Unwrapped, call: Call, manager: ClientManager) -> None:
    """Compile the kernel for clients that want to look at it. One that does not compile still runs."""
    wanting = [client for client in manager.clients.values() if client.pre_warmup_callback(kernel.kernel)]
    if not wanting:
        return
    compiled: Compiled | TritonVizError
    try:
        compiled = compile_launch(kernel.kernel, call, cfg.target)
    except TritonVizError as error:
        compiled = error
    for client in wanting:
        client.post_warmup_callback(kernel.kernel, compiled)


def _explain(error: Exception, fn: Callable) -> Exception:
    """An error of a kernel with the kernel's name, the program and the line; one of its caller as it is."""
    where, in_kernel = _deepest_line(error.__traceback__, fn)
    if (site := getattr(error, "site", None)) is not None:  # it was found out later
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
