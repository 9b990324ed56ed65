"""A launch of an NKI kernel: its arguments become tensors, and its programs run one after the other."""

import inspect
import math
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from triton_viz.core.config import cfg
from triton_viz.core.data import Program, SbufEvent, Site, join_chunks
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.base import Call, program_sizes
from triton_viz.dsls.nki.nki_arguments import as_argument, as_result, is_tensor, tensors_of
from triton_viz.dsls.nki.nki_builder import Builder
from triton_viz.dsls.nki.nki_machine import Launched, Machine, running
from triton_viz.dsls.nki.nki_records import events_of, profile_of
from triton_viz.dsls.nki.substitution import runnable
from triton_viz.errors import UnsupportedError
from triton_viz.executor.executor import Progress, run_grid

if TYPE_CHECKING:
    from triton_viz.core.client import ClientManager


def launch(call: Call, grid: Any, manager: "ClientManager") -> Any:
    """`DSL.launch`: run a kernel for all programs of a grid, and return its result for the caller."""
    with running.kept():
        return _run(call.fn, grid, call.arguments, manager)


def _run(function: Callable, grid: Any, arguments: dict[str, Any], manager: "ClientManager") -> Any:
    name = function.__name__
    sizes = program_sizes(grid, name, least=0)
    axes, (x, y, z) = len(sizes), (*sizes, 1, 1, 1)[:3]
    size: Program = x, y, z
    try:
        handed = {key: as_argument(key, value) for key, value in arguments.items()}
    except UnsupportedError as error:
        raise UnsupportedError(f"kernel {name}: {error}") from None
    launched = Launched(function, size, axes, manager.issue_callback)
    arrays: list[TensorInfo] = []
    for key, value in arguments.items():
        for path, tensor in tensors_of(key, handed[key]):
            launched.names.add(path)
            tensor.storage.info = TensorInfo.of(path, tensor.storage.array)
            arrays.append(tensor.storage.info)
        manager.arg_callback(key, value)
    known = {info.name for info in manager.named}
    # Arguments in which the core finds no tensors: dataclasses, JAX arrays.
    launched.adopted += [info for info in arrays if info.name not in known]
    manager.adopted = lambda: launched.adopted
    manager.grid_callback(size)
    values = inspect.BoundArguments(inspect.signature(function), OrderedDict(handed))
    prepared = runnable(function)
    machine = Machine(launched, lambda: prepared(*values.args, **values.kwargs), Builder())
    events: list[list[SbufEvent]] = []
    total = math.prod(size)
    site = Site(function.__code__.co_filename, function.__code__.co_firstlineno, name)
    manager.language_records = lambda: [*join_chunks(events), profile_of(launched, site)]
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
    in_torch = any(hasattr(value, "untyped_storage") for value in _leaves(arguments))
    return as_result(machine.results[0], in_torch) if machine.results else None


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for member in value.values() for leaf in _leaves(member)]
    if isinstance(value, tuple | list):
        return [leaf for member in value for leaf in _leaves(member)]
    return [value] if is_tensor(value) else []
