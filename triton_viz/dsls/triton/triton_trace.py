"""A traced Triton kernel."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, KernelInterface

from triton_viz.core.client import Client, ClientManager
from triton_viz.core.config import cfg
from triton_viz.core.interrupts import held, let_through
from triton_viz.core.launch import launch_kernel
from triton_viz.core.trace import with_open_clients
from triton_viz.dsls.triton import gpu_standins, lane_machine
from triton_viz.dsls.triton.compiler.compile import compile_launch
from triton_viz.dsls.triton.wrappers import unwrap
from triton_viz.errors import UnsupportedError


class TritonTrace(KernelInterface):
    """A Triton kernel that appends a `Launch` each time it runs."""

    def __init__(self, kernel: Any, clients: Sequence[Client]):
        if isinstance(kernel, TritonTrace):  # a trace of a trace has the clients of both
            clients = [*kernel.client_manager.clients.values(), *clients]
            kernel = kernel.kernel
        try:
            self._unwrapped = unwrap(kernel)
        except UnsupportedError as error:
            raise UnsupportedError(f"trace: {error}. Write @triton_viz.trace() above @triton.jit.") from None
        self.kernel = kernel
        """The decorated object: the kernel, or autotune or heuristics around it."""
        self.jit_fn = self._unwrapped.kernel
        """The kernel inside all wrappers: warm-up compiles it, `run` executes it."""
        self.fn: Callable = self._unwrapped.fn
        interpreted = isinstance(self.jit_fn, InterpretedFunction)
        self.interpreted_fn = self.jit_fn if interpreted else InterpretedFunction(self.fn)
        """The kernel for Triton's interpreter. Inside `ClientManager.patch_run` it runs on our executor, for
        the manager's clients; anywhere else it runs untraced in Triton's interpreter."""
        self.client_manager = ClientManager(clients)
        functools.update_wrapper(self, self.fn)

    def __getattr__(self, name: str) -> Any:
        """Forwards attributes of the kernel: `arg_names` (for a wrapper), `configs`, `best_config`, ..."""
        if name in ("kernel", "jit_fn"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Run all programs of a grid, and append a `Launch`. `kernel[grid](...)` calls this."""
        if warmup:
            return self._warmup(args, grid, kwargs)
        manager = with_open_clients(self.client_manager, "triton")
        return launch_kernel("triton", self._unwrapped, manager, grid, args, kwargs)

    def _warmup(self, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> Any:
        """The compiled kernel: for the GPU of this machine, or else for `cfg.target`."""
        if isinstance(self.jit_fn, JITFunction) and gpu_standins.has_gpu():
            return self.kernel.run(*args, grid=grid, warmup=True, **kwargs)
        with held(), gpu_standins.standing_in(), let_through():
            return compile_launch(self.jit_fn, self._unwrapped.resolve(args, kwargs, grid), cfg.target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inside another kernel, call it as a device function; a launch is `kernel[grid](...)`."""
        if not lane_machine.is_running():
            name = self.fn.__name__
            raise UnsupportedError(f"kernel {name} was called without a grid: write {name}[grid](...)")
        return lane_machine.current().flow.call(self.jit_fn, *args, **kwargs)
