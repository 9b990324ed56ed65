"""A launch: the arguments, the grid, and all of its programs, one after the other."""

import inspect
import math
import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from triton_viz.core.config import cfg
from triton_viz.core.data import Op, Program, Site, TensorInfo
from triton_viz.core.grid.executor import Progress, run_grid
from triton_viz.dsls.nki.arguments import as_argument, as_result, is_tensor, tensors_of
from triton_viz.dsls.nki.builder import Builder
from triton_viz.dsls.nki.machine import Launched, Machine
from triton_viz.dsls.nki.records import events_of, profile_of
from triton_viz.dsls.nki.substitution import runnable
from triton_viz.errors import UnsupportedError

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager


class Ran(msgspec.Struct):
    """What is left of a launch."""

    result: Any
    """What the kernel returned, as its caller receives it."""
    events: list[list[Op]]
    """For each program its buffers."""
    profile: Op
    adopted: list[TensorInfo]


def run(
    function: Callable, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], manager: "ClientManager"
) -> Ran:
    """Run a kernel for all programs of a grid."""
    name = function.__name__
    size, axes = normalize_grid(grid, name)
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise UnsupportedError(f"kernel {name}: {error}") from None
    bound.apply_defaults()
    try:
        handed = {key: as_argument(key, value) for key, value in bound.arguments.items()}
    except UnsupportedError as error:
        raise UnsupportedError(f"kernel {name}: {error}") from None
    launched = Launched(function, size, axes, manager.issue_callback)
    arrays: list[TensorInfo] = []
    for key, value in bound.arguments.items():
        for path, tensor in tensors_of(key, handed[key]):
            launched.names.add(path)
            tensor.storage.info = TensorInfo.of(path, tensor.storage.array)
            arrays.append(tensor.storage.info)
        manager.arg_callback(key, value)
    known = {info.name for info in manager.named}
    # What only we find tensors in: a dataclass, an array of JAX's.
    launched.adopted += [info for info in arrays if info.name not in known]
    manager.adopted = lambda: launched.adopted
    manager.grid_callback(size)
    values = inspect.BoundArguments(bound.signature, bound.arguments.copy())
    values.arguments.update(handed)
    prepared = runnable(function)
    machine = Machine(launched, lambda: prepared(*values.args, **values.kwargs), Builder())
    events: list[list[Op]] = []
    total = math.prod(size)
    chosen = manager.choose_programs()
    visible = cfg.progress and sys.stderr is not None and sys.stderr.isatty()
    with Progress(name, total if chosen is None else len(chosen), visible) as progress:

        def done(count: int) -> None:
            events.append(events_of(machine))
            progress(count)

        run_grid(
            total,
            lambda: machine,
            manager.grid_idx_callback,
            manager.discard_callback,
            vectorized=False,
            progress=done,
            chosen=chosen,
        )
    in_torch = any(hasattr(value, "untyped_storage") for value in _leaves(bound.arguments))
    result = as_result(machine.results[0], in_torch) if machine.results else None
    line = function.__code__.co_firstlineno
    site = Site(function.__code__.co_filename, line, name)
    return Ran(result, events, profile_of(launched, site, total), launched.adopted)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in _leaves(member)]
    if isinstance(value, tuple | list):
        return [leaf for member in value for leaf in _leaves(member)]
    return [value] if is_tensor(value) else []


def normalize_grid(grid: Any, name: str) -> tuple[Program, int]:
    """A launch's grid as three sizes, and how many it was given with. None is one program."""
    sizes = () if grid is None else tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if len(sizes) > 3:
        raise UnsupportedError(f"kernel {name}: a grid is one to three sizes, not {grid!r}")
    try:
        numbers = [operator.index(n) for n in sizes if not isinstance(n, bool)]
    except TypeError:
        numbers = []
    if len(numbers) != len(sizes) or any(n < 0 for n in numbers):
        raise UnsupportedError(f"kernel {name}: a grid's sizes are whole numbers, not {grid!r}")
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return (x, y, z), len(sizes)
