"""`trace`: wrap a kernel so that running it leaves a `Launch` behind."""

import inspect
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, KernelInterface

from triton_viz.clients import Tracer
from triton_viz.core import data
from triton_viz.core.client import Client, ClientManager
from triton_viz.core.config import cfg
from triton_viz.core.data import Launch, TensorInfo
from triton_viz.dsls.triton import rewritten
from triton_viz.errors import KernelError, TritonVizError, UnsupportedError

launches: list[Launch] = []
"""Every traced launch of this program, oldest first."""

_one_launch_at_a_time = threading.RLock()
"""Patches are the whole process's, so launches take turns. A client may launch from a callback."""

_NO_WRAPPERS = "Autotuned and heuristics-wrapped kernels cannot be traced yet: trace the plain kernel."

ClientLike = str | Client | type[Client]


def trace(
    client: ClientLike | Sequence[ClientLike] = "tracer", backend: str = "triton"
) -> Callable[[Any], Any]:
    """A decorator that makes a kernel leave records of what it does.

    >>> @triton_viz.trace("tracer")
    ... @triton.jit
    ... def kernel(...): ...

    The kernel runs on the CPU, with or without a GPU, and with or without TRITON_INTERPRET=1.
    """
    if backend != "triton":
        raise UnsupportedError(f"no backend is called {backend!r}; there is 'triton'")
    one = isinstance(client, str | Client | type)
    clients = [_normalize_client(c) for c in ([client] if one else client)]

    def wrap(kernel: Any) -> Any:
        return TritonTrace(kernel, clients) if cfg.enabled else kernel

    return wrap


def _normalize_client(client: ClientLike) -> Client:
    """A client from its name, its class or itself."""
    if isinstance(client, Client):
        return client
    if isinstance(client, type) and issubclass(client, Client):
        return client()
    if client == "tracer":
        return Tracer()
    raise UnsupportedError(f"{client!r} is not a client: give 'tracer', a Client class or an instance")


class TritonTrace(KernelInterface):
    """A Triton kernel that leaves a `Launch` each time it runs."""

    def __init__(self, kernel: Any, clients: Sequence[Client]):
        if not isinstance(kernel, JITFunction | InterpretedFunction):
            raise UnsupportedError(
                f"trace wraps a @triton.jit function, not {type(kernel).__name__}: write @triton_viz.trace() "
                f"above @triton.jit. {_NO_WRAPPERS}"
            )
        self.jit_fn = kernel
        self.fn: Callable = kernel.fn
        self.interpreted_fn = InterpretedFunction(self.fn)
        self.client_manager = ClientManager(clients)

    @property
    def __name__(self) -> str:
        return self.fn.__name__

    @property
    def arg_names(self) -> list[str]:
        """What @triton.autotune and @triton.heuristics ask for first."""
        raise UnsupportedError(_NO_WRAPPERS)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        """Run all programs of a grid, and append a `Launch`. `kernel[grid](...)` calls this."""
        if warmup:
            return
        with _one_launch_at_a_time:
            launches.append(self._launch(_normalize_grid(grid), args, kwargs))

    def _launch(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Launch:
        manager = self.client_manager
        with manager.patch_run(self.fn, "triton"):
            try:
                self.interpreted_fn.run(*args, grid=grid, warmup=False, **kwargs)
            except Exception as error:
                # Before the first program it is the caller's mistake, such as a missing argument.
                if manager.program is None:
                    raise
                raise self._explain(error) from (error.__cause__ or error)
        _warn_of_narrow_floats(manager.tensors)
        lines, first_line = inspect.getsourcelines(self.fn)
        return Launch(
            kernel=self.__name__,
            file=inspect.getfile(self.fn),
            first_line=first_line,
            source="".join(lines),
            grid=manager.grid,
            tensors=tuple(manager.tensors),
            records=manager.finalize(),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Called by another kernel, this is a plain device function: `run()` is for grids."""
        return rewritten(self.fn)(*args, **kwargs)

    def _explain(self, error: Exception) -> TritonVizError:
        original = error
        while original.__cause__ is not None:  # the interpreter wraps what it catches
            original = original.__cause__
        kind = type(original) if isinstance(original, TritonVizError) else KernelError
        name = "" if isinstance(original, TritonVizError) else f"{type(original).__name__}: "
        where = _deepest_line(original.__traceback__, inspect.getfile(self.fn))
        return kind(f"{where}kernel {self.__name__}, program {self.client_manager.program}: {name}{original}")


def _warn_of_narrow_floats(tensors: Sequence[TensorInfo]) -> None:
    narrow = {t.dtype for t in tensors if t.dtype == "bfloat16" or t.dtype.startswith("float8")}
    if narrow:
        warnings.warn(
            f"Triton's interpreter computes with the raw bits of {', '.join(sorted(narrow))}: where the "
            "kernel does arithmetic in it, results are wrong. Loads and stores are right.",
            stacklevel=5,
        )


def _normalize_grid(grid: Any) -> Any:
    if callable(grid):
        return lambda args: _normalize_grid(grid(args))
    if not isinstance(grid, tuple | list) or not 1 <= len(grid) <= 3:
        raise UnsupportedError(f"a grid is one to three sizes, or a function that gives them, not {grid!r}")
    if not all(isinstance(n, int) and n >= 0 for n in grid):
        raise UnsupportedError(f"a grid's sizes are whole numbers, not {grid!r}")
    return tuple(grid)


def _deepest_line(traceback: TracebackType | None, file: str) -> str:
    """`file:line: ` of the last frame in the kernel's file, where the user should look."""
    where = ""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            where = f"{file}:{traceback.tb_lineno}: "
        traceback = traceback.tb_next
    return where


def clear() -> None:
    """Forget all launches."""
    launches.clear()


def save(path: str | Path) -> None:
    """Write all launches to one file."""
    data.save(launches, str(path))


def load(path: str | Path, append: bool = False) -> None:
    """Read launches from a file that `save` wrote, in place of those in memory or after them."""
    loaded = data.load(str(path))
    if not append:
        clear()
    launches.extend(loaded)
