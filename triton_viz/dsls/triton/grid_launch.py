"""A launch of a Triton kernel: its arguments become pointers and scalars, and its grid is executed."""

import functools
import inspect
import math
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from triton_viz.core.config import cfg
from triton_viz.core.data import Program
from triton_viz.dsls.base import Call, program_sizes
from triton_viz.dsls.triton import compat, language_patches
from triton_viz.dsls.triton.lane_machine import Machine, running
from triton_viz.dsls.triton.launch_arguments import HostCopies, as_constant, as_value
from triton_viz.dsls.triton.wrappers import signature_of
from triton_viz.errors import UnsupportedError
from triton_viz.executor.executor import Progress, run_grid
from triton_viz.executor.memory import Memory

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager


def launch(call: Call, grid: Any, manager: "ClientManager") -> None:
    """`DSL.launch`: run a kernel for all programs of a grid. Its language must be patched."""
    with running.kept():
        _run(call, grid, manager)


def _run(call: Call, grid: Any, manager: "ClientManager") -> None:
    size = normalize_grid(grid, call)
    host = HostCopies()
    arguments = {name: _apply(call, name, host.of, argument) for name, argument in call.arguments.items()}
    tensors = [info for name, argument in arguments.items() for info in manager.arg_callback(name, argument)]
    manager.grid_callback(size)
    memory = Memory(tensors)
    manager.adopted = lambda: memory.adopted
    values = inspect.BoundArguments(signature_of(call.fn), OrderedDict())

    def make_machine() -> Machine:
        return Machine(memory, size, call.kernel or call.fn, values, language_patches.substitutes())

    first = make_machine()
    first.enter()
    made = iter([first])
    constants = constexpr_names(call.fn)
    types = compat.annotated_types(call.fn)
    for name, argument in arguments.items():
        if name in constants:
            values.arguments[name] = as_constant(argument)
        else:
            annotated = types.get(name)
            values.arguments[name] = _apply(call, name, as_value, argument, first.semantic, annotated)
    total = math.prod(size)
    chosen = manager.choose_programs()
    visible = cfg.progress and sys.stderr is not None and sys.stderr.isatty()
    try:
        with Progress(call.fn.__name__, total if chosen is None else len(chosen), visible) as progress:
            run_grid(
                total,
                lambda: next(made, None) or make_machine(),
                manager.grid_idx_callback,
                manager.discard_callback,
                vectorized=cfg.vectorized and manager.vectorized,
                threads=cfg.num_sms,
                progress=progress,
                chosen=chosen,
            )
    finally:
        memory.release()
    host.write_back()


def _apply(call: Call, name: str, function: Callable[..., Any], *args: Any) -> Any:
    """Apply a function to an argument; an UnsupportedError then names the argument."""
    try:
        return function(*args)
    except UnsupportedError as error:
        raise UnsupportedError(f"kernel {call.fn.__name__}, argument {name!r}: {error}") from None


def normalize_grid(grid: Any, call: Call) -> Program:
    """A launch's grid as three sizes."""
    if callable(grid):
        grid = grid(dict(call.arguments))
    x, y, z = (*program_sizes(grid, call.fn.__name__), 1, 1)[:3]
    return x, y, z


@functools.cache
def constexpr_names(fn: Callable) -> frozenset[str]:
    """The names of `tl.constexpr` parameters."""
    return frozenset(
        name
        for name, annotation in inspect.get_annotations(fn).items()
        if "constexpr" in (annotation if isinstance(annotation, str) else getattr(annotation, "__name__", ""))
    )
