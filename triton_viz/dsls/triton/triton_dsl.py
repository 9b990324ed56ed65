"""Triton's `DSL`: for each method of the builder, the type of its record and its adapter."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import triton
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from triton_viz.core.attributes import set_attributes
from triton_viz.core.data import Compute, Op, Program
from triton_viz.core.records.tensor_info import TensorInfo
from triton_viz.dsls.base import DSL, Adapter, Call, Here
from triton_viz.dsls.static_analysis import Analysis
from triton_viz.dsls.triton import calls, gpu_standins, grid_launch, lane_machine, language_patches, wrappers
from triton_viz.dsls.triton.control_flow import lane_loops
from triton_viz.dsls.triton.ops.adapters import compute
from triton_viz.dsls.triton.ops.lane_builder import LaneBuilder
from triton_viz.dsls.triton.ops.op_traits import operations_of
from triton_viz.dsls.triton.ops.types import compute_dtype
from triton_viz.executor.value import Value

if TYPE_CHECKING:
    from triton_viz.core.client import Client


def _operations() -> dict[str, tuple[type[Op], Adapter]]:
    """Each op of the builder with the type of its record and its adapter: `Compute` by default."""
    operations = {}
    for name in dir(LaneBuilder):
        op = getattr(LaneBuilder, name)
        if name.startswith("create_") or hasattr(op, "record"):
            short = name.removeprefix("create_")
            if (record := getattr(op, "record", (Compute, compute(short)))) is not None:
                operations[name] = record
    return operations


def _arithmetic() -> dict[str, int]:
    """How many operations each op that computes is on each element."""
    computing = [name for name, (op_type, _) in _OPERATIONS.items() if op_type is Compute]
    counts = {name.removeprefix("create_"): operations_of(LaneBuilder, name) for name in computing}
    return {name: count for name, count in counts.items() if count}


_OPERATIONS = _operations()


@contextlib.contextmanager
def _patch_calls() -> Iterator[None]:
    with language_patches.patched(), set_attributes(calls.patches(), of_launch=True):
        yield


def _here() -> Here:
    return lane_machine.current().here()


def _trace(kernel: Any, clients: Sequence["Client"]) -> Any:
    from triton_viz.dsls.triton.triton_trace import TritonTrace  # it imports the core, which imports this

    return TritonTrace(kernel, clients)


def _analyze(call: Call, grid: Program, tensors: Sequence[TensorInfo], decide: bool) -> Analysis:
    from triton_viz.dsls.triton.symbolic.engine import analyze  # it imports the solver

    return analyze(call, grid, tensors, decide)


def _zeros(pointers: Value, *_: Any, **__: Any) -> Value:
    dtype = pointers.dtype.element_ty
    zero = np.zeros((1,) * (1 + len(pointers.shape)), compute_dtype(dtype))
    return Value(np.broadcast_to(zero, (1, *pointers.shape)), dtype)


def _compile(call: Call, target: str) -> Any:
    from triton_viz.dsls.triton.compiler.compile import compile_launch

    return compile_launch(call.kernel, call, target)


def _check_target(target: str) -> None:
    from triton_viz.dsls.triton.compiler.compile import parse_target

    parse_target(target)


TRITON = DSL(
    name="triton",
    namespace=LaneBuilder,
    operations=_OPERATIONS,
    arithmetic=_arithmetic(),
    patch_calls=_patch_calls,
    patch_loops=lane_machine.running.patch_loops,
    here=_here,
    loops_file=lane_loops.__file__,
    launch=grid_launch.launch,
    trace=_trace,
    analyze=_analyze,
    bind=wrappers.bind_launch,
    compile=_compile,
    check_target=_check_target,
    zeros=_zeros,
    environment=gpu_standins.standing_in,
    is_running=lane_machine.is_running,
    kernel_classes=(JITFunction, InterpretedFunction, Autotuner, Heuristics),
    folders=(str(Path(triton.__file__).parent),),
)
