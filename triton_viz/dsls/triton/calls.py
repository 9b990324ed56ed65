"""Replacements for Triton's ways to call a kernel, which run it on our executor during a launch.

Outside of a launch nothing is replaced: an interpreted kernel runs in Triton's interpreter, and calling a
`@triton.jit` function without a grid raises Triton's error.
"""

import functools
from collections.abc import Callable
from typing import Any

from triton.runtime.interpreter import GridExecutor, InterpretedFunction
from triton.runtime.jit import JITFunction

from triton_viz.dsls.triton import lane_machine
from triton_viz.dsls.triton.grid_launch import launch
from triton_viz.dsls.triton.wrappers import Unwrapped


def patches() -> list[tuple[Any, str, Any]]:
    """The patches of a patch scope: (owner, name, value)."""
    return [
        (GridExecutor, "__call__", _run_grid),
        (JITFunction, "__call__", _as_device_function(JITFunction.__call__)),
        (InterpretedFunction, "__call__", _as_device_function(InterpretedFunction.__call__)),
    ]


def _run_grid(self: Any, *args: Any, **kwargs: Any) -> None:
    """Replaces `GridExecutor.__call__`: run the grid on our executor, for the clients of the scope.

    A kernel that a client launches from a callback is a separate launch, which is not traced. The same holds
    for a kernel that another thread launches meanwhile, which waits for the end of this launch.
    """
    from triton_viz.core import patch  # here: these import the registry of languages
    from triton_viz.core.client import ClientManager
    from triton_viz.core.launch import launch_kernel

    kernel = InterpretedFunction(_as_written(self.fn))
    kernel.pre_run_hooks = list(getattr(self, "pre_run_hooks", ()))
    unwrapped = Unwrapped(kernel, ())
    manager = None if lane_machine.is_running() else patch.running_manager()
    if manager is None:
        launch_kernel("triton", unwrapped, ClientManager(), self.grid, args, kwargs)
    else:
        launch(unwrapped.resolve(args, kwargs, self.grid), self.grid, manager)


def _as_written(fn: Callable) -> Callable:
    """The function before Triton's interpreter rewrote it: our executor rewrites the source itself."""
    for original, rewritten in InterpretedFunction.rewritten_fn.items():
        if rewritten is fn:
            return original
    return fn


def _as_device_function(original: Callable) -> Callable:
    """Replaces a kernel's `__call__`: a running kernel calls it as a plain function."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not lane_machine.is_running():
            return original(self, *args, **kwargs)
        return lane_machine.current().flow.call(self, *args, **kwargs)

    return call
